package doctor

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/finding"
)

// maxFindings is how many findings of one code are kept.
const maxFindings = 1000

// Report is the result of a run.
type Report struct {
	Findings []finding.Finding     // the gravest first, then by code and key
	Counts   map[*finding.Code]int // findings of each code, those beyond maxFindings too
	ignored  []string              // codes
}

func newReport(o Options) *Report {
	r := &Report{Findings: []finding.Finding{}, Counts: map[*finding.Code]int{}, ignored: o.Ignore}
	if o.Archive {
		r.ignored = append(finding.Names(codeBumpRevision, codeEtcdVersion, codeShardPartial), o.Ignore...)
	}
	return r
}

// AtLeast tells whether any finding is of the level or graver.
func (r *Report) AtLeast(level finding.Level) bool {
	return len(r.Findings) > 0 && r.Findings[0].Level.Compare(level) <= 0
}

// Count returns the number of findings of a level.
func (r *Report) Count(level finding.Level) (n int) {
	for code, count := range r.Counts {
		if code.Level == level {
			n += count
		}
	}
	return n
}

// raise adds a finding about a key, or about the file if key is empty.
func (r *Report) raise(key []byte, code *finding.Code, format string, args ...any) {
	r.add(code.Because(format, args...).At(string(key)))
}

// raiseMany adds a finding about counted things. The first verb of format takes their number.
func (r *Report) raiseMany(c count, code *finding.Code, thing, format string, args ...any) {
	found := code.Because(format, append([]any{things(c.objects, thing)}, args...)...)
	r.add(found.At(string(c.first)).About(c.objects))
}

func (r *Report) add(f *finding.Finding) {
	if slices.Contains(r.ignored, f.Code.Name) {
		return
	}
	if r.Counts[f.Code]++; r.Counts[f.Code] <= maxFindings {
		r.Findings = append(r.Findings, *f)
	}
}

func (r *Report) addAll(found []*finding.Finding) {
	for _, f := range found {
		r.add(f)
	}
}

func (r *Report) sorted() *Report {
	slices.SortStableFunc(r.Findings, func(a, b finding.Finding) int {
		return cmp.Or(a.Level.Compare(b.Level), cmp.Compare(a.Code.Name, b.Code.Name), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Reason, b.Reason))
	})
	return r
}

// ordered is a map that remembers the order of its keys.
type ordered[K comparable, V any] struct {
	keys []K
	by   map[K]*V
}

// at returns the value of a key, a new one for a new key.
func (o *ordered[K, V]) at(k K) *V {
	if o.by == nil {
		o.by = map[K]*V{}
	}
	if o.by[k] == nil {
		o.by[k] = new(V)
		o.keys = append(o.keys, k)
	}
	return o.by[k]
}

func (o *ordered[K, V]) all() iter.Seq2[K, *V] {
	return func(yield func(K, *V) bool) {
		for _, k := range o.keys {
			if !yield(k, o.by[k]) {
				return
			}
		}
	}
}

// tally counts objects by something they have in common.
type tally[K comparable] struct {
	ordered[K, count]
	total count
}

// count is a number of objects, with the key of the first.
type count struct {
	objects int
	first   []byte
}

func (t *tally[K]) add(k K, key []byte) {
	for _, c := range []*count{t.at(k), &t.total} {
		if c.objects++; c.objects == 1 {
			c.first = key
		}
	}
}

// things is a number of things for people.
func things(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

func are(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// list joins words for people.
func list(words []string) string { return cmp.Or(strings.Join(words, ", "), "none") }
