package infer

import (
	"fmt"
	"slices"

	"github.com/etcdshift/etcdshift/snapshot/internal/wal"
)

// proof looks for evidence about a step that may have happened: the next condition about its key,
// and the records of the database. With yes, the revision is known.
func (s *solver) proof(n int32, st *step) (v verdict, revision int64, err error) {
	g := s.segment()
	low, high := g.at(g.certain+1, len(g.maybes))
	for i := range st.ops {
		if st.ops[i].del && len(st.ops) > 1 { // its key may be absent
			continue
		}
		one, at := s.proofOf(n, st, i, low, high)
		switch {
		case one == no:
			return no, 0, nil
		case one == yes && v == yes && at != revision:
			return no, 0, s.unsolved(int(n), fmt.Sprintf("it has the revisions %d and %d", at, revision))
		case one == yes:
			v, revision = yes, at
		}
	}
	return v, revision, nil
}

// proofOf is proof for an operation of the step, whose revision is in a range.
func (s *solver) proofOf(n int32, st *step, i int, low, high int64) (v verdict, revision int64) {
	o := st.ops[i]
	k := s.key(o.key)
	if last := len(k.records) - 1; last >= 0 && k.live && k.records[last].main < low {
		return no, 0 // the record in the database is older
	}
	if x := s.nextNamed(st, o.key); !o.del && x >= low && x <= high {
		if earlier, _ := s.withRevision(k, x); earlier < 0 {
			return yes, x
		}
	}
	from, _ := slices.BinarySearchFunc(k.records, low, func(r record, low int64) int {
		if r.main < low {
			return -1
		}
		return 1
	})
	_, absent, exists := st.implied(o.key)
	same, others := record{}, false
	for i, r := range k.records[from:] {
		if r.main > high {
			break
		}
		if s.work++; i == maxLooks {
			return open, 0
		}
		if r.del != o.del || !r.del && (r.hash != o.hash || absent && r.version != 1 || exists && r.version == 1) {
			continue
		}
		others, same = same.main > 0, r
	}
	switch {
	case same.main == 0 && low > s.db.Compacted:
		return no, 0 // the database has all later records
	case same.main == 0 || others || o.del: // a deletion has no value: another entry may have made it
		return open, 0
	}
	if earlier, _ := s.withRevision(k, same.main); earlier >= 0 {
		return open, 0
	}
	return yes, same.main
}

// nextNamed returns the revision of the log's time that the next condition about a key names, 0 for
// none. Conditions that fail whether or not the step changes the key are skipped; the condition
// that the key is absent is not one of them, because the end of a lease may delete the key.
func (s *solver) nextNamed(st *step, id int32) int64 {
	k := s.key(id)
	own, is := s.decisive(st)
	initial := true // the key is as before the log, unless the step changes it
	s.states(k, func(*write) { initial = false })
	for i, t := range k.touches[k.next:] {
		if s.work++; i == maxTries {
			return 0
		}
		if t.x > s.segments[0].to {
			return t.x
		}
		again := test{key: id, target: wal.CompareMod, x: t.x}
		if t.x <= 0 || !(initial && slices.Contains(k.tried, again)) && !(is && own == again) {
			return 0
		}
	}
	return 0
}

// revoke applies the end of a lease, which deletes its keys.
func (s *solver) revoke(n int32, st *step) error {
	l := s.lease(st.lease)
	if l.gone {
		return nil
	}
	v, unsure := no, map[int32]bool{}
	if !l.granted { // keys may be attached that the log does not name
		v = open
		s.revokes++
	}
	st.ops = st.ops[:0]
	ids := make([]int32, 0, len(l.keys))
	for id := range l.keys {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b int32) int {
		if s.keys[a].name < s.keys[b].name {
			return -1
		}
		return 1
	})
	for _, id := range ids {
		can, must := false, true
		initial := s.states(s.key(id), func(w *write) {
			is := !s.deletes(w) && s.steps[w.step].ops[w.op].lease == st.lease
			can, must = can || is, must && is
		})
		if must = must && !initial; !can {
			continue
		}
		st.ops = append(st.ops, op{key: id, del: true})
		if must {
			v = yes
		} else if unsure[id] = true; v == no {
			v = open
		}
	}
	l.gone, l.keys = true, nil
	if v == no {
		return nil
	}
	s.record(n, st, v, !l.granted || len(unsure) > 0, unsure)
	return nil
}
