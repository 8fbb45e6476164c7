package logicalcluster

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

func order(q Question) int { return slices.Index(Questions(), q) }

// Code is a kind of finding about a move. Codes are stable; each is a line of docs/logical-clusters.md.
type Code string

// The findings.
const (
	CodeDamaged        Code = "damaged"
	CodeArchiveDamaged Code = "archive-damaged"

	CodeRecordLost         Code = "record-lost"
	CodeRecordChanged      Code = "record-changed"
	CodeLeaseDiffers       Code = "lease-differs"
	CodeInTheClear         Code = "in-the-clear"
	CodeDefinitionLost     Code = "definition-lost"
	CodeStoredVersions     Code = "stored-versions"
	CodeDefinitionDiffers  Code = "definition-differs"
	CodeIdentityUnknown    Code = "identity-unknown"
	CodeStillMigrating     Code = "still-migrating"
	CodeShardMisnamed      Code = "shard-misnamed"
	CodeSameFile           Code = "same-file"
	CodeLivesTwice         Code = "lives-twice"
	CodeStillAtOrigin      Code = "still-at-origin"
	CodeElsewhere          Code = "elsewhere"
	CodeStaleCopy          Code = "stale-copy"
	CodeOtherOrigin        Code = "other-origin"
	CodeRecordAdded        Code = "record-added"
	CodeOriginTouched      Code = "origin-touched"
	CodeDestinationTouched Code = "destination-touched"
)

// questions says to which question the finding is an answer, and in which order the codes are listed.
func questions() []struct {
	code     Code
	question Question
} {
	return []struct {
		code     Code
		question Question
	}{
		{CodeDamaged, QuestionDamaged},
		{CodeArchiveDamaged, QuestionDamaged},
		{CodeRecordLost, QuestionLost},
		{CodeRecordChanged, QuestionLost},
		{CodeLeaseDiffers, QuestionLost},
		{CodeInTheClear, QuestionLost},
		{CodeDefinitionLost, QuestionLost},
		{CodeDefinitionDiffers, QuestionLost},
		{CodeStoredVersions, QuestionLost},
		{CodeIdentityUnknown, QuestionLost},
		{CodeStillMigrating, QuestionLost},
		{CodeShardMisnamed, QuestionLost},
		{CodeSameFile, QuestionDoubled},
		{CodeLivesTwice, QuestionDoubled},
		{CodeStillAtOrigin, QuestionDoubled},
		{CodeElsewhere, QuestionDoubled},
		{CodeStaleCopy, QuestionDoubled},
		{CodeOtherOrigin, QuestionTouched},
		{CodeRecordAdded, QuestionTouched},
		{CodeOriginTouched, QuestionTouched},
		{CodeDestinationTouched, QuestionTouched},
	}
}

// Question is the one that a finding of the code answers.
func (c Code) Question() Question {
	for _, q := range questions() {
		if q.code == c {
			return q.question
		}
	}
	return ""
}

// Codes are those of all findings, in the order of the documentation.
func Codes() (codes []Code) {
	for _, q := range questions() {
		codes = append(codes, q.code)
	}
	return codes
}
