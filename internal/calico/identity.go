package calico

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/etcdshift/etcdshift/keys"
)

// fate is the outcome for a v1 record.
type fate uint8

const (
	pending   fate = iota // not migrated yet
	migrated              // its v3 record is written
	replaced              // it replaces an existing v3 object (--conflicts take-v1)
	unchanged             // an equal v3 object exists
	kept                  // another v3 object stays (--conflicts keep-v3)
	skipped               // refused by a problem
	gone                  // it was being deleted without a finalizer
)

// identity is the part of a v1 record kept between the passes. Identities are small because there
// may be very many.
type identity struct {
	kind       *kind
	key        []byte // in the mapped file; ends with namespace and name
	uid        uuid.UUID
	special    *special // nil for most records
	fate       fate
	namespaced bool
	deleting   bool // a finalizer holds the deletion
	firm       bool // it has an existing owner beside Calico records
	conflict   bool // a different v3 object has its name
}

// special holds the fields of few records. It is complete after the first pass: the second pass
// reads it in parallel.
type special struct {
	name   string // v3 name, if different from the stored name
	minted string // UID with --uids new
	there  *object
	twin   *identity // the first record with the same v3 name
}

func newIdentity(k *kind, at keys.Key, key []byte) *identity {
	return &identity{kind: k, key: key, namespaced: at.Namespace != ""}
}

// optional returns the optional fields, read-only.
func (id *identity) optional() special {
	if id.special == nil {
		return special{}
	}
	return *id.special
}

// mutableOptional returns the optional fields for writing.
func (id *identity) mutableOptional() *special {
	if id.special == nil {
		id.special = &special{}
	}
	return id.special
}

// stored returns the name of the v1 record.
func (id *identity) stored() string { return string(id.storedName()) }

func (id *identity) storedName() []byte { return id.key[bytes.LastIndexByte(id.key, '/')+1:] }

func (id *identity) namespace() string { return string(id.inNamespace()) }

func (id *identity) inNamespace() []byte {
	if !id.namespaced {
		return nil
	}
	dir := id.key[:len(id.key)-len(id.storedName())-1]
	return dir[bytes.LastIndexByte(dir, '/')+1:]
}

// name returns the name of the v3 record.
func (id *identity) name() string { return cmp.Or(id.optional().name, id.stored()) }

// renamed reports whether the v3 record has another name.
func (id *identity) renamed() bool { return id.optional().name != "" }

// v3key returns the key of the v3 record.
func (id *identity) v3key(k keys.Kubernetes) []byte {
	return k.Format(keys.Key{Resource: id.kind.v3(), Namespace: id.namespace(), Name: id.name()})
}

// compareV3 orders records by kind and v3 key.
func (id *identity) compareV3(other *identity) int {
	if byKind := id.kind.order - other.kind.order; byKind != 0 {
		return byKind
	}
	if a, b := id.inNamespace(), other.inNamespace(); !bytes.Equal(a, b) {
		return strings.Compare(string(a)+"/", string(b)+"/")
	}
	if !id.renamed() && !other.renamed() {
		return bytes.Compare(id.storedName(), other.storedName())
	}
	return strings.Compare(id.name(), other.name())
}

// object is a v3 object of the input.
type object struct {
	kind            *kind
	key             []byte
	namespace, name string
	uid             string
	value           []byte // as stored
	unreadable      bool   // already reported; cannot be compared or replaced
	replaced        bool   // by a v1 record
	deleting        bool   // it is being deleted
}

// seen returns the UID seen by clients of the aggregated API.
func (id *identity) seen() string { return seenUID(id.uid).String() }

// written returns the UID of the v3 record: the UID of an existing v3 object, else a new one if
// requested, else the UID seen by clients. A record whose v3 name another record took first has the
// UID of that record.
func (id *identity) written() string {
	switch s := id.optional(); {
	case s.twin != nil:
		return s.twin.written()
	case s.there != nil && s.there.uid != "":
		return s.there.uid
	case s.minted != "":
		return s.minted
	}
	return id.seen()
}

// present reports whether a v3 record exists after the migration. Pending records count as present.
func (id *identity) present() bool {
	s := id.optional()
	if s.twin != nil {
		return s.twin.present()
	}
	return s.there != nil || id.fate != skipped && id.fate != gone
}

// wrote reports whether the record has become a v3 record.
func (id *identity) wrote() bool { return id.fate == migrated || id.fate == replaced }

// table holds every Calico object by the UIDs used in references.
type table struct {
	records  []*identity
	lost     []*identity     // skipped v1 records without a v3 name or a UID of their own
	unread   map[string]bool // keys of records with an unreadable UID
	byStored map[uuid.UUID]*identity
	objects  map[string]*object // by key
	byUID    map[uuid.UUID]*object
}

