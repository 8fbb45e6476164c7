package verify

import (
	"slices"

	"github.com/etcdshift/etcdshift/finding"
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
			codeArchiveOutdated, codeRecordLost, codeRecordChanged, codeLeaseDiffers, codeInTheClear, codeDefinitionLost, codeDefinitionDiffers,
			codeStoredVersions, codeIdentityUnknown, codeStillMigrating, codeShardMisnamed, codeCopyLost, codeCopyChanged,
			codeKeysUnderPath,
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
	codeDefinitionDiffers  = finding.Lookup("definition-changed")
	codeStoredVersions     = finding.Lookup("stored-versions")
	codeIdentityUnknown    = finding.Lookup("identity-unknown")
	codeStillMigrating     = finding.Lookup("still-migrating")
	codeShardMisnamed      = finding.Lookup("shard-misnamed")
	codeCopyLost           = finding.Lookup("copy-lost")
	codeCopyChanged        = finding.Lookup("copy-changed")
	codeKeysUnderPath      = finding.Lookup("keys-under-path").As(finding.Error, "")
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
