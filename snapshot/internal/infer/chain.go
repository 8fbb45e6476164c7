package infer

import (
	"fmt"
	"slices"
)

// item is a record of a key: a sure write, a record of the database, or both.
type item struct {
	main, sub       int64
	create, version int64 // 0 if unknown
	del             bool
	written         int32 // the write, -1 for none
	stored          bool  // in the database
	broken          bool  // a write that is not sure may lie between this record and the one before
	absent, exists  bool  // what the conditions of the write require
}

// chains are the records of all keys.
type chains struct {
	*solver
	sol   *Solution
	items [][]item // by key
}

// finish finds the sure writes of a solved log, their numbers, and the first complete state.
func (sol *Solution) finish(s *solver) error {
	c := &chains{s, sol, make([][]item, len(s.keys))}
	sol.Oldest = s.to + 1
	mains := c.sure()
	rev := sol.compacted
	for i := len(mains) - 1; i >= 0 && mains[i] >= rev; i-- {
		if mains[i] == rev {
			rev--
		}
	}
	sol.Complete = max(rev, 0)
	spans := c.unsure()
	for id := range s.keys {
		err := c.number(int32(id))
		if err == nil {
			err = c.explain(int32(id), spans)
		}
		if err != nil {
			return err
		}
		c.follow(int32(id))
	}
	sol.Complete = min(sol.Complete, sol.compacted)
	slices.SortFunc(sol.Unknown, func(a, b Unknown) int {
		if a.Key < b.Key {
			return -1
		}
		return 1
	})
	return c.make()
}

// isSure reports whether the revision of a write is known.
func (c *chains) isSure(w *write) bool {
	low, high := c.revisions(w)
	return c.verdict(w) == yes && !w.vague && !w.attached && low == high && w.op >= 0
}

// sure collects the records of each key, and returns the revisions of all sure writes.
func (c *chains) sure() (mains []int64) {
	for id := range c.keys {
		k := c.key(int32(id))
		stored := k.records
		var items []item
		broken := false
		add := func(it item) {
			it.broken, broken = broken, false
			items = append(items, it)
		}
		until := func(main, sub int64) {
			for ; len(stored) > 0; stored = stored[1:] {
				r := stored[0]
				if r.main > main || r.main == main && r.sub >= sub {
					return
				}
				add(item{r.main, r.sub, r.create, r.version, r.del, -1, true, false, false, false})
				broken = c.db.Partial && r.main <= c.db.Compacted
			}
		}
		for _, n := range k.hist {
			w := &c.written[n]
			main, _ := c.revisions(w)
			if !c.isSure(w) {
				if c.verdict(w) != no {
					until(main, 0)
					broken = true
				}
				continue
			}
			st := &c.steps[w.step]
			it := item{main: main, sub: int64(w.op), del: st.ops[w.op].del, written: n}
			_, it.absent, it.exists = st.implied(int32(id))
			until(main, it.sub)
			if len(stored) > 0 && stored[0].main == main && stored[0].sub == it.sub {
				it.stored, it.create, it.version = true, stored[0].create, stored[0].version
				stored = stored[1:]
			}
			add(it)
		}
		until(c.db.Revision+1, 0)
		c.items[id] = items
	}
	for i := range c.written {
		if w := &c.written[i]; c.isSure(w) {
			if main, _ := c.revisions(w); len(mains) == 0 || mains[len(mains)-1] != main {
				mains = append(mains, main)
			}
		}
	}
	return mains
}

// span is a range of revisions.
type span struct{ low, high int64 }

// unsure returns the revisions that writes without a sure revision may have, in order.
func (c *chains) unsure() (spans []span) {
	for i := range c.written {
		w := &c.written[i]
		if c.verdict(w) == no || c.isSure(w) {
			continue
		}
		low, high := c.revisions(w)
		if last := len(spans) - 1; last >= 0 && low <= spans[last].high {
			spans[last].high = max(spans[last].high, high)
		} else {
			spans = append(spans, span{low, high})
		}
	}
	return spans
}

