package transform

import "github.com/etcdshift/etcdshift/finding"

// Codes are those that every run may report.
func Codes() []*finding.Code {
	return []*finding.Code{CodeRawFile, CodeCompressed, CodeFreeList, CodeBumpTooLarge, CodeLargeValue}
}

// The codes that Run reports, and those that migrations share.
var (
	CodeRawFile = WarningCode("raw-file", "the input is a raw database file, not a snapshot",
		"A `member/snap/db` has no digest, and the write-ahead log beside it may hold later writes. An output is a snapshot with renewed metas and a "+
			"digest, even where no record changes.",
		"Use `etcdctl snapshot save` where the member can still be started.")
	CodeCompressed = WarningCode("compressed", "the input is compressed",
		"The input (gzip, zstd, or zip as k3s makes it) was expanded into a temporary file without a name. `input.sha256` and `input.bytes` are of the "+
			"file as it was given.",
		"Nothing. The output is not compressed, since `etcdutl snapshot restore` takes no compressed file.")
	CodeFreeList = WarningCode("free-list", "the stored list of free pages is wrong",
		"The list names pages in use, or lies where no list can be. `etcdutl snapshot restore` of the input hangs or dies of it. Records are not affected.",
		"Nothing. The output stores no list, as etcd does, and a server finds its free pages by itself.")
	CodeBumpTooLarge = ErrorCode("bump-too-large", "the restore commands would raise the revision too far",
		"After a restore that raises the revision by `--bump-revision`, less than half of the remaining revisions would be left. Beyond 2^63 `etcdutl` "+
			"restores and the server panics.",
		"Give the `--bump-revision` that the message names. No cluster reaches such a revision by itself: find out where the file is from.", "")
	CodeLargeValue = WarningCode("large-value", "a value to be written is larger than a request",
		"A server accepts 1.5 MiB in one request: the value can be read and deleted, but not updated.",
		"Raise `--max-request-bytes` of etcd, or make the object smaller.")
	CodeUnsupportedLayout = ErrorCode("unsupported-layout", "a storage prefix is not laid out as Kubernetes lays it out",
		"A shard or a cache server of kcp stores there, where each logical cluster has definitions of its own. A warning: OpenShift's own API servers "+
			"store there, which hold no custom resources; owner references there are not checked either.",
		"Name the prefixes to migrate with `--prefix`, where the file holds others too.",
		"Everything below the prefix stays as it is.")
	CodeWouldBePlaintext = ErrorCode("would-be-plaintext", "an encrypted value would be stored in the clear",
		"The value, or the one it was made of, is encrypted in the input. The configuration of `--encryption-config` names `identity` first for its "+
			"resource, or nothing.",
		"Name a provider that encrypts first. `migrate calico-v3` needs a rule for `projectcalico.org` beside the one for `crd.projectcalico.org`: a "+
			"server with your configuration would store v3 records in the clear.",
		"The value stays as it is, encrypted. Nothing writes it in the clear.")
)

// ErrorCode returns a code that refuses the run. Where it is allowed, the record is skipped as
// allow says; "" stands for a code that --allow does not take.
func ErrorCode(name, title, meaning, remedy, allow string) *finding.Code {
	c := &finding.Code{Level: finding.Error, Name: name, Title: title, Meaning: meaning, Remedy: remedy, Allow: allow}
	if allow != "" {
		c.Allowed = finding.Skipped
	}
	return c
}

// WarningCode returns a code that does not refuse the run.
func WarningCode(name, title, meaning, remedy string) *finding.Code {
	return &finding.Code{Level: finding.Warning, Name: name, Title: title, Meaning: meaning, Remedy: remedy}
}
