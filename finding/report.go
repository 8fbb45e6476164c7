package finding

import (
	"cmp"
	"slices"
)

// MaxListed is the limit of listed findings of one code in a Report.
const MaxListed = 1000

// Report collects findings. The zero value is empty. A Report is not safe for concurrent use.
type Report struct {
	Findings []Finding     // after Sort: the gravest first, then by code and key
	Counts   map[*Code]int // findings of each code, including findings beyond MaxListed
	Ignored  []string      // the names of codes that Add leaves out
}

// Add adds a finding.
func (r *Report) Add(f *Finding) {
	if slices.Contains(r.Ignored, f.Code.Name) {
		return
	}
	if r.Counts == nil {
		r.Counts = map[*Code]int{}
	}
	if r.Counts[f.Code]++; r.Counts[f.Code] <= MaxListed {
		r.Findings = append(r.Findings, *f)
	}
}

// Sort sorts the findings by level, code, key and reason.
func (r *Report) Sort() {
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(a.Level.Compare(b.Level), cmp.Compare(a.Code.Name, b.Code.Name), cmp.Compare(a.Key, b.Key),
			cmp.Compare(a.Reason, b.Reason))
	})
}

// Of returns the listed findings of a code.
func (r *Report) Of(code *Code) (found []Finding) {
	for _, f := range r.Findings {
		if f.Code == code {
			found = append(found, f)
		}
	}
	return found
}

// AtLeast reports whether any finding is of the level or graver.
func (r *Report) AtLeast(level Level) bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Level.Compare(level) <= 0 })
}

// Count returns the number of findings of all codes of a level.
func (r *Report) Count(level Level) (n int) {
	for code, count := range r.Counts {
		if code.Level == level {
			n += count
		}
	}
	return n
}
