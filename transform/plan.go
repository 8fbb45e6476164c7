package transform

import (
	"bytes"
	"hash/maphash"
	"iter"
	"math"
	"slices"
	"sync"

	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot"
)

// staged is one planned write. A plan may have millions: staged has no pointers.
type staged struct {
	at            int64 // offset of key and value in the spool
	prior         int64 // ModRevision of the stored record; 0 for none
	lease         int64
	keySize, size uint32 // bytes of key and value
	step          uint16 // last step that staged the write: see plan.step
	delete        bool
	dropped       bool // not planned any more
	had           bool // the key had a value before the step
	stagedBefore  bool // an earlier step staged the write too
}

// creates reports whether the key has no stored record.
func (st *staged) creates() bool { return st.prior == 0 && !st.delete }

// plan keeps staged writes in order, with keys and values in a spool.
type plan struct {
	mu sync.RWMutex // of changes, for readers on other goroutines
	spool
	chunks  []chunk
	edits   int    // number of changes of the plan
	planned int    // without dropped writes
	updates int    // of stored records, including dropped writes
	step    uint16 // the current step; 0 for a run without steps
	// seed and ordinals find the staged write of a key by a hash of the key: the number of a key is
	// the hash, or the next free number. Keys with equal hashes are compared.
	seed     maphash.Seed
	ordinals map[uint32]uint32
}

// chunk is some staged writes, in order.
type chunk struct {
	staged []staged
	common []byte // common prefix of all keys that the chunk creates
	create bool   // the chunk creates at least one key
}

const chunkSize = 1024

func newPlan(dir string) *plan {
	return &plan{spool: spool{dir: dir}, seed: maphash.MakeSeed(), ordinals: map[uint32]uint32{}}
}

// find returns the staged write of key and its number in ordinals. The write may be dropped; nil
// for none.
func (p *plan) find(key []byte) (st *staged, number uint32, err error) {
	for number = uint32(maphash.Bytes(p.seed, key)); ; number++ {
		ordinal, used := p.ordinals[number]
		if !used {
			return nil, number, nil
		}
		st = &p.chunks[ordinal/chunkSize].staged[ordinal%chunkSize]
		if int(st.keySize) != len(key) {
			continue
		}
		own := make([]byte, len(key))
		if err := p.read(own, st.at); err != nil {
			return nil, 0, err
		}
		if bytes.Equal(own, key) {
			return st, number, nil
		}
	}
}

// get returns the planned write of key; nil for none.
func (p *plan) get(key []byte) (*staged, error) {
	st, _, err := p.find(key)
	if st != nil && st.dropped {
		st = nil
	}
	return st, err
}

// put stages a write. A key that is staged again keeps its position.
func (p *plan) put(key, value []byte, st staged) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.edits++
	old, number, err := p.find(key)
	if err != nil {
		return err
	}
	st.keySize, st.size = uint32(len(key)), uint32(len(value))
	st.step, st.had = p.step, st.prior != 0
	if old != nil {
		st.had, st.stagedBefore = old.before(p.step), old.stagedBefore || old.step != p.step
	}
	if !st.delete && !st.creates() {
		p.updates++
	}
	if st.at, err = p.add(key, value); err != nil {
		return err
	}
	if old != nil && old.dropped {
		old.step, old = noStep, nil // st replaces the dropped write
	}
	if old != nil {
		created := old.creates()
		*old = st
		if created != st.creates() {
			p.chunks[p.ordinals[number]/chunkSize].created(key, &st)
		}
		return nil
	}
	if n := len(p.chunks); n == 0 || len(p.chunks[n-1].staged) == chunkSize {
		p.chunks = append(p.chunks, chunk{staged: make([]staged, 0, chunkSize)}) // the elements of a chunk never move
	}
	last := &p.chunks[len(p.chunks)-1]
	p.ordinals[number] = uint32((len(p.chunks)-1)*chunkSize + len(last.staged))
	last.staged = append(last.staged, st)
	last.created(key, &st)
	p.planned++
	return nil
}

func (c *chunk) created(key []byte, st *staged) {
	switch {
	case !st.creates():
	case !c.create:
		c.create, c.common = true, bytes.Clone(key)
	default:
		same := 0
		for same < min(len(key), len(c.common)) && key[same] == c.common[same] {
			same++
		}
		c.common = c.common[:same]
	}
}

// mayCreate reports whether the chunk may create keys that begin with prefix.
func (c *chunk) mayCreate(prefix []byte) bool {
	return c.create && (bytes.HasPrefix(c.common, prefix) || bytes.HasPrefix(prefix, c.common))
}

func (p *plan) attach(key []byte, lease int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.edits++
	st, err := p.get(key)
	if st != nil {
		st.lease = lease
	}
	return err
}

// noStep marks a write that was staged and dropped in the same step.
const noStep = math.MaxUint16

