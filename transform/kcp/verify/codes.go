package verify

import "slices"

// Question is one of those that judging a move answers.
type Question string

// The questions. The answer of a sound move is "no" to each.
const (
	QuestionDamaged Question = "damaged" // is a file not as it was written?
	QuestionLost    Question = "lost"    // is anything of the archive not on the destination, or not as it was?
	QuestionDoubled Question = "doubled" // is anything of the logical clusters at two places?
	QuestionTouched Question = "touched" // was anything that is not theirs changed?
)

// Questions are all of them, in the order of a report.
func Questions() []Question {
	return []Question{QuestionDamaged, QuestionLost, QuestionDoubled, QuestionTouched}
}

// Code is a kind of finding about a move. Codes are stable; each is a line of docs/logical-clusters.md.
type Code string

// The findings, by the questions that they answer.
const (
	CodeDamaged        Code = "damaged"
	CodeArchiveDamaged Code = "archive-damaged"

	CodeArchiveOutdated   Code = "archive-outdated"
	CodeRecordLost        Code = "record-lost"
	CodeRecordChanged     Code = "record-changed"
	CodeLeaseDiffers      Code = "lease-differs"
	CodeInTheClear        Code = "in-the-clear"
	CodeDefinitionLost    Code = "definition-lost"
	CodeDefinitionDiffers Code = "definition-differs"
	CodeStoredVersions    Code = "stored-versions"
	CodeIdentityUnknown   Code = "identity-unknown"
	CodeStillMigrating    Code = "still-migrating"
	CodeShardMisnamed     Code = "shard-misnamed"
	CodeCopyLost          Code = "copy-lost"
	CodeCopyChanged       Code = "copy-changed"

	CodeSameFile      Code = "same-file"
	CodeLivesTwice    Code = "lives-twice"
	CodeStillAtOrigin Code = "still-at-origin"
	CodeElsewhere     Code = "elsewhere"
	CodeStaleCopy     Code = "stale-copy"

	CodeRecordAdded        Code = "record-added"
	CodeOriginTouched      Code = "origin-touched"
	CodeOtherOrigin        Code = "other-origin"
	CodeDestinationTouched Code = "destination-touched"
	CodeCacheTouched       Code = "cache-touched"
)

// codes are those of the findings that answer a question.
func (q Question) codes() []Code {
	switch q {
	case QuestionDamaged:
		return []Code{CodeDamaged, CodeArchiveDamaged}
	case QuestionLost:
		return []Code{
			CodeArchiveOutdated, CodeRecordLost, CodeRecordChanged, CodeLeaseDiffers, CodeInTheClear, CodeDefinitionLost, CodeDefinitionDiffers, CodeStoredVersions,
			CodeIdentityUnknown, CodeStillMigrating, CodeShardMisnamed, CodeCopyLost, CodeCopyChanged,
		}
	case QuestionDoubled:
		return []Code{CodeSameFile, CodeLivesTwice, CodeStillAtOrigin, CodeElsewhere, CodeStaleCopy}
	}
	return []Code{CodeRecordAdded, CodeOriginTouched, CodeOtherOrigin, CodeDestinationTouched, CodeCacheTouched}
}

// Codes are those of all findings, in the order of the questions.
func Codes() (codes []Code) {
	for _, q := range Questions() {
		codes = append(codes, q.codes()...)
	}
	return codes
}

// Ignorable tells whether findings of the code can be left out: not what ends judging, so that nobody knows the rest.
func (c Code) Ignorable() bool { return c.Question() != QuestionDamaged && c.Question() != "" }

// Question is the one that a finding of the code answers.
func (c Code) Question() Question {
	for _, q := range Questions() {
		if slices.Contains(q.codes(), c) {
			return q
		}
	}
	return ""
}
