package move

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/etcdshift/etcdshift/finding"
)

// Verdict is the result of checking a move.
type Verdict struct {
	From      string // name of the shard; "" if unknown
	To        string
	Clusters  []Moved
	Answers   []Answer  // one for each question, in the order of Questions
	Findings  []Finding // by code, in the order of Codes, file and key
	Unchecked []Finding // questions that the files do not answer, without a code
	Notes     []string  // remarks that are not findings
}

// Moved is a logical cluster of the move.
type Moved struct {
	Name string `json:"name"`
	Path string `json:"path"`
	Keys int    `json:"keys"`
}

// Answer is the answer to one question.
type Answer struct {
	Question Question `json:"question"`
	Answer   string   `json:"answer"`  // "no", "yes" or "unknown"
	Checked  int      `json:"checked"` // checked records; files for QuestionDamaged
	Findings int      `json:"findings"`
}

// Finding is a difference from a sound move.
type Finding struct {
	finding.Finding // without a key if about the file, or a logical cluster, as a whole
	Question        Question
	File            string // the path of the file with the finding
}

// Sound reports whether everything was checked without findings: the answer to each question is
// "no".
func (v *Verdict) Sound() bool {
	if len(v.Findings)+len(v.Unchecked) > 0 || len(v.Answers) != len(Questions()) {
		return false
	}
	return !slices.ContainsFunc(v.Answers, func(a Answer) bool { return a.Answer != "no" })
}

// Question is a question about a move.
type Question string

// The questions. The answer for a sound move is "no" to each question.
const (
	QuestionDamaged Question = "damaged" // was a file changed after it was written?
	QuestionLost    Question = "lost"    // is a record of the archive missing or changed on the destination?
	QuestionDoubled Question = "doubled" // are records of the logical clusters in two places?
	QuestionTouched Question = "touched" // was any other record changed?
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
			codeArchiveOutdated, codeRecordLost, codeRecordChanged, codeLeaseDiffers, codeInTheClear,
			codeDefinitionLost,
			codeDefinitionChanged, codeStoredVersions, codeIdentityUnknown, codeStillMigrating, codeShardMisnamed,
			codeCopyLost, codeCopyChanged, codeUnderPath,
		}
	case QuestionDoubled:
		return []*finding.Code{codeSameFile, codeLivesTwice, codeStillAtOrigin, codeElsewhere, codeStaleCopy}
	}
	return []*finding.Code{codeRecordAdded, codeOriginTouched, codeOtherOrigin, codeDestinationTouched,
		codeCacheTouched}
}

// Codes returns the codes of all findings, in the order of the questions.
func Codes() (codes []*finding.Code) {
	for _, q := range Questions() {
		codes = append(codes, q.codes()...)
	}
	return codes
}

// Ignorable returns the codes that Move.Ignore accepts: all but the codes that end a check.
func Ignorable() []*finding.Code { return Codes()[len(QuestionDamaged.codes()):] }

func question(code *finding.Code) Question {
	all := Questions()
	return all[slices.IndexFunc(all, func(q Question) bool { return slices.Contains(q.codes(), code) })]
}

// The codes of findings, by their questions.
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

// findings collects the results of a check.
type findings struct {
	Verdict
	checked map[Question]int
	about   map[[3]string]bool // code, file and key of each finding
}

func newFindings() *findings {
	return &findings{Verdict: Verdict{Clusters: []Moved{}, Notes: []string{}}, checked: map[Question]int{},
		about: map[[3]string]bool{}}
}

// found adds a finding about the file. Of two findings with one code and key, the first stays.
func (f *file) found(code *finding.Code, key, format string, args ...any) {
	at := [3]string{code.Name, f.path, key}
	if key != "" && f.about[at] {
		return
	}
	f.about[at] = true
	f.Findings = append(f.Findings, Finding{*code.Because(format, args...).At(key), question(code), f.path})
}

func (f *file) unchecked(q Question, key, format string, args ...any) {
	f.Unchecked = append(f.Unchecked, Finding{finding.Finding{Key: key, Reason: fmt.Sprintf(format, args...)}, q,
		f.path})
}

func (f *findings) note(format string, args ...any) {
	f.Notes = append(f.Notes, fmt.Sprintf(format, args...))
}

// finish sorts the findings and answers the questions. If the files could not be compared, finish
// answers only QuestionDamaged.
func (f *findings) finish(ignore []string, compared bool) *Verdict {
	f.Findings = slices.DeleteFunc(f.Findings, func(one Finding) bool {
		return one.Question != QuestionDamaged && slices.Contains(ignore, one.Code.Name)
	})
	all := Codes()
	slices.SortStableFunc(f.Findings, func(a, b Finding) int {
		return cmp.Or(slices.Index(all, a.Code)-slices.Index(all, b.Code), cmp.Compare(a.File, b.File),
			cmp.Compare(a.Key, b.Key))
	})
	for _, q := range Questions() {
		a := Answer{Question: q, Answer: "no", Checked: f.checked[q]}
		if !compared && q != QuestionDamaged ||
			slices.ContainsFunc(f.Unchecked, func(u Finding) bool { return u.Question == q }) {
			a.Answer = "unknown"
		}
		for _, one := range f.Findings {
			if one.Question == q {
				a.Answer = "yes"
				a.Findings++
			}
		}
		f.Answers = append(f.Answers, a)
	}
	return &f.Verdict
}
