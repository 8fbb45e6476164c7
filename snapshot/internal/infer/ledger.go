package infer

import "sort"

// write is a put or deletion by a step, certain or not.
type write struct {
	step, op int32 // op is -1 for deletions of unknown keys
	segment  int32
	maybe    int32 // of the segment; -1 for a certain one
	maybes   int32 // of the segment, up to the write
	certain  int64 // changes of the segment, up to the write
	// attached: the deletion by a revoked lease, to which the key may not be attached.
	attached bool
	vague    bool // its place within its revision is not sure
}

// ledger holds the writes of a pass, and their revisions as far as they are known.
type ledger struct {
	*parser
	segments []*segment
	written  []write
	work     int // looks at writes, records and conditions so far
}

// maxLooks limits the looks for evidence about one step.
const maxLooks = 1000

func (l *ledger) segment() *segment { return l.segments[len(l.segments)-1] }

// verdict reports whether a write happened.
func (l *ledger) verdict(w *write) verdict {
	if w.maybe < 0 {
		return yes
	}
	return l.segments[w.segment].maybes[w.maybe]
}

// revisions returns the range of the revision of a write.
func (l *ledger) revisions(w *write) (low, high int64) {
	g := l.segments[w.segment]
	low, high = g.at(w.certain, int(w.maybes))
	if w.maybe >= 0 && g.maybes[w.maybe] == open { // if it happened
		before, _ := g.at(w.certain, int(w.maybes)-1)
		low = max(low, before+1)
	}
	return low, high
}

func (l *ledger) deletes(w *write) bool { return l.steps[w.step].ops[w.op].del }

// states calls fn with the possible last writes of a key, the newest first, and reports whether its
// state before the log is possible too.
func (l *ledger) states(k *key, fn func(w *write)) (initial bool) {
	for i := len(k.hist) - 1; i >= 0; i-- {
		w := &l.written[k.hist[i]]
		l.work++
		v := l.verdict(w)
		if v == no {
			continue
		}
		if fn(w); v == yes && !w.attached {
			return false
		}
	}
	return true
}

// withRevision returns a put of a key that may have a revision, -1 for none, and whether there are
// others.
func (l *ledger) withRevision(k *key, revision int64) (found int32, others bool) {
	first := sort.Search(len(k.hist), func(i int) bool {
		_, high := l.segments[l.written[k.hist[i]].segment].at(l.written[k.hist[i]].certain,
			int(l.written[k.hist[i]].maybes))
		return high >= revision
	})
	found = -1
	for i, n := range k.hist[first:] {
		if l.work++; i == maxLooks {
			return max(found, 0), true
		}
		w := &l.written[n]
		low, high := l.revisions(w)
		if g := l.segments[w.segment]; g.from+w.certain > revision {
			break
		}
		if l.verdict(w) == no || l.deletes(w) || revision < low || revision > high {
			continue
		}
		if found >= 0 {
			return found, true
		}
		found = n
	}
	return found, false
}