// before reports whether the key of a staged write had a value before a step.
func (st *staged) before(step uint16) bool {
	switch {
	case st.step == step:
		return st.had
	case st.dropped:
		return st.prior != 0
	}
	return !st.delete
}

// drop removes the staged write of key from the plan.
func (p *plan) drop(key []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.edits++
	st, err := p.get(key)
	if st != nil {
		if st.step == p.step && !st.stagedBefore {
			st.step = noStep
		} else {
			st.step, st.had = p.step, st.before(p.step)
		}
		st.dropped = true
		p.planned--
	}
	return err
}

// all yields the planned writes in order, including writes staged during the iteration.
func (p *plan) all() iter.Seq[*staged] {
	return func(yield func(*staged) bool) {
		for c := 0; c < len(p.chunks); c++ {
			for i := 0; i < len(p.chunks[c].staged); i++ {
				if st := &p.chunks[c].staged[i]; !st.dropped && !yield(st) {
					return
				}
			}
		}
	}
}

// creating yields, in order, the planned writes that create keys with the given prefix.
func (p *plan) creating(prefix []byte) iter.Seq2[*staged, error] {
	return func(yield func(*staged, error) bool) {
		for c := 0; c < len(p.chunks); c++ {
			for i := 0; i < len(p.chunks[c].staged); i++ {
				if st := &p.chunks[c].staged[i]; !st.dropped && st.creates() && p.chunks[c].mayCreate(prefix) {
					key, err := p.key(st)
					if (err != nil || bytes.HasPrefix(key, prefix)) && (!yield(st, err) || err != nil) {
						return
					}
				}
			}
		}
	}
}

func (p *plan) key(st *staged) ([]byte, error) {
	key := make([]byte, st.keySize)
	return key, p.read(key, st.at)
}

// record returns copies of key and value of a staged write; the value of a deletion is nil.
func (p *plan) record(st *staged) (key, value []byte, err error) {
	both := make([]byte, st.keySize+st.size)
	err = p.read(both, st.at)
	key, value = st.split(both)
	return key, value, err
}

func (st *staged) split(both []byte) (key, value []byte) {
	if key = both[:st.keySize:st.keySize]; !st.delete {
		value = both[st.keySize:]
	}
	return key, value
}

// changes yields the plan for [snapshot.Write], in order, any number of times, also on another
// goroutine while changes are staged. A change is valid until the next one.
func (p *plan) changes() iter.Seq2[snapshot.Change, error] {
	return func(yield func(snapshot.Change, error) bool) {
		r := spoolReader{spool: &p.spool}
		for next := 0; ; {
			var c snapshot.Change
			var err error
			if c, next, err = p.change(&r, next); next == 0 || !yield(c, err) || err != nil {
				return
			}
		}
	}
}

// change reads the first planned write whose ordinal is at least n, and returns the ordinal after
// it; 0 for none.
func (p *plan) change(r *spoolReader, n int) (c snapshot.Change, next int, err error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for ; n/chunkSize < len(p.chunks) && n%chunkSize < len(p.chunks[n/chunkSize].staged); n++ {
		st := &p.chunks[n/chunkSize].staged[n%chunkSize]
		if st.dropped {
			continue
		}
		both, err := r.next(st.at, int(st.keySize+st.size))
		if err == nil {
			c.Key, c.Value = st.split(both)
		}
		c.Delete, c.Lease, c.Prior = st.delete, st.lease, st.prior
		return c, n + 1, err
	}
	return c, 0, nil
}

// byKey yields the plan as changes does, sorted by keys. byKey keeps copies of the keys.
func (p *plan) byKey() iter.Seq2[snapshot.Change, error] {
	type keyed struct {
		key []byte
		*staged
	}
	return stream.Of(func(yield func(snapshot.Change) error) error {
		all := make([]keyed, 0, p.planned)
		for st := range p.all() {
			key, err := p.key(st)
			if err != nil {
				return err
			}
			all = append(all, keyed{key, st})
		}
		slices.SortFunc(all, func(a, b keyed) int { return bytes.Compare(a.key, b.key) })
		for _, st := range all {
			_, value, err := p.record(st.staged)
			if err == nil {
				err = yield(snapshot.Change{Key: st.key, Value: value, Delete: st.delete, Lease: st.lease,
					Prior: st.prior})
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// changed counts the records that the current step created, updated and deleted.
func (p *plan) changed() (c Changes) {
	for _, chunk := range p.chunks {
		for i := range chunk.staged {
			st := &chunk.staged[i]
			has := !st.delete
			if st.dropped {
				has = st.prior != 0
			}
			switch {
			case st.step != p.step, !st.had && !has:
			case !has:
				c.Deleted++
			case !st.had:
				c.Created++
			default:
				c.Updated++
			}
		}
	}
	return c
}

func (p *plan) count() (c Changes) {
	for st := range p.all() {
		switch {
		case st.delete:
			c.Deleted++
		case st.prior == 0:
			c.Created++
		default:
			c.Updated++
		}
	}
	return c
}