func newTable() *table {
	return &table{
		unread: map[string]bool{}, byStored: map[uuid.UUID]*identity{},
		objects: map[string]*object{}, byUID: map[uuid.UUID]*object{},
	}
}

// add adds a v1 record. It fails if another record has the same UID: references would be ambiguous.
func (t *table) add(id *identity) error {
	if other := t.byStored[id.uid]; other != nil {
		return codeBadUID.Because("metadata.uid: %s has the same", other.key)
	}
	t.byStored[id.uid] = id
	t.records = append(t.records, id)
	return nil
}

// addLost adds a v1 record that is skipped because of its content. References can name the record
// by its UID, unless another record has the same UID.
func (t *table) addLost(id *identity, uid string) {
	id.fate = skipped
	t.lost = append(t.lost, id)
	t.unread[string(id.key)] = uid == ""
	if stored, err := uuid.Parse(uid); err == nil && t.byStored[stored] == nil {
		id.uid, t.byStored[stored] = stored, id
	}
}

func (t *table) addObject(o *object) {
	t.objects[string(o.key)] = o
	if uid, err := uuid.Parse(o.uid); err == nil {
		t.byUID[uid] = o
	}
}

// objectsOf returns the v3 objects of a kind, ordered by key.
func (t *table) objectsOf(k *kind) []*object {
	out := slices.DeleteFunc(slices.Collect(maps.Values(t.objects)), func(o *object) bool { return o.kind != k })
	slices.SortFunc(out, func(a, b *object) int { return bytes.Compare(a.key, b.key) })
	return out
}

// sort orders the records as they are written, by kind and v3 key, and returns the groups with a
// common v3 key. The record stored under the v3 name comes first, as in Calico's policy name
// migrator.
func (t *table) sort() (shared [][]*identity) {
	renamed := func(id *identity) int {
		if id.renamed() {
			return 1
		}
		return 0
	}
	slices.SortFunc(t.records, func(a, b *identity) int {
		if order := a.compareV3(b); order != 0 {
			return order
		}
		return cmp.Or(renamed(a)-renamed(b), bytes.Compare(a.key, b.key))
	})
	for first, i := 0, 1; i <= len(t.records); i++ {
		if i < len(t.records) && t.records[first].compareV3(t.records[i]) == 0 {
			t.records[i].mutableOptional().twin = t.records[first]
			continue
		}
		if i-first > 1 {
			shared = append(shared, t.records[first:i])
		}
		first = i
	}
	return shared
}

// owner is the v3 record named by an owner reference.
type owner struct {
	kind            *kind
	namespace, name string
	uid             string
	record          *identity // nil for a v3 object without a v1 record
}

// find looks up a reference of one of the two groups, by the UID of the v1 record, the UID seen by
// clients, or the UID of a v3 object. Among several matches the kind decides, then the group:
// references of crd.projectcalico.org were written against stored records.
func (t *table) find(ofV1 bool, kindName string, uid uuid.UUID) (owner, bool) {
	var found []owner
	for _, id := range []*identity{t.byStored[uid], t.byStored[seenUID(uid)]} {
		if id != nil {
			found = append(found, owner{id.kind, id.namespace(), id.name(), id.written(), id})
		}
	}
	if o := t.byUID[uid]; o != nil {
		found = append(found, owner{o.kind, o.namespace, o.name, o.uid, nil})
	}
	if len(found) == 0 {
		return owner{}, false
	}
	if !ofV1 {
		slices.Reverse(found)
	}
	i := slices.IndexFunc(found, func(o owner) bool { return o.kind.Kind == kindName || o.kind.V1Kind == kindName })
	return found[max(i, 0)], true
}

// ConvertUID converts the UID of a stored v1 record to the UID seen by clients of the aggregated
// API, and back: it reverses the bits of each byte except 6 and 8, which hold the UUID's version
// and variant. ConvertUID accepts every spelling of a UUID and returns the canonical one
// (libcalico-go/lib/backend/k8s/conversion).
func ConvertUID(uid string) (string, error) {
	id, err := parseUID(uid)
	if err != nil {
		return "", err
	}
	return seenUID(id).String(), nil
}

func parseUID(uid string) (uuid.UUID, error) {
	id, err := uuid.Parse(uid)
	if err != nil {
		return uuid.UUID{}, fmt.Errorf("uid %q: not a UUID", uid)
	}
	return id, nil
}

func seenUID(stored uuid.UUID) uuid.UUID {
	for i, b := range stored {
		if i != 6 && i != 8 {
			stored[i] = bits.Reverse8(b)
		}
	}
	return stored
}
