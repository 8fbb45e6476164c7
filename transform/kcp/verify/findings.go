package verify

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/etcdshift/etcdshift/finding"
)

// findings collects the results of a check.
type findings struct {
	Verdict
	checked map[Question]int
	about   map[[3]string]bool // code, file and key of each finding
}

func newFindings() *findings {
	return &findings{Verdict: Verdict{Clusters: []Moved{}, Notes: []string{}}, checked: map[Question]int{}, about: map[[3]string]bool{}}
}

// found adds a finding. Of two findings with one code and key, the first stays.
func (f *findings) found(code *finding.Code, in *file, key, format string, args ...any) {
	at := [3]string{code.Name, in.path, key}
	if key != "" && f.about[at] {
		return
	}
	f.about[at] = true
	f.Findings = append(f.Findings, Finding{*code.Because(format, args...).At(key), question(code), in.path})
}

func (f *findings) unchecked(q Question, in *file, key string, reason any) {
	f.Unchecked = append(f.Unchecked, Finding{finding.Finding{Key: key, Reason: fmt.Sprint(reason)}, q, in.path})
}

func (f *findings) note(format string, args ...any) {
	f.Notes = append(f.Notes, fmt.Sprintf(format, args...))
}

// finish sorts the findings and answers the questions. If the files could not be compared, it
// answers only QuestionDamaged.
func (f *findings) finish(ignore []string, compared bool) *Verdict {
	f.Findings = slices.DeleteFunc(f.Findings, func(one Finding) bool {
		return one.Question != QuestionDamaged && slices.Contains(ignore, one.Code.Name)
	})
	all := Codes()
	slices.SortStableFunc(f.Findings, func(a, b Finding) int {
		return cmp.Or(slices.Index(all, a.Code)-slices.Index(all, b.Code), cmp.Compare(a.File, b.File), cmp.Compare(a.Key, b.Key))
	})
	for _, q := range Questions() {
		a := Answer{Question: q, Answer: "no", Checked: f.checked[q]}
		if !compared && q != QuestionDamaged || slices.ContainsFunc(f.Unchecked, func(u Finding) bool { return u.Question == q }) {
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
