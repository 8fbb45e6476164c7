package purge

import (
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/transform/kcp/survey"
)

func codes() []*finding.Code {
	return []*finding.Code{
		codeOwnerPointsHere, codeNoHome, codeExportsBound, codeExportsInCache, codeCopyExists, codeUnknownShard,
		codeWouldBePlaintext, clusters.CodeEncrypted, clusters.CodeUndecodable, clusters.CodeKeyMismatch,
		survey.CodeSystemCluster, survey.CodeTerminating, survey.CodeMigrating, survey.CodeUnknownKey,
		survey.CodeShardName, survey.CodeChildrenStay, survey.CodeChildElsewhere, survey.CodeOwnerUnseen,
	}
}

// The codes that only a purge reports.
var (
	codeOwnerPointsHere = &finding.Code{Name: "owner-points-here", Level: finding.Error, Allowed: finding.WentOn,
		Title: "a Workspace that stays leads to the logical cluster",
		Meaning: "A Workspace in the same file names the logical cluster and this shard, or no shard. After the purge it would lead nowhere. With " +
			"`--orphans`: these are no orphans, but a logical cluster whose LogicalCluster is lost.",
		Remedy: "Allow it in a move with both shards stopped, once the archive was imported: kcp of the new shard corrects the Workspace. Otherwise import " +
			"the cluster somewhere first. With `--orphans`: look for an older snapshot that has the LogicalCluster.",
		Allow: "Purges. The Workspace stays as it is: kcp of the new shard changes it, or `--fix-owner` of `cluster import`; or delete it.",
	}
	codeNoHome = &finding.Code{Name: "no-home", Level: finding.Error, Allowed: finding.WentOn, Title: "no logical cluster of any tenant lives here",
		Warns: "for orphans of one logical cluster that is named",
		Meaning: "`--orphans` finds keys without a LogicalCluster, and this shard has none of any tenant: the LogicalClusters may be lost, and the keys no " +
			"orphans. As a warning also: the file is an archive or an etcd for single types.",
		Remedy: "Name the logical cluster: `etcdshift cluster purge --orphans NAME`. `etcdshift cluster list` with all shards shows where it lives.",
		Allow:  "Purges all of them: right for a shard from which the last logical cluster was moved away.",
	}
	codeExportsBound = &finding.Code{Name: "exports-bound", Level: finding.Warning, Title: "logical clusters that stay bind an APIExport of this one",
		Meaning: "They find an APIExport on another shard through its copy in the cache. Without that copy, kcp takes the labels of its permission claims " +
			"from their objects, and nothing can bind it anew.",
		Remedy: "In a move, move its copies too, before any shard starts: `--to-shard`, here or with `--from-shard` on the snapshot of the cache server; " +
			"then check with `etcdshift cluster verify --cache`. Otherwise purge the logical clusters that bind it first, or keep it.",
	}
	codeExportsInCache = &finding.Code{Name: "exports-in-cache", Level: finding.Error, Allowed: finding.WentOn,
		Title: "the last copy of an APIExport would leave the cache",
		Meaning: "kcp reads permission claims from these copies. A shard that starts while there is none removes the labels " +
			"`claimed.internal.apis.kcp.io/...` of that APIExport from the objects of all its tenants, and does not put them back, because the APIBindings " +
			"list the claims as applied.",
		Remedy: "`--to-shard T`, where the logical cluster was imported on shard T: its copies move to T, and nobody loses a label. Lost labels come back " +
			"when the shard is restarted once more, while all shards run.",
		Allow: "Deletes the copies. Right where the logical cluster is to be gone for good.",
	}
	codeCopyExists = &finding.Code{Name: "copy-exists", Level: finding.Error, Allowed: finding.WentOn,
		Title:   "the new shard has another copy in the cache already",
		Meaning: "kcp of the shard of `--to-shard` wrote it, as after a live migration; or the logical cluster lives on both shards.",
		Remedy: "Look at both: `etcdshift get CACHE -o yaml`. Where the new shard's copies are complete, leave `--to-shard` out: the old shard's are " +
			"deleted.",
		Allow: "The new shard's copy stays, and the old shard's is deleted. Copies that the new shard does not have move.",
	}
	codeUnknownShard = &finding.Code{Name: "unknown-shard", Level: finding.Error, Allowed: finding.WentOn,
		Title: "nothing in the file knows the shard of `--to-shard`",
		Meaning: "The name is spelled wrong, or that shard uses another cache server; the reason lists the known shards. kcp never removes copies of a " +
			"shard that does not exist.",
		Remedy: "Take the name from `etcdshift cluster list`. Where the new shard uses another cache server, its copies belong there.",
		Allow:  "Moves the copies to that name.",
	}
	codeWouldBePlaintext = &finding.Code{Name: "would-be-plaintext", Level: finding.Error, Title: "an encrypted value would be stored in the clear",
		Meaning: "A copy that moves is encrypted in the input, and the configuration of `--encryption-config` does not encrypt its resource.",
		Remedy:  "Name a provider that encrypts first in the configuration.",
	}
)
