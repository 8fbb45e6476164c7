package purge

import (
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/kcp/clusters"
	"github.com/etcdshift/etcdshift/internal/kcp/survey"
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
	codeOwnerPointsHere = finding.Lookup("owner-points-here")
	codeNoHome          = finding.Lookup("no-home")
	codeExportsBound    = finding.Lookup("exports-bound")
	codeExportsInCache  = finding.Lookup("exports-in-cache")
	codeCopyExists      = finding.Lookup("copy-exists")
	codeUnknownShard    = finding.Lookup("unknown-shard")
)
