// Package infer finds out what the entries of a log wrote if the store before its first entry is
// unknown.
//
// The revision of that store is unknown, and so is the state of each key until the log writes the
// key: it is open whether the first condition about a key held. Two facts answer most of these
// questions:
//
//   - A client compares revisions that it has read. A condition with a revision of the log's time
//     names the write with this revision.
//   - The database knows the revision of each record that it still has.
//
// Between two writes with known revisions, the number of revisions is known. If it leaves no
// choice, all revisions between them are known; else these writes are not sure. After a
// contradiction no write of the log is sure.
package infer

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"

	"github.com/etcdshift/etcdshift/snapshot/internal/wal"
)

// ErrUnsolved is the error for a log whose writes cannot be inferred.
var ErrUnsolved = errors.New("the log does not tell what its first entries wrote")

// Log is a log of a member.
type Log interface {
	// Entries yields the entries from a number on; see wal.Log.
	Entries(ctx context.Context, from uint64) iter.Seq2[wal.Entry, error]
}

// Record is a record of the database.
type Record struct {
	Main, Sub       int64
	Key, Value      []byte
	Tombstone       bool
	Create, Version int64
	Live            bool
}

// Database is the store after the last entry.
type Database struct {
	Revision, Compacted int64
	// Partial reports that any record up to Compacted may be missing, not only those that a
	// compaction removes.
	Partial bool
	Leases  map[int64]bool // granted leases
	// Each calls fn with all records in revision order.
	Each func(fn func(*Record) error) error
}

// Write is a put or deletion with a sure revision.
type Write struct {
	Main, Sub       int64
	Key             []byte
	Value           []byte // valid until the next Write
	Tombstone       bool
	Create, Version int64 // both 0 if unknown
	Lease           int64
	// Removed reports that the write is not part of the states from Solution.Complete on.
	Removed bool
}

// Unknown is a key that existed before the log, and whose value then is unknown.
type Unknown struct {
	Key     string
	Until   int64 // the revision of the first known change of the key
	Deleted bool  // this change is its deletion
}

// Solution describes the writes of a log.
type Solution struct {
	// Complete is the first revision with a completely known state. It is at least the compact
	// revision if no earlier one is known.
	Complete int64
	// Oldest is the first revision of the log.
	Oldest    int64
	Sure      int // writes with known revisions
	Flagged   int // other writes that may have happened, up to the compact revision
	Unknown   []Unknown
	compacted int64

	log   Log
	end   uint64
	keys  []key
	steps []step
	made  []made // sure writes, in order of steps
}

// made is a sure write.
type made struct {
	step, op        int32
	sub             int32
	removed         bool
	main            int64
	create, version int64
}

// Solve finds the writes of a log up to entry end, after which the store is that of db.
func Solve(ctx context.Context, log Log, end uint64, db Database) (*Solution, error) {
	p := &parser{ids: map[string]int32{}, end: end}
	if err := p.read(ctx, log); err != nil {
		return nil, err
	}
	if err := p.database(db); err != nil {
		return nil, err
	}
	s := &solver{ledger: ledger{parser: p}, db: db, ctx: ctx, leases: map[int64]*lease{}}
	if err := s.solve(); err != nil {
		return nil, err
	}
	sol := &Solution{log: log, end: end, keys: p.keys, steps: p.steps, compacted: db.Compacted}
	return sol, sol.finish(s)
}

// Each calls fn with the sure writes in revision order.
func (sol *Solution) Each(ctx context.Context, fn func(*Write) error) error {
	rest, at := sol.made, 0
	p := &parser{seed: maphash.MakeSeed()}
	for e, err := range sol.log.Entries(ctx, sol.steps[0].index) {
		if err != nil {
			return err
		}
		for at < len(sol.steps) && sol.steps[at].index < e.Index {
			at++
		}
		if len(rest) == 0 || at == len(sol.steps) {
			return nil
		}
		if int(rest[0].step) != at || sol.steps[at].index != e.Index {
			continue
		}
		values, err := p.values(&e)
		if err != nil {
			return err
		}
		for ; len(rest) > 0 && int(rest[0].step) == at; rest = rest[1:] {
			m, st := rest[0], sol.steps[at]
			o := st.ops[m.op]
			w := Write{Main: m.main, Sub: int64(m.sub), Key: []byte(sol.keys[o.key].name), Tombstone: o.del,
				Create: m.create, Version: m.version, Lease: o.lease, Removed: m.removed}
			if st.kind == writes && !o.del {
				if int(m.op) >= len(values) {
					return fmt.Errorf("entry %d changed while it was read", e.Index)
				}
				w.Value = values[m.op]
			}
			if err := fn(&w); err != nil {
				return err
			}
		}
	}
	return nil
}
