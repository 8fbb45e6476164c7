package purge

import (
	"github.com/etcdshift/etcdshift/inspect/clusters"
	"github.com/etcdshift/etcdshift/transform/kcp/survey"
)

// The codes of the problems that only a purge reports.
const (
	codeOwnerPointsHere = "owner-points-here" // its Workspace says that it lives on this shard
	codeNoHome          = "no-home"           // of orphans, where no tenant's logical cluster lives; a warning where it is named
	codeExportsInCache  = "exports-in-cache"  // no cache would have a copy of an APIExport any more
	codeCopyExists      = "copy-exists"       // the shard that is to get a copy has another one
	codeUnknownShard    = "unknown-shard"     // nothing in the file knows the shard that is to get copies
	codeExportsBound    = "exports-bound"     // by logical clusters that stay
)

// PurgeCodes are the codes of problems that refuse a purge, and that can be allowed not to; sorted.
func Codes() []string {
	return []string{
		codeCopyExists,
		clusters.CodeEncrypted,
		codeExportsInCache,
		clusters.CodeKeyMismatch,
		survey.CodeMigrating,
		codeNoHome,
		codeOwnerPointsHere,
		survey.CodeSystemCluster,
		survey.CodeTerminating,
		clusters.CodeUndecodable,
		codeUnknownShard,
	}
}
