package transform

import "github.com/etcdshift/etcdshift/finding"

// Codes are those that every run may report.
func Codes() []*finding.Code {
	return []*finding.Code{CodeRawFile, CodeCompressed, CodeFreeList, CodeBumpTooLarge, CodeLargeValue}
}

// The codes that Run reports, and those that migrations share.
var (
	CodeRawFile = &finding.Code{Name: "raw-file", Level: finding.Warning,
		Title: "the input is a raw database file, not a snapshot",
		Meaning: "A `member/snap/db` has no digest, and the write-ahead log beside it may hold later writes. An output is a snapshot with renewed metas " +
			"and a digest, even where no record changes.",
		Remedy: "Use `etcdctl snapshot save` where the member can still be started.",
	}
	CodeCompressed = &finding.Code{Name: "compressed", Level: finding.Warning,
		Title: "the input is compressed",
		Meaning: "The input (gzip, zstd, or zip as k3s makes it) was expanded into a temporary file without a name. `input.sha256` and `input.bytes` are " +
			"of the file as it was given.",
		Remedy: "Nothing. The output is not compressed, since `etcdutl snapshot restore` takes no compressed file.",
	}
	CodeFreeList = &finding.Code{Name: "free-list", Level: finding.Warning,
		Title: "the stored list of free pages is wrong",
		Meaning: "The list names pages in use, or lies where no list can be. `etcdutl snapshot restore` of the input hangs or dies of it. Records are not " +
			"affected.",
		Remedy: "Nothing. The output stores no list, as etcd does, and a server finds its free pages by itself.",
	}
	CodeBumpTooLarge = &finding.Code{Name: "bump-too-large", Level: finding.Error,
		Title: "the restore commands would raise the revision too far",
		Meaning: "After a restore that raises the revision by `--bump-revision`, less than half of the remaining revisions would be left. Beyond 2^63 " +
			"`etcdutl` restores and the server panics.",
		Remedy: "Give the `--bump-revision` that the message names. No cluster reaches such a revision by itself: find out where the file is from.",
	}
	CodeLargeValue = &finding.Code{Name: "large-value", Level: finding.Warning,
		Title:   "a value to be written is larger than a request",
		Meaning: "A server accepts 1.5 MiB in one request: the value can be read and deleted, but not updated.",
		Remedy:  "Raise `--max-request-bytes` of etcd, or make the object smaller.",
	}
	CodeUnsupportedLayout = &finding.Code{Name: "unsupported-layout", Level: finding.Error, Allowed: finding.Skipped,
		Title: "a storage prefix is not laid out as Kubernetes lays it out",
		Meaning: "A shard or a cache server of kcp stores there, where each logical cluster has definitions of its own. A warning: OpenShift's own API " +
			"servers store there, which hold no custom resources; owner references there are not checked either.",
		Remedy: "Name the prefixes to migrate with `--prefix`, where the file holds others too.",
		Allow:  "Everything below the prefix stays as it is.",
	}
	CodeWouldBePlaintext = &finding.Code{Name: "would-be-plaintext", Level: finding.Error, Allowed: finding.Skipped,
		Title: "an encrypted value would be stored in the clear",
		Meaning: "The value, or the one it was made of, is encrypted in the input. The configuration of `--encryption-config` names `identity` first for " +
			"its resource, or nothing.",
		Remedy: "Name a provider that encrypts first. `migrate calico-v3` needs a rule for `projectcalico.org` beside the one for `crd.projectcalico.org`: " +
			"a server with your configuration would store v3 records in the clear.",
		Allow: "The value stays as it is, encrypted. Nothing writes it in the clear.",
	}
)
