package infer

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// solver goes through the steps in order, more than once: each pass begins with the range of first
// revisions that the pass before left.
type solver struct {
	ledger
	db  Database
	ctx context.Context

	from, to int64 // the least and the greatest revision before the log
	leases   map[int64]*lease
	revokes  int32 // of leases that the log does not grant
	passes   int
}

// lease has the known facts about a lease.
type lease struct {
	granted bool // by the log
	known   bool // it existed at some time
	gone    bool
	keys    map[int32]bool // that a write attached
}

// maxMaybes limits the open changes of a segment, and so the time to answer them.
const maxMaybes = 20_000

// maxPasses limits the passes with one range. In recorded logs three are enough.
const maxPasses = 12

// Limits of the work, for all passes and for all tried revisions. A wrong revision fails early.
const (
	maxWork  = 2_000_000_000
	maxTried = 2_000_000
)

func (s *solver) solve() error {
	s.from, s.to = s.bounds(s.db.Revision)
	if s.from > s.to {
		return s.unsolved(0, "it does not fit to the revision of the database")
	}
	if err := s.narrow(); err != nil {
		return err
	}
	if err := s.exclude(); err != nil {
		return err
	}
	return s.narrow()
}

// narrow repeats the pass while it narrows the range of the revision before the log.
func (s *solver) narrow() error {
	for range maxPasses {
		from, to := s.from, s.to
		if err := s.pass(); err != nil {
			return err
		}
		if s.from, s.to = s.segments[0].from, s.segments[0].to; s.from == from && s.to == to {
			break
		}
	}
	return nil
}

// exclude tries the revisions at both ends of the range, and excludes those with a contradiction.
func (s *solver) exclude() error {
	from, to, limit := s.from, s.to, s.work+maxTried
	fails := func(revision int64) (bool, error) {
		s.from, s.to = revision, revision
		err := s.pass()
		s.work += 10
		if errors.Is(err, ErrUnsolved) {
			return true, nil
		}
		return false, err
	}
	for _, end := range []struct {
		at   *int64
		step int64
	}{{&from, 1}, {&to, -1}} {
		for from < to && s.work < limit {
			failed, err := fails(*end.at)
			if err != nil {
				return err
			}
			if !failed {
				break
			}
			*end.at += end.step
		}
	}
	s.from, s.to = from, to
	return nil
}

// pass goes through the steps once.
func (s *solver) pass() error {
	s.segments, s.written = []*segment{newSegment(s.from, s.to)}, s.written[:0]
	s.passes++
	s.revokes = 0
	clear(s.leases)
	for n := range s.steps {
		st := &s.steps[n]
		if s.work++; s.work > maxWork {
			return s.unsolved(n, "too much is open")
		}
		if n%1024 == 0 && s.ctx.Err() != nil {
			return s.ctx.Err()
		}
		var err error
		switch st.kind {
		case grants:
			if l := s.lease(st.lease); l.gone || !l.known && !l.granted {
				*l = lease{granted: true, known: true}
			}
		case revokes:
			err = s.revoke(int32(n), st)
		default:
			err = s.write(int32(n), st)
		}
		if err != nil {
			return err
		}
		if g := s.segment(); len(g.maybes) > maxMaybes {
			return s.unsolved(n, "too much is open")
		}
	}
	if !s.segment().pin(s.db.Revision) {
		return s.unsolved(len(s.steps)-1, "it does not lead to the revision of the database")
	}
	return nil
}

// key returns a key, prepared for the current pass.
func (s *solver) key(id int32) *key {
	k := &s.keys[id]
	if k.pass == s.passes {
		return k
	}
	k.pass, k.hist, k.tried, k.next, k.before = s.passes, k.hist[:0], k.tried[:0], 0, 0
	s.work += len(k.touches)
	for _, t := range k.touches {
		if t.x <= s.from {
			k.before = max(k.before, t.x)
		}
	}
	return k
}

func (s *solver) lease(id int64) *lease {
	l := s.leases[id]
	if l == nil {
		l = &lease{known: s.db.Leases[id]}
		s.leases[id] = l
	}
	return l
}

