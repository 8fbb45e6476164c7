package snapshot

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"sort"

	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
)

// log is the key bucket as a list of records in revision order. The number of a record in it is its
// ordinal.
type log struct {
	*input
	db    *bolt.DB
	keys  *bolt.Bucket
	start []uint32 // ordinal of the first record of each leaf, and behind the last record
}

// at decodes the record with the given ordinal. Its page was checked when it was indexed; to check
// it for each record would take quadratic time.
func (l *log) at(ordinal uint32, rec *Record) error {
	leaf := sort.Search(len(l.start), func(i int) bool { return l.start[i] > ordinal }) - 1
	p := l.keys.Inline
	if l.keys.Root != 0 {
		var err error
		if p, err = l.db.Extent(l.keys.Leaves[leaf]); err != nil {
			return err
		}
	}
	_, k, v := p.Leaf(int(ordinal - l.start[leaf]))
	return parseRecord(k, v, rec)
}

// total is the number of records.
func (l *log) total() int { return int(l.start[len(l.start)-1]) }

// after is the ordinal of the first record above main revision rev.
func (l *log) after(rev int64) (ordinal uint32, err error) {
	var rec Record
	err = l.read(func() (err error) {
		ordinal = uint32(sort.Search(l.total(), func(i int) bool {
			if err == nil {
				err = l.at(uint32(i), &rec)
			}
			return rec.Revision.Main > rev
		}))
		return err
	})
	return ordinal, err
}

// inLeaf says where in the file a record with an error lies.
func (l *log) inLeaf(leaf int, err error) error {
	if err == nil {
		return nil
	}
	if l.keys.Root == 0 {
		return fmt.Errorf("bucket %q: %w", l.keys.Name, err)
	}
	return fmt.Errorf("bucket %q: page %d: %w", l.keys.Name, l.keys.Leaves[leaf], err)
}

// table knows the ordinal of the record of each key, in 8 bytes a key. Equal hashes are told apart
// by the stored keys.
type table struct {
	*log
	seed  maphash.Seed // fresh a process: nobody can write a file whose keys collide
	slots []slot       // open addressing, a power of two
	used  int          // slots
}

// slot is the record of one key.
type slot struct {
	hash uint32 // of the key
	at   uint32 // the record's ordinal, plus one; 0 for a free slot
}

func newTable(l *log) table {
	return table{log: l, seed: maphash.MakeSeed(), slots: make([]slot, 1<<10)}
}

func (t *table) hash(key []byte) uint32 { return uint32(maphash.Bytes(t.seed, key)) }

// find returns the ordinal of key's record, and that record in rec.
func (t *table) find(key []byte, rec *Record) (ordinal uint32, found bool, err error) {
	err = t.read(func() error {
		sl, err := t.slot(t.hash(key), key, rec)
		if err == nil && sl.at != 0 {
			ordinal, found = sl.at-1, true
		}
		return err
	})
	return ordinal, found, err
}

// replace makes the record with the given ordinal the record of key. It returns the ordinal of the
// record before it, and that record in before.
func (t *table) replace(key []byte, ordinal uint32, before *Record) (old uint32, found bool, err error) {
	if t.used >= len(t.slots)/4*3 {
		t.grow()
	}
	h := t.hash(key)
	sl, err := t.slot(h, key, before)
	if err != nil {
		return 0, false, err
	}
	if found = sl.at != 0; found {
		old = sl.at - 1
	} else {
		t.used++
	}
	*sl = slot{hash: h, at: ordinal + 1}
	return old, found, nil
}

// slot returns the slot of key with its record in rec, or the free slot where it belongs.
func (t *table) slot(h uint32, key []byte, rec *Record) (*slot, error) {
	mask := uint32(len(t.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		sl := &t.slots[i]
		if sl.at == 0 {
			return sl, nil
		}
		if sl.hash != h {
			continue
		}
		if err := t.at(sl.at-1, rec); err != nil {
			return nil, err
		}
		if bytes.Equal(rec.Key, key) {
			return sl, nil
		}
	}
}

func (t *table) grow() {
	old := t.slots
	t.slots = make([]slot, 2*len(old))
	mask := uint32(len(t.slots) - 1)
	for _, sl := range old {
		if sl.at == 0 {
			continue
		}
		i := sl.hash & mask
		for t.slots[i].at != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = sl
	}
}
