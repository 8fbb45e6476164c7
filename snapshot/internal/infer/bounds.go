package infer

import (
	"slices"

	"github.com/etcdshift/etcdshift/snapshot/internal/wal"
)

// Pairs that agree about the revision before the log.
const (
	minPairs  = 8
	maxOthers = 16   // other pairs between them
	maxBehind = 1000 // a pair with a lower revision does not narrow the range
)

// bounds finds the first range of the revision before the log.
//
// No client compares a revision of the future: that gives the lower end. As long as each step
// changes something, a write and the next condition about its key tell the revision before the log.
// Pairs of several keys that follow each other and agree are no accident: the revision of the third
// one is of the log's time.
func (p *parser) bounds(revision int64) (from, to int64) {
	from, to = 1, revision
	changes := int64(0)
	type pair struct {
		key      int32
		revision int64
		number   int // among all pairs
	}
	number := 0
	pairs := map[int64][]pair{} // by the revision before the log
	for n := range p.steps {
		st := &p.steps[n]
		for _, t := range st.tests {
			if t.target == wal.CompareMod {
				from = max(from, t.x-changes)
			}
		}
		if st.kind != grants {
			changes++
		}
		for _, o := range st.ops {
			k := &p.keys[o.key]
			for k.next < len(k.touches) && k.touches[k.next].step <= int32(n) {
				k.next++
			}
			if o.del || k.next == len(k.touches) || k.touches[k.next].x <= changes {
				continue
			}
			x := k.touches[k.next].x
			number++
			if x-changes < from-maxBehind {
				continue
			}
			if list := pairs[x-changes]; !slices.ContainsFunc(list, func(p pair) bool { return p.key == o.key }) &&
				len(list) < minPairs {
				pairs[x-changes] = append(list, pair{o.key, x, number})
			}
		}
	}
	from = max(from, revision-changes)
	highest := int64(-1)
	for before, list := range pairs {
		if before > highest && len(list) == minPairs && list[minPairs-1].number-list[0].number < minPairs+maxOthers {
			highest = before
			to = min(revision, list[2].revision-1)
		}
	}
	return from, to
}
