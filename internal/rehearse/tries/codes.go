package tries

import "github.com/etcdshift/etcdshift/finding"

// Codes returns the codes of failures.
func Codes() []*finding.Code { return []*finding.Code{codeList, CodeUpdate, CodeApply} }

var (
	codeList = &finding.Code{
		Level: finding.Error, Name: "rehearse-list", Title: "the API server does not list a kind",
		Meaning: "A list of the kind fails at the version that the reason names, or no server serves the kind. Objects that cannot be read on their own " +
			"are named; one is enough to make all lists of its kind fail, and garbage collection and namespace deletion with them.",
		Remedy: "`etcdshift doctor` names the record and what to do: look for `undecodable`, `version-not-listed` or `encrypted`.",
	}
	// CodeUpdate is of a refused update.
	CodeUpdate = &finding.Code{
		Level: finding.Warning, Name: "rehearse-update", Title: "the API server refuses an update of an object",
		Meaning: "The object is put back as it was read, in a dry run. The API server refuses a new label, or the removal of a finalizer, with the same " +
			"message. From Kubernetes 1.30 on, it lets unchanged errors in fields of a custom resource pass.",
		Remedy: "Correct the fields that the message names before the snapshot is taken, or after the restore " + finding.RemedyUpdateRefused,
	}
	// CodeApply is of a refused server-side apply.
	CodeApply = &finding.Code{
		Level: finding.Warning, Name: "rehearse-apply", Title: "the API server refuses a server-side apply of an object",
		Meaning: "The apply names no field, in a dry run: by any manager it fails with the same message, such as `failed to create typed live object`, " +
			"`field not declared in schema`, or `request to convert CR to an invalid group/version` where managedFields name a version that is gone.",
		Remedy: "For managedFields run `etcdshift migrate storage-versions`, which keeps the owners of fields; else correct the fields of the message with " +
			"`kubectl replace`.",
	}
)
