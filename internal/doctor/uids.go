package doctor

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
)

// uid is the hash of a UID. Of ten million, two are the same by chance once in 10^14 files.
type uid struct {
	high uint64
	low  uint32
}

func toUID(text []byte) uid {
	sum := sha256.Sum256(text)
	return uid{binary.BigEndian.Uint64(sum[:]), binary.BigEndian.Uint32(sum[8:]) | 1} // never the zero uid
}

// uidTable has a number for each of many UIDs, in 16 bytes each and the space to grow.
type uidTable struct {
	slots []numbered // the zero uid marks a free one
	used  int
}

// numbered is a uid and its number, without the padding of a uid.
type numbered struct {
	high        uint64
	low, number uint32
}

func (n *numbered) uid() uid { return uid{n.high, n.low} }

// put sets the number of a new uid, or returns that of one put before.
func (t *uidTable) put(id uid, number uint32) (before uint32, found bool) {
	if t.used >= len(t.slots)/8*7 {
		t.grow(max(1024, len(t.slots)/2*3))
	}
	slot := t.find(id)
	if slot.uid() == id {
		return slot.number, true
	}
	*slot = numbered{id.high, id.low, number}
	t.used++
	return 0, false
}

func (t *uidTable) get(id uid) (number uint32, found bool) {
	if t.used == 0 {
		return 0, false
	}
	slot := t.find(id)
	return slot.number, slot.uid() == id
}

// find returns the slot of a uid, a free one for a new uid.
func (t *uidTable) find(id uid) *numbered {
	i, _ := bits.Mul64(id.high, uint64(len(t.slots)))
	for t.slots[i].uid() != id && t.slots[i] != (numbered{}) {
		if i++; i == uint64(len(t.slots)) {
			i = 0
		}
	}
	return &t.slots[i]
}

func (t *uidTable) grow(size int) {
	old := t.slots
	t.slots = make([]numbered, size)
	for _, slot := range old {
		if slot != (numbered{}) {
			*t.find(slot.uid()) = slot
		}
	}
}

// interned numbers values that many objects have in common.
type interned[T comparable] struct {
	numbers map[T]uint32
	all     []T
}

func (in *interned[T]) id(v T) uint32 {
	n, known := in.numbers[v]
	if !known {
		if in.numbers == nil {
			in.numbers = map[T]uint32{}
		}
		n = uint32(len(in.all))
		in.numbers[v], in.all = n, append(in.all, v)
	}
	return n
}
