package move

import (
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/kcp"
)

// The codes that several commands report.
var (
	codeUndecodable       = finding.Lookup("undecodable").As(finding.Error, "")
	codeWouldBePlaintext  = finding.Lookup("would-be-plaintext").As(finding.Error, "")
	codeSystemCluster     = finding.Lookup("system-cluster")
	codeTerminating       = finding.Lookup("terminating")
	codeMigrating         = finding.Lookup("migrating")
	codeShardName         = finding.Lookup("shard-name")
	codeChildrenStay      = finding.Lookup("children-stay")
	codeChildElsewhere    = finding.Lookup("child-elsewhere")
	codeOwnerUnseen       = finding.Lookup("owner-unseen")
	codeUnserved          = finding.Lookup("unserved")
	codeUnlistedVersion   = finding.Lookup("unlisted-version").As(finding.Error, finding.WentOn)
	codeMissingDefinition = finding.Lookup("missing-definition")
)

func extractCodes() []*finding.Code {
	return []*finding.Code{
		codeNotDecrypted, codeUndecodable, codeDefinitionMissing, codeOddName, kcp.CodeKeyMismatch, codeSystemCluster,
		codeTerminating, codeMigrating, finding.UnknownKey, codeShardName, codeChildrenStay,
		codeChildElsewhere, codeOwnerUnseen, codeKeysUnderPath,
	}
}

// extractCodeOf returns the code that an extraction reports for a problem of reading.
func extractCodeOf(p finding.Finding) *finding.Code {
	return finding.Named(extractCodes(), p.Code.Name)
}

// Codes of an extraction: its own, and codes of other commands with another level.
var (
	codeNotDecrypted      = finding.Lookup("encrypted").As(finding.Error, "")
	codeDefinitionMissing = finding.Lookup("missing-definition").As(finding.Warning, "")
	codeKeysUnderPath     = finding.Lookup("keys-under-path")
	codeOddName           = finding.Lookup("odd-name")
)

func purgeCodes() []*finding.Code {
	return []*finding.Code{
		codeOwnerPointsHere, codeNoHome, codeExportsBound, codeExportsInCache, codeCopyExists, codeUnknownShard,
		codeWouldBePlaintext, kcp.CodeEncrypted, kcp.CodeUndecodable, kcp.CodeKeyMismatch,
		codeSystemCluster, codeTerminating, codeMigrating, finding.UnknownKey,
		codeShardName, codeChildrenStay, codeChildElsewhere, codeOwnerUnseen,
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
