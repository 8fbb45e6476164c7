package infer

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"

	"github.com/etcdshift/etcdshift/snapshot/internal/wal"
)

// Limits of a log, in memory: a few hundred megabytes.
const (
	maxParts    = 4 << 20  // entries, conditions and operations
	maxKeyBytes = 64 << 20 // of different keys
)

type kind uint8

const (
	writes kind = iota // a put, a deletion or a transaction
	grants             // a lease
	revokes
)

// step is an entry that may change a store.
type step struct {
	index uint64
	kind  kind
	lease int64  // granted or revoked
	tests []test // conditions
	// ops are all writes if the conditions hold. The solver adds the deletions of a revoked lease.
	ops []op
}

type test struct {
	key    int32
	target int8  // opaque for a condition that is not followed
	x      int64 // the value to be equal to
	// revokes belongs to a noted condition that the key is absent: the number of revoked leases
	// that the log does not grant. Each of them may have deleted the key.
	revokes int32
}

const opaque = -1

type op struct {
	key   int32
	del   bool
	lease int64
	hash  uint64 // of the value
}

// key is a key of the log.
type key struct {
	name    string
	touches []touch  // of steps, in order
	records []record // in the database, in order
	live    bool     // the last record is live

	pass   int     // of the solver, to which the fields below belong
	before int64   // a revision before the log at which the key existed; 0 for none
	next   int     // the first touch after the current step
	hist   []int32 // writes in order
	// tried are the conditions that would have held, with a change, in the state before the log: in
	// this state, none of them holds.
	tried []test
}

type touch struct {
	step int32
	x    int64 // the mod revision that a condition compares, -1 for none
}

type record struct {
	main, sub       int64
	del             bool
	create, version int64
	hash            uint64
}

type parser struct {
	ids      map[string]int32
	keys     []key
	steps    []step
	end      uint64
	parts    int
	keyBytes int
	seed     maphash.Seed
	keep     func(value []byte) // called with the value of each operation
}

// read reads the entries of a log.
func (p *parser) read(ctx context.Context, log Log) error {
	p.seed = maphash.MakeSeed()
	for e, err := range log.Entries(ctx, 0) {
		if err != nil || e.Index > p.end {
			return err
		}
		st, is, err := p.step(&e)
		if err != nil {
			return err
		}
		if is {
			p.add(st)
		}
		if p.parts > maxParts || p.keyBytes > maxKeyBytes {
			return fmt.Errorf("%w: it has more than %d operations, or %d bytes of keys", ErrUnsolved, maxParts,
				maxKeyBytes)
		}
		if e.Index == p.end {
			break
		}
	}
	if len(p.steps) == 0 {
		return fmt.Errorf("%w: it has no write", ErrUnsolved)
	}
	return nil
}

// add adds a step.
func (p *parser) add(st step) {
	n := int32(len(p.steps))
	p.steps = append(p.steps, st)
	p.parts += 1 + len(st.tests) + len(st.ops)
	touched := func(id int32, x int64) {
		k := &p.keys[id]
		if last := len(k.touches) - 1; last < 0 || k.touches[last].step != n {
			k.touches = append(k.touches, touch{n, -1})
		}
		if x >= 0 {
			k.touches[len(k.touches)-1].x = x
		}
	}
	for _, t := range st.tests {
		if touched(t.key, -1); t.target == wal.CompareMod {
			touched(t.key, t.x)
		}
	}
	for _, o := range st.ops {
		touched(o.key, -1)
	}
}

// id returns the number of a key.
func (p *parser) id(name []byte) int32 {
	if n, known := p.ids[string(name)]; known || p.ids == nil {
		return n
	}
	n := int32(len(p.keys))
	p.ids[string(name)] = n
	p.keys = append(p.keys, key{name: string(name)})
	p.keyBytes += len(name)
	return n
}

