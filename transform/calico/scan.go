package calico

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// scan is the first pass: every Calico object gets an identity, and the records that will not be migrated, for what they
// are or for the name they share, are known after it.
func (m *run) scan(ctx context.Context) error {
	for entry, err := range m.view.Live(ctx, groupDir(m.keys, groupV3)) {
		if err != nil {
			return err
		}
		m.scanV3(entry)
	}
	for entry, err := range m.view.Live(ctx, groupDir(m.keys, groupV1)) {
		if err != nil {
			return err
		}
		m.scanV1(entry)
	}
	if m.opts.NewUIDs {
		digest, err := m.view.InputDigest(ctx)
		if err != nil {
			return err
		}
		for _, id := range m.table.records {
			id.minted = mintUID(digest, id.v3key)
		}
	}
	for _, group := range m.table.sort() {
		if err := m.collide(ctx, group); err != nil {
			return err
		}
	}
	return nil
}

// scanV3 notes a v3 object that is there. Kinds that are not Calico's are nobody's business here.
func (m *run) scanV3(entry *transform.Entry) {
	key, err := m.keys.Parse(entry.Key)
	if err != nil {
		m.view.Raise(string(entry.Key), codeUnknownKey.Because("%v", err))
		return
	}
	index := m.indexOf(func(k kind) bool { return k.Plural == key.Resource.Resource })
	if index < 0 {
		return
	}
	o := &object{kind: index, key: entry.Key, namespace: key.Namespace, name: key.Name, value: entry.Value}
	meta, err := encoding.ReadMeta(entry.Value)
	if err != nil {
		o.unreadable = true
		m.view.Raise(string(entry.Key), transform.Unreadable(err))
	}
	o.uid, o.deleting = meta.UID, !meta.DeletionTimestamp.IsZero()
	m.table.addObject(o)
}

// scanV1 notes a v1 record. Records without a v3 kind were reported with the CRDs.
func (m *run) scanV1(entry *transform.Entry) {
	key, err := m.keys.Parse(entry.Key)
	if err != nil {
		return
	}
	index := m.indexOf(func(k kind) bool { return k.V1Plural == key.Resource.Resource })
	if index < 0 {
		return
	}
	id, err := m.identify(index, key, entry)
	if err == nil {
		err = m.table.add(id)
	}
	if f := finding.Of(err); f != nil {
		lost := &identity{kind: index, key: entry.Key, namespace: key.Namespace, stored: key.Name, name: key.Name}
		meta, _ := encoding.ReadMeta(entry.Value) // empty where it cannot be read
		m.table.addLost(lost, meta.UID)
		m.leave(lost, f)
	}
}

func (m *run) identify(index int, key keys.Key, entry *transform.Entry) (*identity, error) {
	r, err := readRecord(m.kinds[index], key, entry.Value)
	if err != nil {
		return nil, err
	}
	name, notes, err := r.name()
	if err != nil {
		return nil, err
	}
	for _, n := range notes {
		m.view.Raise(string(entry.Key), n)
	}
	id := &identity{kind: index, key: entry.Key, namespace: key.Namespace, stored: key.Name, name: name, uid: r.uid}
	id.deleting = r.meta.seen().DeletionTimestamp != nil
	id.v3key = m.keys.Format(keys.Key{Resource: r.kind.v3(), Namespace: key.Namespace, Name: name})
	id.there = m.table.objects[string(id.v3key)]
	return id, nil
}

func (m *run) indexOf(is func(kind) bool) int {
	for i, k := range m.kinds {
		if is(k) {
			return i
		}
	}
	return -1
}

// collide refuses all but the first of the records that share a v3 name. The first goes on: if the others are allowed to be
// left alone, it is the one that is migrated.
func (m *run) collide(ctx context.Context, group []*identity) error {
	first, err := m.reread(ctx, group[0])
	if err != nil {
		return err
	}
	for _, id := range group[1:] {
		r, err := m.reread(ctx, id)
		if err != nil {
			return err
		}
		for _, spec := range []map[string]any{first.spec, r.spec} {
			_ = convertSpec(m.kinds[id.kind], map[string]any{}, spec) // what one of them lacks, the migration would set
		}
		same := "another spec"
		if len(specDifferences(m.kinds[id.kind], first.obj, r.obj)) == 0 {
			same = "the same spec"
		}
		m.leave(id, codeNameCollision.Because("its v3 name is %q, and so is that of %s, which has %s", id.name, group[0].key, same))
	}
	return nil
}

// reread decodes a record that was decoded before.
func (m *run) reread(ctx context.Context, id *identity) (*record, error) {
	key, err := m.keys.Parse(id.key)
	if err != nil {
		return nil, err
	}
	entry, err := m.view.Get(ctx, id.key)
	if err != nil {
		return nil, err
	}
	if entry == nil {
		return nil, errors.New("record " + string(id.key) + " is not there any more")
	}
	return readRecord(m.kinds[id.kind], key, entry.Value)
}

// leave reports a record that is not migrated. Every v1 record then stays.
func (m *run) leave(id *identity, f *finding.Finding) {
	m.left++
	id.fate = left
	m.view.Raise(string(id.key), f)
}

// record is one v1 record, decoded.
type record struct {
	kind   kind
	key    keys.Key
	obj    map[string]any
	spec   map[string]any
	format encoding.Format
	meta   metadata
	uid    uuid.UUID // as stored
}

// readRecord decodes a stored v1 record. A record that cannot be migrated because of what it is gives a refusal.
func readRecord(k kind, key keys.Key, value []byte) (*record, error) {
	obj, format, err := decode(value)
	if err != nil {
		return nil, err
	}
	r := &record{kind: k, key: key, obj: obj, format: format}
	if obj["apiVersion"] != apiVersionV1 || obj["kind"] != k.V1Kind {
		return nil, finding.Undecodable.Because("is a %v %v, not a %s %s", obj["apiVersion"], obj["kind"], apiVersionV1, k.V1Kind)
	}
	if k.Namespaced != (key.Namespace != "") {
		return nil, finding.Undecodable.Because("the key does not fit the scope of %s", k.V1Kind)
	}
	if r.meta, err = readMetadata(obj); err != nil {
		return nil, err
	}
	if r.meta.outer.Name != key.Name || r.meta.outer.Namespace != key.Namespace {
		return nil, codeBadMetadata.Because("metadata names it %q in namespace %q, unlike the key", r.meta.outer.Name, r.meta.outer.Namespace)
	}
	if r.uid, err = parseUID(string(r.meta.outer.UID)); err != nil {
		return nil, codeBadUID.Because("metadata.%v", err)
	}
	if r.spec, err = specOf(obj); err != nil {
		return nil, err
	}
	return r, nil
}

// decode is encoding.DecodeObject with errors about the record as refusals. All its errors are.
func decode(value []byte) (map[string]any, encoding.Format, error) {
	obj, format, err := encoding.DecodeObject(value)
	if err != nil {
		return nil, format, transform.Unreadable(err)
	}
	return obj, format, nil
}

// specOf is the object's spec; one without gets an empty one, which the v3 CRDs demand.
func specOf(obj map[string]any) (map[string]any, error) {
	switch spec := obj["spec"].(type) {
	case map[string]any:
		return spec, nil
	case nil:
		empty := map[string]any{}
		obj["spec"] = empty
		return empty, nil
	default:
		return nil, codeInvalid.Because("spec: not an object")
	}
}

// name is the record's v3 name.
func (r *record) name() (string, []*finding.Finding, error) {
	return v3Name(r.kind, r.key.Name, r.meta, r.spec)
}
