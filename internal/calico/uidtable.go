package calico

import (
	"hash/maphash"

	"github.com/google/uuid"
)

// uidTable finds v1 records by their stored UIDs, in a third of the memory of a map.
type uidTable struct {
	seed  maphash.Seed
	slots []*identity // a record is in the first free slot from its hash on
	used  int
}

// slot is where the record of that UID is, or would be.
func (t *uidTable) slot(uid uuid.UUID) **identity {
	for i := maphash.Bytes(t.seed, uid[:]); ; i++ {
		at := &t.slots[i%uint64(len(t.slots))]
		if *at == nil || (*at).uid == uid {
			return at
		}
	}
}

// get returns the record of that UID, nil for none.
func (t *uidTable) get(uid uuid.UUID) *identity {
	if t.used == 0 {
		return nil
	}
	return *t.slot(uid)
}

// put adds a record, whose UID no other has.
func (t *uidTable) put(id *identity) {
	if 4*t.used >= 3*len(t.slots) {
		before := t.slots
		t.slots = make([]*identity, max(64, 2*len(before)))
		for _, id := range before {
			if id != nil {
				*t.slot(id.uid) = id
			}
		}
	}
	*t.slot(id.uid) = id
	t.used++
}
