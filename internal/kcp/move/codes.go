package move

import (
	"slices"

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

// extractCodeOf is the code of a problem that reading found, as an extraction reports it.
func extractCodeOf(p finding.Finding) *finding.Code {
	return finding.Named(extractCodes(), p.Code.Name)
}

// Codes of other commands as an extraction reports them, and its own.
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

// Question is a question about a move.
type Question string

// The questions. The answer of a sound move is "no" to each.
const (
	QuestionDamaged Question = "damaged" // is a file not as it was written?
	QuestionLost    Question = "lost"    // is anything of the archive not on the destination, or not as it was?
	QuestionDoubled Question = "doubled" // is anything of the logical clusters at two places?
	QuestionTouched Question = "touched" // was anything that is not theirs changed?
)

// Questions returns all questions in the order of a report.
func Questions() []Question {
	return []Question{QuestionDamaged, QuestionLost, QuestionDoubled, QuestionTouched}
}

// codes returns the codes of findings that answer a question with yes.
func (q Question) codes() []*finding.Code {
	switch q {
	case QuestionDamaged:
		return []*finding.Code{codeDamaged, codeArchiveDamaged}
	case QuestionLost:
		return []*finding.Code{
			codeArchiveOutdated, codeRecordLost, codeRecordChanged, codeLeaseDiffers, codeInTheClear, codeDefinitionLost, codeDefinitionChanged,
			codeStoredVersions, codeIdentityUnknown, codeStillMigrating, codeShardMisnamed, codeCopyLost, codeCopyChanged,
			codeUnderPath,
		}
	case QuestionDoubled:
		return []*finding.Code{codeSameFile, codeLivesTwice, codeStillAtOrigin, codeElsewhere, codeStaleCopy}
	}
	return []*finding.Code{codeRecordAdded, codeOriginTouched, codeOtherOrigin, codeDestinationTouched, codeCacheTouched}
}

// Codes returns the codes of all findings, in the order of the questions.
func Codes() (codes []*finding.Code) {
	for _, q := range Questions() {
		codes = append(codes, q.codes()...)
	}
	return codes
}

// Ignorable returns the codes that can be ignored: all but those that end a check.
func Ignorable() []*finding.Code { return Codes()[len(QuestionDamaged.codes()):] }

func question(code *finding.Code) Question {
	all := Questions()
	return all[slices.IndexFunc(all, func(q Question) bool { return slices.Contains(q.codes(), code) })]
}

// The findings, by the questions that they answer.
var (
	codeDamaged            = finding.Lookup("damaged")
	codeArchiveDamaged     = finding.Lookup("archive-damaged")
	codeArchiveOutdated    = finding.Lookup("archive-outdated")
	codeRecordLost         = finding.Lookup("record-lost")
	codeRecordChanged      = finding.Lookup("record-changed")
	codeLeaseDiffers       = finding.Lookup("lease-differs")
	codeInTheClear         = finding.Lookup("in-the-clear")
	codeDefinitionLost     = finding.Lookup("definition-lost")
	codeDefinitionChanged  = finding.Lookup("definition-changed")
	codeStoredVersions     = finding.Lookup("stored-versions")
	codeIdentityUnknown    = finding.Lookup("identity-unknown")
	codeStillMigrating     = finding.Lookup("still-migrating")
	codeShardMisnamed      = finding.Lookup("shard-misnamed")
	codeCopyLost           = finding.Lookup("copy-lost")
	codeCopyChanged        = finding.Lookup("copy-changed")
	codeUnderPath          = finding.Lookup("keys-under-path").As(finding.Error, "")
	codeSameFile           = finding.Lookup("same-file")
	codeLivesTwice         = finding.Lookup("lives-twice")
	codeStillAtOrigin      = finding.Lookup("still-at-origin")
	codeElsewhere          = finding.Lookup("elsewhere")
	codeStaleCopy          = finding.Lookup("stale-copy")
	codeRecordAdded        = finding.Lookup("record-added")
	codeOriginTouched      = finding.Lookup("origin-touched")
	codeOtherOrigin        = finding.Lookup("other-origin")
	codeDestinationTouched = finding.Lookup("destination-touched")
	codeCacheTouched       = finding.Lookup("cache-touched")
)
