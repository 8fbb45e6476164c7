package doctor

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/etcdshift/etcdshift/finding"
)

// maxFindings is how many findings of one code are kept.
const maxFindings = 1000

// Report has the findings about a file.
type Report struct {
	Findings []finding.Finding     // the gravest first, then by code and key
	Counts   map[*finding.Code]int // findings of each code, those beyond maxFindings too
}

// AtLeast reports whether any finding is of the level, or graver.
func (r *Report) AtLeast(level finding.Level) bool {
	return len(r.Findings) > 0 && r.Findings[0].Level.Compare(level) <= 0
}

// Count counts the findings of a level.
func (r *Report) Count(level finding.Level) (n int) {
	for code, count := range r.Counts {
		if code.Level == level {
			n += count
		}
	}
	return n
}

// findings collects a report.
type findings struct {
	ignored []string
	list    map[*finding.Code][]finding.Finding
	counts  map[*finding.Code]int
}

func newFindings(o Options) *findings {
	return &findings{o.ignored(), map[*finding.Code][]finding.Finding{}, map[*finding.Code]int{}}
}

// raise adds a finding about a key, or about the file where key is empty.
func (f *findings) raise(key []byte, found *finding.Finding) {
	code := found.Code
	if slices.Contains(f.ignored, code.Name) {
		return
	}
	f.counts[code]++
	if len(f.list[code]) < maxFindings {
		found.Key = string(key)
		f.list[code] = append(f.list[code], *found)
	}
}

func (f *findings) report() *Report {
	r := &Report{Findings: []finding.Finding{}, Counts: f.counts}
	for _, list := range f.list {
		r.Findings = append(r.Findings, list...)
	}
	slices.SortStableFunc(r.Findings, func(a, b finding.Finding) int {
		return cmp.Or(a.Level.Compare(b.Level), cmp.Compare(a.Code.Name, b.Code.Name), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Reason, b.Reason))
	})
	return r
}

// ordered is a map that keeps the order of its keys.
type ordered[K comparable, V any] struct {
	order []K
	by    map[K]*V
}

// of returns the value of k, zero when it is new.
func (o *ordered[K, V]) of(k K) *V {
	if o.by == nil {
		o.by = map[K]*V{}
	}
	if o.by[k] == nil {
		o.by[k] = new(V)
		o.order = append(o.order, k)
	}
	return o.by[k]
}

// tally counts objects by something they have in common, with the key of the first.
type tally[K comparable] struct{ ordered[K, tallied] }

type tallied struct {
	objects int
	first   []byte
}

func (t *tally[K]) add(k K, key []byte) {
	one := t.of(k)
	if one.objects++; one.objects == 1 {
		one.first = slices.Clone(key)
	}
}

// each visits the counts in the order of their first objects.
func (t *tally[K]) each(visit func(k K, objects int, first []byte)) {
	for _, k := range t.order {
		visit(k, t.by[k].objects, t.by[k].first)
	}
}

// first is the key of the first object.
func (t *tally[K]) first() []byte { return t.by[t.order[0]].first }

// things is a number with its noun.
func things(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
