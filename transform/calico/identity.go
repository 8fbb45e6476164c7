package calico

import (
	"bytes"
	"slices"

	"github.com/google/uuid"
)

// fate is what becomes of a v1 record.
type fate int

const (
	pending   fate = iota // not looked at yet
	migrated              // its v3 record is written
	replaced              // it takes the place of another v3 object (--conflicts take-v1)
	unchanged             // an equal v3 object is there
	kept                  // another v3 object stays (--conflicts keep-v3)
	left                  // a problem stands in the way
	gone                  // it was being deleted and nothing held it
)

// identity is what is kept in memory of a v1 record between the passes.
type identity struct {
	kind         int // index in kinds()
	key, v3key   []byte
	namespace    string
	stored, name string // v1 and v3 name
	uid          uuid.UUID
	minted       string // with --uids new
	there        *object
	fate         fate
	conflict     bool
	deleting     bool        // it is being deleted, and a finalizer holds it
	twin         *identity   // the record that has the same v3 name and comes first
	owners       []*identity // Calico owners whose v3 record it relies on
	firm         bool        // it has an owner beside them that exists
}

// object is a v3 object that the input has.
type object struct {
	kind            int
	key             []byte
	namespace, name string
	uid             string
	value           []byte // as stored
	unreadable      bool   // reported; it can be neither compared nor replaced
	replaced        bool   // a v1 record took its place
	deleting        bool   // it is being deleted
}

// seen is the UID that clients of the aggregated API saw.
func (id *identity) seen() string { return seenUID(id.uid).String() }

// written is the UID of the v3 record: that of the object that is there, else a new one where that was asked for, else
// the one that was seen. A record that shares its v3 name with another stands behind it.
func (id *identity) written() string {
	switch {
	case id.twin != nil:
		return id.twin.written()
	case id.there != nil && id.there.uid != "":
		return id.there.uid
	case id.minted != "":
		return id.minted
	default:
		return id.seen()
	}
}

// present says whether there is a v3 record to refer to in the end. A pending record is taken to become one.
func (id *identity) present() bool {
	if id.twin != nil {
		return id.twin.present()
	}
	return id.there != nil || id.fate != left && id.fate != gone
}

// wrote says whether the record has become a v3 record.
func (id *identity) wrote() bool { return id.fate == migrated || id.fate == replaced }

// stays says whether the v1 record is one that was left alone, so that all v1 records stay.
func (id *identity) stays() bool { return id != nil && id.fate == left }

// table is every Calico object by the UIDs that a reference may name it by.
type table struct {
	records  []*identity
	lost     []*identity     // v1 records without a v3 name or a UID of their own; left alone
	unread   map[string]bool // keys of those whose UID cannot be read
	byStored map[uuid.UUID]*identity
	objects  map[string]*object // by key
	byUID    map[uuid.UUID]*object
}

func newTable() *table {
	return &table{
		unread:   map[string]bool{},
		byStored: map[uuid.UUID]*identity{},
		objects:  map[string]*object{},
		byUID:    map[uuid.UUID]*object{},
	}
}

// add takes a v1 record in. It fails where another has the same UID: then nobody could tell whose a reference is.
func (t *table) add(id *identity) error {
	if other := t.byStored[id.uid]; other != nil {
		return codeBadUID.Because("metadata.uid: %s has the same", other.key)
	}
	t.byStored[id.uid] = id
	t.records = append(t.records, id)
	return nil
}

// addLost takes a v1 record in that is left alone for what it is. What names it as its owner by uid, where it has one of its
// own, is told so.
func (t *table) addLost(id *identity, uid string) {
	id.fate = left
	t.lost = append(t.lost, id)
	t.unread[string(id.key)] = uid == ""
	if stored, err := uuid.Parse(uid); err == nil && t.byStored[stored] == nil {
		id.uid = stored
		t.byStored[stored] = id
	}
}

func (t *table) addObject(o *object) {
	t.objects[string(o.key)] = o
	if uid, err := uuid.Parse(o.uid); err == nil {
		t.byUID[uid] = o
	}
}

// objectsOf is the v3 objects of a kind, in the order of their keys.
func (t *table) objectsOf(kind int) []*object {
	var out []*object
	for _, o := range t.objects {
		if o.kind == kind {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b *object) int { return bytes.Compare(a.key, b.key) })
	return out
}

// sort orders the records as they are written, by kind and v3 key, and returns the groups that share a v3 key, each with
// the record first that the name belongs to: the one stored under it, as Calico's own policy name migrator has it.
func (t *table) sort() [][]*identity {
	slices.SortFunc(t.records, func(a, b *identity) int {
		if a.kind != b.kind {
			return a.kind - b.kind
		}
		if c := bytes.Compare(a.v3key, b.v3key); c != 0 {
			return c
		}
		if aFirst, bFirst := a.stored == a.name, b.stored == b.name; aFirst != bFirst {
			if aFirst {
				return -1
			}
			return 1
		}
		return bytes.Compare(a.key, b.key)
	})
	var shared [][]*identity
	for i := 0; i < len(t.records); {
		j := i + 1
		for j < len(t.records) && bytes.Equal(t.records[i].v3key, t.records[j].v3key) {
			t.records[j].twin = t.records[i]
			j++
		}
		if j > i+1 {
			shared = append(shared, t.records[i:j])
		}
		i = j
	}
	return shared
}

// owner is the v3 record an owner reference means.
type owner struct {
	kind            kind
	namespace, name string
	uid             string
	record          *identity // nil for a v3 object without a v1 record
}

// find looks up what a reference of one of the two groups means. A UID may be that of the v1 record, the one clients saw,
// or that of a v3 object. Where, against all odds, they name several, the kind decides, then the group: references of
// crd.projectcalico.org were written against stored records.
func (t *table) find(ofV1 bool, kindName string, uid uuid.UUID) (owner, bool) {
	all := kinds()
	stored, seen, there := t.byStored[uid], t.byStored[seenUID(uid)], t.byUID[uid]
	var found []owner
	byRecord := func(id *identity) {
		if id != nil {
			found = append(found, owner{kind: all[id.kind], namespace: id.namespace, name: id.name, uid: id.written(), record: id})
		}
	}
	byObject := func(o *object) {
		if o != nil {
			found = append(found, owner{kind: all[o.kind], namespace: o.namespace, name: o.name, uid: o.uid})
		}
	}
	if ofV1 {
		byRecord(stored)
		byRecord(seen)
		byObject(there)
	} else {
		byObject(there)
		byRecord(seen)
		byRecord(stored)
	}
	for _, o := range found {
		if o.kind.Kind == kindName || o.kind.V1Kind == kindName {
			return o, true
		}
	}
	if len(found) > 0 {
		return found[0], true
	}
	return owner{}, false
}
