package transform

import "github.com/etcdshift/etcdshift/finding"

// The codes that Run reports, and those that migrations share.
var (
	CodeRawFile = WarningCode("raw-file", "the input is a database file, not a snapshot",
		"A `member/snap/db` has no digest, and its write-ahead log may hold later writes. An output is a snapshot with renewed metas and a digest, even if "+
			"no record changes.",
		"Use `etcdctl snapshot save` if the member still starts.")
	CodeCompressed = WarningCode("compressed", "the input is compressed",
		"The input (gzip, zstd, or zip as k3s makes it) was expanded into an unnamed temporary file. `input.sha256` and `input.bytes` are of the given "+
			"file. The output is not compressed: `etcdutl snapshot restore` takes no compressed file.",
		"Nothing to do.")
	CodeFreeList = WarningCode("free-list", "the stored list of free pages is wrong",
		"The list names pages in use, or lies where no list can be. `etcdutl snapshot restore` of the input hangs or crashes; records are not affected. The "+
			"output stores no list, as etcd does: a server finds its free pages itself.",
		"Nothing to do.")
	CodeBumpTooLarge = ErrorCode("bump-too-large", "the restore would raise the revision too far",
		"After a restore with `--bump-revision`, less than half of the remaining revisions would be left. Beyond 2^63 `etcdutl` restores and the server "+
			"panics. No cluster reaches such a revision by itself.",
		"Give the `--bump-revision` of the message; find out where the file is from.", "")
	CodeLargeValue = WarningCode("large-value", "a written value exceeds the request limit",
		"A server accepts 1.5 MiB in one request: the value can be read and deleted, but not updated.",
		"Raise `--max-request-bytes` of etcd, or make the object smaller.")
	CodeUnsupportedLayout = ErrorCode("unsupported-layout", "a storage prefix has another layout than Kubernetes",
		"A shard or cache server of kcp stores there: each logical cluster has its own definitions. A warning: OpenShift's own API servers store there; "+
			"they hold no custom resources, and their owner references are not checked.",
		"Name the prefixes to migrate with `--prefix`.",
		"Everything below the prefix stays as it is.")
	CodeFinalizers = WarningCode("finalizers-not-run", "a deleted object has finalizers",
		"On a server the object would stay until the controllers of its finalizers have cleaned up, such as a load balancer or a disk. Deleted offline, "+
			"it goes at once, and nothing cleans up. `migrate prepare-restore` does not report VolumeAttachments and tracked Pods of Jobs.",
		"Clean up by hand what the controller of the finalizer keeps outside of the cluster.")
	CodeUnknownFields = ErrorCode("unknown-fields", "an object cannot be changed without loss",
		"The object is of a kind, or has fields, that this build does not know: a newer Kubernetes or an aggregated API server wrote it. Labels, annotations, "+
			"finalizers and owner references of such an object can be changed; nothing else.",
		"Use a newer etcdshift, which is built with that Kubernetes.",
		"The object stays as it is.")
	CodeInvalidObject = ErrorCode("invalid-object", "a changed object would not be valid",
		"The object, as changed, does not fit the schema and rules of its CRD or the fields of its native kind; the reason names the fields. No server would "+
			"have accepted the change, and later updates of the object might be refused. `it cannot be checked`: "+
			"that takes too long, or no server has such a schema.",
		"Mend the change.",
		"The object stays as it is.")
	CodeNameTaken = ErrorCode("name-taken", "an object of that name exists",
		"The object was to get the name of another one.",
		"Choose another name, or delete the other object first.",
		"The object keeps its name.")
	CodeWouldBePlaintext = ErrorCode("would-be-plaintext", "a value would lose its encryption",
		"The value, or its source, is encrypted in the input. For its resource, the configuration of `--encryption-config` names `identity` first, or "+
			"nothing. `migrate calico-v3` needs a rule for `projectcalico.org` beside the one for `crd.projectcalico.org`: without it, a server stores v3 "+
			"records in the clear.",
		"Name a provider that encrypts first; for `migrate calico-v3` in a rule for `projectcalico.org` too.",
		"The value stays as it is, encrypted.")
)

// ErrorCode returns a code that refuses the run. Where it is allowed, the record is skipped as
// allow says; "" stands for a code that --allow does not take.
func ErrorCode(name, title, meaning, remedy, allow string) *finding.Code {
	c := finding.NewCode(finding.Error, name, title, meaning, remedy)
	c.Allow = allow
	if allow != "" {
		c.Allowed = finding.Skipped
	}
	return c
}

// WarningCode returns a code that does not refuse the run.
func WarningCode(name, title, meaning, remedy string) *finding.Code {
	return finding.NewCode(finding.Warning, name, title, meaning, remedy)
}
