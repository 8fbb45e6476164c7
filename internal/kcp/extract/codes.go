package extract

import (
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/kcp/clusters"
	"github.com/etcdshift/etcdshift/internal/kcp/survey"
)

func codes() []*finding.Code {
	return []*finding.Code{
		codeEncrypted, survey.CodeUndecodable, codeMissingDefinition, codeOddName, clusters.CodeKeyMismatch, survey.CodeSystemCluster,
		survey.CodeTerminating, survey.CodeMigrating, finding.UnknownKey, survey.CodeShardName, survey.CodeChildrenStay,
		survey.CodeChildElsewhere, survey.CodeOwnerUnseen, codeKeysUnderPath,
	}
}

// codeOf is the code of a problem that reading found, as an extraction reports it.
func codeOf(p finding.Finding) *finding.Code { return finding.Named(codes(), p.Code.Name) }

// What codes of other commands mean to an extraction, and its own.
var (
	codeEncrypted         = finding.Lookup("encrypted").As(finding.Error, "")
	codeMissingDefinition = finding.Lookup("missing-definition").As(finding.Warning, "")
	codeKeysUnderPath     = finding.Lookup("keys-under-path")
	codeOddName           = finding.Lookup("odd-name")
)
