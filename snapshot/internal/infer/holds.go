package infer

import (
	"fmt"
	"slices"

	"github.com/etcdshift/etcdshift/snapshot/internal/wal"
)

// holds reports whether the conditions of a step hold.
func (s *solver) holds(n int32, st *step) (verdict, error) {
	all := yes
	for _, t := range st.tests {
		v, err := s.test(n, t)
		if err != nil || v == no {
			return no, err
		}
		all = min(all, v)
	}
	return all, nil
}

// test reports whether a condition holds.
func (s *solver) test(n int32, t test) (verdict, error) {
	k := s.key(t.key)
	if t.target == wal.CompareMod && t.x > s.segments[0].to {
		if err := s.named(n, k, t.x); err != nil {
			return no, err
		}
	}
	can, must := false, true
	initial := s.states(k, func(w *write) {
		v := s.testWrite(t, w)
		can, must = can || v != no, must && v == yes
	})
	if initial {
		v := s.testInitial(t, k)
		can, must = can || v != no, must && v == yes
	}
	switch {
	case !can:
		return no, nil
	case must:
		return yes, nil
	}
	return open, nil
}

// testWrite reports whether a condition holds after a write.
func (s *solver) testWrite(t test, w *write) verdict {
	del := s.deletes(w)
	is := func(b bool) verdict {
		if b {
			return yes
		}
		return no
	}
	switch t.target {
	case wal.CompareMod:
		low, high := s.revisions(w)
		switch {
		case del:
			return is(t.x == 0)
		case t.x < low || t.x > high:
			return no
		case low == high:
			return yes
		}
	case wal.CompareVersion, wal.CompareCreate:
		if del || t.x == 0 {
			return is(del && t.x == 0)
		}
	}
	return open
}

// testInitial reports whether a condition holds in the store before the log.
func (s *solver) testInitial(t test, k *key) verdict {
	if rec := s.untouched(k); rec != nil {
		x := map[int8]int64{wal.CompareMod: rec.main, wal.CompareVersion: rec.version, wal.CompareCreate: rec.create}
		value, known := x[t.target]
		switch {
		case !known:
			return open
		case value == t.x:
			return yes
		}
		return no
	}
	if slices.Contains(k.tried, t.noted(s.revokes)) {
		return no
	}
	if t.target == wal.CompareMod && t.x != 0 && (t.x < k.before || t.x > s.segments[0].to) {
		return no
	}
	return open
}

// named finds the write with a revision that a condition names. If only one write can have the
// revision, it happened.
func (s *solver) named(n int32, k *key, revision int64) error {
	found, others := s.withRevision(k, revision)
	switch {
	case found < 0:
		return s.unsolved(int(n), fmt.Sprintf("a condition names revision %d, and no write has it", revision))
	case others:
		return nil
	}
	w := &s.written[found]
	s.work += len(s.segments[w.segment].maybes)
	if w.maybe >= 0 && !s.segments[w.segment].settle(w.maybe, yes) {
		return s.unsolved(int(n), fmt.Sprintf("a condition names revision %d, and the write did not happen", revision))
	}
	return nil
}

// changes reports whether a step changes something if its conditions hold: a deletion needs its
// key.
// vague reports that the number of changes before each change is not sure.
func (s *solver) changes(st *step) (change verdict, vague bool) {
	change = no
	for _, o := range st.ops {
		v := yes
		if o.del {
			v = s.exists(st, o.key)
		}
		vague = vague || v != yes && len(st.ops) > 1
		if change != yes && v != no {
			change = v
		}
	}
	return change, vague
}

// exists reports whether a key exists if the conditions of a step hold.
func (s *solver) exists(st *step, id int32) verdict {
	for _, t := range st.tests {
		if t.key == id && t.target != opaque {
			if t.x == 0 {
				return no
			}
			return yes
		}
	}
	k, can, must := s.key(id), false, true
	initial := s.states(k, func(w *write) {
		can, must = can || !s.deletes(w), must && !s.deletes(w)
	})
	switch {
	case initial && s.untouched(k) == nil:
		return open
	case initial:
		can = true
	}
	switch {
	case !can:
		return no
	case must:
		return yes
	}
	return open
}

// implied returns the revision of a key that the conditions of a step require: absent if the key
// may not exist, 0 if they tell nothing.
func (st *step) implied(id int32) (revision int64, absent, exists bool) {
	for _, t := range st.tests {
		if t.key != id || t.target == opaque {
			continue
		}
		if t.x == 0 {
			absent = true
		} else if exists = true; t.target == wal.CompareMod {
			revision = t.x
		}
	}
	return revision, absent, exists
}
