package doctor

import (
	"cmp"
	"fmt"
	"iter"
	"strings"

	"github.com/etcdshift/etcdshift/finding"
)

func newReport(o Options) *finding.Report {
	r := &finding.Report{Findings: []finding.Finding{}, Counts: map[*finding.Code]int{}, Ignored: o.Ignore}
	if o.Archive {
		r.Ignored = append(finding.Names(codeBumpRevision, codeEtcdVersion, codeShardPartial), o.Ignore...)
	}
	return r
}

// raise adds a finding about a key, or about the file if key is empty.
func (d *doctor) raise(key []byte, code *finding.Code, format string, args ...any) {
	d.Add(code.Because(format, args...).At(string(key)))
}

// raiseMany adds a finding about counted things. The first verb of format takes their number.
func (d *doctor) raiseMany(c count, code *finding.Code, thing, format string, args ...any) {
	found := code.Because(format, append([]any{things(c.objects, thing)}, args...)...)
	d.Add(found.At(string(c.first)).About(c.objects))
}

func (d *doctor) addAll(found []*finding.Finding) {
	for _, f := range found {
		d.Add(f)
	}
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
