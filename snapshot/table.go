package snapshot

import (
	"bytes"
	"hash/maphash"
)

// table says which record is that of a key, in 8 bytes a key: it knows the record's ordinal, not what it says. Equal hashes are
// told apart by the stored keys.
type table struct {
	seed  maphash.Seed // fresh a process: nobody can write a file whose keys collide
	slots []slot       // open addressing, a power of two
	keys  int          // slots in use
}

// slot is the record of one key.
type slot struct {
	hash uint32 // of the key
	at   uint32 // the record's ordinal, plus one; 0 for a free slot
}

func (sl *slot) used() bool      { return sl.at != 0 }
func (sl *slot) ordinal() uint32 { return sl.at - 1 }

func newTable() table {
	return table{seed: maphash.MakeSeed(), slots: make([]slot, 1<<10)}
}

func (t *table) hash(key []byte) uint32 { return uint32(maphash.Bytes(t.seed, key)) }

// find returns the ordinal of key's record in t and that record in rec. x knows where ordinals lie.
func (s *Snapshot) find(t *table, x *index, b *bucket, key []byte, rec *Record) (ordinal uint32, found bool, err error) {
	sl, err := s.slotOf(t, x, b, t.hash(key), key, rec)
	if err != nil || !sl.used() {
		return 0, false, err
	}
	return sl.ordinal(), true, nil
}

// replace makes the record with the given ordinal that of key, and returns what it was before, with that record in before.
func (s *Snapshot) replace(t *table, x *index, b *bucket, key []byte, ordinal uint32, before *Record) (old uint32, found bool, err error) {
	if t.keys >= len(t.slots)/4*3 {
		t.grow()
	}
	h := t.hash(key)
	sl, err := s.slotOf(t, x, b, h, key, before)
	if err != nil {
		return 0, false, err
	}
	if found = sl.used(); found {
		old = sl.ordinal()
	} else {
		t.keys++
	}
	*sl = slot{hash: h, at: ordinal + 1}
	return old, found, nil
}

// slotOf returns the slot of key with its record in rec, or the free slot where it belongs.
func (s *Snapshot) slotOf(t *table, x *index, b *bucket, h uint32, key []byte, rec *Record) (*slot, error) {
	mask := uint32(len(t.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		sl := &t.slots[i]
		if !sl.used() {
			return sl, nil
		}
		if sl.hash != h {
			continue
		}
		if err := s.at(x, b, sl.ordinal(), rec); err != nil {
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
		if !sl.used() {
			continue
		}
		i := sl.hash & mask
		for t.slots[i].used() {
			i = (i + 1) & mask
		}
		t.slots[i] = sl
	}
}