// step parses an entry.
func (p *parser) step(e *wal.Entry) (st step, is bool, err error) {
	kind, request, err := e.Request()
	if err != nil {
		return st, false, err
	}
	unsolved := func(why string) error { return fmt.Errorf("%w: entry %d %s", ErrUnsolved, e.Index, why) }
	st.index = e.Index
	switch kind {
	case wal.Put, wal.DeleteRange:
		err = p.operation(&st, kind, request, unsolved)
	case wal.Txn:
		err = p.transaction(&st, request, unsolved)
	case wal.LeaseGrant, wal.LeaseRevoke:
		f, bad := request.Fields()
		st.kind, st.lease, err = grants, f.Number(wal.GrantID), bad
		if kind == wal.LeaseRevoke {
			st.kind, st.lease = revokes, f.Number(wal.RevokeID)
		}
		return st, st.lease != 0, err
	case wal.AuthEnable:
		err = unsolved("enables authentication")
	case wal.Alarm:
		f, bad := request.Fields()
		if err = bad; err == nil && f.Number(wal.AlarmAction) != 0 {
			err = unsolved("changes an alarm")
		}
	}
	return st, len(st.ops) > 0, err
}

// operation adds a put or a deletion to a step.
func (p *parser) operation(st *step, kind wal.Kind, request wal.Message, unsolved func(string) error) error {
	f, err := request.Fields()
	if err != nil {
		return err
	}
	o := op{}
	if kind == wal.DeleteRange {
		if len(f.Bytes(wal.DeleteEnd)) > 0 {
			return unsolved("deletes a range of keys")
		}
		o.del, o.key = true, p.id(f.Bytes(wal.DeleteKey))
	} else {
		if f.Number(wal.PutIgnoreValue) != 0 || f.Number(wal.PutIgnoreLease) != 0 {
			return unsolved("keeps an earlier value or lease")
		}
		o.key, o.lease = p.id(f.Bytes(wal.PutKey)), f.Number(wal.PutLease)
		o.hash = maphash.Bytes(p.seed, f.Bytes(wal.PutValue))
	}
	for _, other := range st.ops {
		if p.keep == nil && other.key == o.key {
			return unsolved("writes one key twice")
		}
	}
	if p.keep != nil {
		p.keep(f.Bytes(wal.PutValue))
	}
	if len(st.ops) >= maxOps {
		return unsolved("has too many operations")
	}
	st.ops = append(st.ops, o)
	return nil
}

// maxOps limits the operations and the conditions of one entry; etcd's default is 128 of each.
const maxOps = 1 << 12

// transaction adds a transaction to a step.
func (p *parser) transaction(st *step, request wal.Message, unsolved func(string) error) error {
	err := request.Each(wal.TxnCompare, func(m wal.Message) error {
		c, err := m.Compare()
		if err != nil {
			return err
		}
		if len(c.End) > 0 {
			return unsolved("has a condition about a range of keys")
		}
		if len(st.tests) >= maxOps {
			return unsolved("has too many conditions")
		}
		t := test{key: p.id(c.Key), target: int8(c.Target), x: c.Number}
		if c.Result != wal.Equal || c.Target < 0 || c.Target > wal.CompareMod {
			t.target = opaque
		}
		st.tests = append(st.tests, t)
		return nil
	})
	for _, branch := range []int{wal.TxnSuccess, wal.TxnFailure} {
		more := request.Each(branch, func(m wal.Message) error {
			kind, request, err := m.Operation()
			switch {
			case err != nil:
				return err
			case kind == wal.Txn:
				return unsolved("has a transaction within a transaction")
			case kind == wal.Range:
				f, err := request.Fields()
				if err == nil && f.Number(wal.RangeRevision) != 0 {
					err = unsolved("reads at a revision")
				}
				return err
			case branch == wal.TxnFailure:
				return unsolved("writes also if its condition does not hold")
			}
			return p.operation(st, kind, request, unsolved)
		})
		err = cmp.Or(err, more)
	}
	return err
}

// values returns the values of the operations of an entry.
func (p *parser) values(e *wal.Entry) (values [][]byte, err error) {
	p.keep = func(value []byte) { values = append(values, value) }
	_, _, err = p.step(e)
	return values, err
}

// database reads the records of keys in the log, and the deletions of others.
func (p *parser) database(db Database) error {
	return db.Each(func(r *Record) error {
		id, known := p.ids[string(r.Key)]
		if !known && (!r.Tombstone || len(r.Key) == 0) {
			return nil
		}
		if !known {
			if id = p.id(r.Key); p.keyBytes > maxKeyBytes {
				return fmt.Errorf("%w: too many deletions in the database", ErrUnsolved)
			}
		}
		k := &p.keys[id]
		k.live = r.Live
		k.records = append(k.records, record{r.Main, r.Sub, r.Tombstone, r.Create, r.Version,
			maphash.Bytes(p.seed, r.Value)})
		return nil
	})
}