// explain checks that an entry of the log made each record of a key in the database: the database
// has all records above its compact revision.
func (c *chains) explain(id int32, spans []span) error {
	for _, it := range c.items[id] {
		if it.written >= 0 || it.main <= max(c.to, c.db.Compacted) {
			continue
		}
		i, _ := slices.BinarySearchFunc(spans, it.main, func(s span, main int64) int {
			if s.high < main {
				return -1
			}
			return 1
		})
		if i == len(spans) || it.main < spans[i].low {
			return fmt.Errorf("%w: no entry makes record %d.%d of the database", ErrUnsolved, it.main, it.sub)
		}
	}
	return nil
}

// number sets the create revision and the version of each record of a key, as far as they are
// known.
func (c *chains) number(id int32) error {
	items := c.items[id]
	for i := range items {
		it := &items[i]
		create, version := int64(0), int64(0)
		switch before := prior(items, i); {
		case it.del:
			continue
		case it.absent || before != nil && before.del:
			create, version = it.main, 1
		case before != nil && before.version > 0:
			create, version = before.create, before.version+1
		}
		if it.version > 0 && version > 0 && (it.version != version || it.create != create) {
			return fmt.Errorf("%w: the numbers of record %d.%d differ from those of the database", ErrUnsolved, it.main,
				it.sub)
		}
		if it.version == 0 {
			it.create, it.version = create, version
		}
	}
	for i := len(items) - 1; i > 0; i-- {
		if before := prior(items, i); before != nil && !before.del && before.version == 0 && items[i].version > 1 {
			before.create, before.version = items[i].create, items[i].version-1
		}
	}
	return nil
}

// prior returns the record before record i, nil if it is not known.
func prior(items []item, i int) *item {
	if i == 0 || items[i].broken {
		return nil
	}
	return &items[i-1]
}

// follow moves the first complete state behind each record of a key that does not follow the record
// before.
func (c *chains) follow(id int32) {
	items := c.items[id]
	for i, it := range items {
		before := prior(items, i)
		follows := before != nil && before.version > 0 && (it.del || it.version == before.version+1)
		if !it.del && it.version == 1 {
			follows = !it.broken && (before == nil || before.del)
		}
		if follows || it.main <= c.to && it.stored {
			continue
		}
		c.sol.Complete = max(c.sol.Complete, it.main)
		if i == 0 && !it.broken && !it.absent && (it.del || it.version > 1 || it.exists) && it.main > c.to {
			c.sol.Unknown = append(c.sol.Unknown, Unknown{c.keys[id].name, it.main, it.del})
		}
	}
}

// make lists the sure writes.
func (c *chains) make() error {
	sol := c.sol
	all := make([]made, len(c.written))
	for _, items := range c.items {
		for i, it := range items {
			if it.written < 0 {
				continue
			}
			w := &c.written[it.written]
			m := made{step: w.step, op: w.op, sub: int32(it.sub), main: it.main, create: it.create, version: it.version}
			m.removed = !it.stored && (sol.Complete >= sol.compacted || it.main <= sol.Complete &&
				(it.del || it.version == 0 || i+1 == len(items) || items[i+1].main <= sol.Complete))
			if it.main > sol.compacted && !it.stored {
				return fmt.Errorf("%w: entry %d writes record %d.%d, which is not in the database", ErrUnsolved,
					c.steps[w.step].index, it.main, it.sub)
			}
			all[it.written] = m
		}
	}
	for i := range c.written {
		w := &c.written[i]
		switch low, _ := c.revisions(w); {
		case c.isSure(w):
			sol.made = append(sol.made, all[i])
		case c.verdict(w) != no && low <= sol.compacted:
			sol.Flagged++
		}
	}
	sol.Sure = len(sol.made)
	return nil
}