func (s *solver) unsolved(step int, why string) error {
	return fmt.Errorf("%w: entry %d: %s", ErrUnsolved, s.steps[step].index, why)
}

// untouched returns the record of a key that no entry of the log changed; nil if one may have.
func (s *solver) untouched(k *key) *record {
	if n := len(k.records); n > 0 && k.live && k.records[n-1].main <= s.from {
		return &k.records[n-1]
	}
	return nil
}

// write applies a put, a deletion or a transaction.
func (s *solver) write(n int32, st *step) error {
	for _, t := range st.tests {
		s.advance(t.key, n)
	}
	for _, o := range st.ops {
		s.advance(o.key, n)
	}
	holds, err := s.holds(n, st)
	if err != nil {
		return err
	}
	for _, o := range st.ops {
		if o.del || o.lease == 0 {
			continue
		}
		switch l := s.lease(o.lease); {
		case l.gone:
			holds = no
		case !l.known && holds == yes:
			holds = open
		}
	}
	change, vague := s.changes(st)
	if holds == no || change == no {
		return nil
	}
	if holds == open && change == yes {
		defer s.try(st)
	}
	if change == open {
		holds = open
	}
	proof, revision, err := s.proof(n, st)
	switch {
	case err != nil:
		return err
	case proof == no && holds == yes:
		return s.unsolved(int(n), "the database has no record of it")
	case proof == no:
		return nil
	case proof == yes:
		holds = yes
	}
	s.record(n, st, holds, vague, nil)
	if proof == yes {
		return s.pin(n, revision)
	}
	return nil
}

// try notes the only condition of a step.
func (s *solver) try(st *step) {
	if t, is := s.decisive(st); is {
		t = t.noted(s.revokes)
		if k := s.key(t.key); len(k.tried) < maxTries && !slices.Contains(k.tried, t) {
			k.tried = append(k.tried, t)
		}
	}
}

// noted returns a condition as it is noted after a number of revoked leases.
func (t test) noted(revokes int32) test {
	if t.x == 0 {
		t.revokes = revokes
	}
	return t
}

// decisive returns the condition that alone decides about a step.
func (s *solver) decisive(st *step) (t test, is bool) {
	lacks := func(o op) bool { return o.lease != 0 && !s.lease(o.lease).known }
	if len(st.tests) != 1 || st.tests[0].target == opaque || slices.ContainsFunc(st.ops, lacks) {
		return t, false
	}
	return st.tests[0], true
}

// maxTries limits the conditions noted for a key.
const maxTries = 100

// advance moves the next touch of a key behind a step.
func (s *solver) advance(id, n int32) {
	for k := s.key(id); k.next < len(k.touches) && k.touches[k.next].step <= n; {
		k.next++
	}
}

// record stores the writes of a step.
func (s *solver) record(n int32, st *step, v verdict, vague bool, attached map[int32]bool) {
	g := s.segment()
	w := write{step: n, segment: int32(len(s.segments) - 1), maybe: -1, vague: vague}
	if v == yes {
		g.certain++
	} else {
		w.maybe = g.add()
	}
	w.certain, w.maybes = g.certain, int32(len(g.maybes))
	if len(st.ops) == 0 { // deletions of unknown keys
		w.op = -1
		s.written = append(s.written, w)
	}
	for i, o := range st.ops {
		w.op, w.attached = int32(i), attached[o.key]
		k := s.key(o.key)
		k.hist = append(k.hist, int32(len(s.written)))
		s.written = append(s.written, w)
		if o.del || o.lease == 0 {
			continue
		}
		l := s.lease(o.lease)
		if l.known = l.known || v == yes; l.keys == nil {
			l.keys = map[int32]bool{}
		}
		l.keys[o.key] = true
	}
}

// pin ends the segment with the known revision of the current step.
func (s *solver) pin(n int32, revision int64) error {
	g := s.segment()
	if low, high := g.at(g.certain, len(g.maybes)); low == revision && high == revision {
		return nil
	}
	if s.work += len(g.maybes); !g.pin(revision) {
		return s.unsolved(int(n), fmt.Sprintf("revision %d does not fit", revision))
	}
	s.segments = append(s.segments, newSegment(revision, revision))
	return nil
}
