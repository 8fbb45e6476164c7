package purge

import (
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/transform"
	"github.com/etcdshift/etcdshift/transform/kcp/survey"
)

func codes() []*finding.Code {
	return []*finding.Code{
		codeOwnerPointsHere, codeNoHome, codeExportsBound, codeExportsInCache, codeCopyExists, codeUnknownShard,
		survey.CodeWouldBePlaintext, clusters.CodeEncrypted, clusters.CodeUndecodable, clusters.CodeKeyMismatch,
		survey.CodeSystemCluster, survey.CodeTerminating, survey.CodeMigrating, finding.UnknownKey,
		survey.CodeShardName, survey.CodeChildrenStay, survey.CodeChildElsewhere, survey.CodeOwnerUnseen,
	}
}

// The codes that only a purge reports.
var (
	codeOwnerPointsHere = survey.ErrorCode("owner-points-here", "a Workspace still leads to the logical cluster",
		"A Workspace in the same file names the logical cluster and this shard, or no shard. After the purge it would lead nowhere. With "+
			"`--orphans`: these are no orphans, but a logical cluster whose LogicalCluster is lost. In a move, kcp of the new shard corrects the Workspace.",
		"In a move, allow it after the import, with both shards stopped. Otherwise import the cluster first. With `--orphans`: find an older "+
			"snapshot with the LogicalCluster.",
		"Purges. The Workspace stays as it is: kcp of the new shard changes it, or `--fix-owner` of `cluster import`; or delete it.")
	codeNoHome = &finding.Code{Name: "no-home", Level: finding.Error, Allowed: finding.WentOn, Title: "no logical cluster of a tenant lives here",
		Warns: "for orphans of one logical cluster that is named",
		Meaning: "`--orphans` finds keys without a LogicalCluster, and this shard has none of any tenant: the LogicalClusters may be lost, and the keys no " +
			"orphans. As a warning also: the file is an archive or an etcd for single types. `etcdshift cluster list` with all shards shows where a cluster " +
			"lives.",
		Remedy: "Name the logical cluster: `etcdshift cluster purge --orphans NAME SHARD OUT`.",
		Allow:  "Purges all. Right if the last logical cluster was moved away.",
	}
	codeExportsBound = transform.WarningCode("exports-bound", "logical clusters that stay bind its APIExport",
		"They find an APIExport on another shard through its copy in the cache. Without that copy, kcp removes the labels of its permission claims "+
			"from their objects, and nothing can bind it anew.",
		"In a move, move its copies before any shard starts: `--to-shard`, here or with `--from-shard` on the cache server's snapshot; then run "+
			"`etcdshift cluster verify --cache`. Otherwise first purge the clusters that bind it, or keep it.")
	codeExportsInCache = survey.ErrorCode("exports-in-cache", "the last copy of an APIExport would leave the cache",
		"kcp reads permission claims from these copies. A shard that starts without any removes the labels `claimed.internal.apis.kcp.io/...` of "+
			"that APIExport from the objects of all its tenants. It does not put them back, because the APIBindings list the claims as applied. Lost labels "+
			"come back when the shard is restarted once more, while all shards run.",
		"After an import on shard T, move the copies to T with `--to-shard T`: no label is lost.",
		"Deletes the copies. Right if the logical cluster goes for good.")
	codeCopyExists = survey.ErrorCode("copy-exists", "the new shard has another copy in the cache already",
		"kcp of the shard of `--to-shard` wrote it, as after a live migration; or the logical cluster lives on both shards. Without `--to-shard` "+
			"the old shard's copies are deleted.",
		"Compare them: `etcdshift get CACHE TYPE/NAME -A -o yaml`. If the new shard's are complete, leave `--to-shard` out.",
		"The new shard's copy stays, the old shard's is deleted. Copies that the new shard does not have move.")
	codeUnknownShard = survey.ErrorCode("unknown-shard", "the file does not know the shard of `--to-shard`",
		"The name is spelled wrong, or that shard uses another cache server, where its copies belong; the reason lists the known shards. kcp never "+
			"removes copies of a shard that does not exist.",
		"Take the name from `etcdshift cluster list`.",
		"Moves the copies to that name.")
)
