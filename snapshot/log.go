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

// table knows the ordinal of the record of each key, by a hash of the key: the first free number
// from that of the key on. Equal hashes are told apart by the stored keys.
type table struct {
	*log
	seed     maphash.Seed // fresh a process: nobody can write a file whose keys collide
	ordinals map[uint32]uint32
}

func newTable(l *log) table {
	return table{log: l, seed: maphash.MakeSeed(), ordinals: map[uint32]uint32{}}
}

// find returns the ordinal of key's record, and that record in rec.
func (t *table) find(key []byte, rec *Record) (ordinal uint32, found bool, err error) {
	err = t.read(func() error {
		_, ordinal, found, err = t.place(key, rec)
		return err
	})
	return ordinal, found, err
}

// replace makes the record with the given ordinal the record of key. It returns the ordinal of the
// record before it, and that record in before.
func (t *table) replace(key []byte, ordinal uint32, before *Record) (old uint32, found bool, err error) {
	hash, old, found, err := t.place(key, before)
	if err == nil {
		t.ordinals[hash] = ordinal
	}
	return old, found, err
}

// place returns the hash under which key is known, or could be, with the record there in rec.
func (t *table) place(key []byte, rec *Record) (hash, ordinal uint32, found bool, err error) {
	for hash = uint32(maphash.Bytes(t.seed, key)); ; hash++ {
		if ordinal, found = t.ordinals[hash]; !found {
			return hash, 0, false, nil
		}
		if err := t.at(ordinal, rec); err != nil || bytes.Equal(rec.Key, key) {
			return hash, ordinal, true, err
		}
	}
}
