package calico

import (
	"errors"

	"github.com/google/uuid"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// scan is the first pass: it gives every Calico object an identity, and skips the records that
// cannot be migrated for what they are or for the name they share.
func (m *run) scan() {
	for entry := range m.Live(groupDir(m.Keys, groupV3)) {
		m.scanV3(entry)
	}
	var some batch[*scanned]
	for entry := range m.Live(groupDir(m.Keys, groupV1)) {
		if r := m.record(entry); r != nil && some.add(r, len(entry.Value)) {
			m.scanV1(some.take())
		}
	}
	m.scanV1(some.take())
	if m.opts.NewUIDs {
		digest, err := m.View.InputDigest(m.Ctx)
		m.Failed(err)
		for _, id := range m.table.records {
			id.more().minted = mintUID(digest, id.v3key(m.Keys))
		}
	}
	for _, group := range m.table.sort() {
		m.collide(group)
	}
}

// scanV3 notes a v3 object. Kinds that are not Calico's are ignored.
func (m *run) scanV3(entry *transform.Entry) {
	key, err := m.Keys.Parse(entry.Key)
	if err != nil {
		m.Raise(string(entry.Key), finding.UnknownKey.Because("%v", err))
		return
	}
	kd, ok := m.crds.kinds.ofV3(key.Resource.Resource)
	if !ok {
		return
	}
	meta, err := encoding.ReadMeta(entry.Value)
	if err != nil {
		m.Raise(string(entry.Key), transform.Unreadable(err))
	}
	m.table.addObject(&object{
		kind: kd, key: entry.Key, namespace: key.Namespace, name: key.Name, value: entry.Value,
		uid: meta.UID, deleting: !meta.DeletionTimestamp.IsZero(), unreadable: err != nil,
	})
}

// scanned is a v1 record of the first pass.
type scanned struct {
	id    *identity
	key   keys.Key
	value []byte
	notes []*finding.Finding
	err   error
}

// record is a v1 record; nil for one without a v3 kind, which was reported with the CRDs.
func (m *run) record(entry *transform.Entry) *scanned {
	key, err := m.Keys.Parse(entry.Key)
	if err != nil {
		return nil
	}
	kd, ok := m.crds.kinds.ofV1(key.Resource.Resource)
	if !ok {
		return nil
	}
	return &scanned{id: newIdentity(kd, key, entry.Key), key: key, value: entry.Value}
}

// scanV1 notes v1 records: they are decoded in parallel, and noted in their order.
func (m *run) scanV1(batch []*scanned) {
	if m.Err != nil {
		return
	}
	m.Failed(m.View.Parallel(m.Ctx, len(batch), func(i int) error {
		batch[i].err = batch[i].identify()
		return nil
	}))
	for _, r := range batch {
		for _, n := range r.notes {
			m.Raise(string(r.id.key), n)
		}
		if r.err == nil {
			if there := m.table.objects[string(r.id.v3key(m.Keys))]; there != nil {
				r.id.more().there = there
			}
			r.err = m.table.add(r.id)
		}
		if f := finding.Of(r.err); f != nil {
			meta, _ := encoding.ReadMeta(r.value) // empty where it cannot be read
			lost := newIdentity(r.id.kind, r.key, r.id.key)
			m.table.addLost(lost, meta.UID)
			m.skip(lost, f)
		}
	}
}

// identify completes the identity of a v1 record.
func (s *scanned) identify() error {
	if uid, m, spec, sure := s.glance(); sure {
		return s.become(uid, m, spec)
	}
	r, err := readRecord(s.id.kind, s.key, s.value)
	if err != nil {
		return err
	}
	return s.become(r.uid, r.meta, r.spec)
}

func (s *scanned) become(uid uuid.UUID, m metadata, spec map[string]any) error {
	name, notes, err := v3Name(s.id.kind, s.key.Name, m, spec)
	if err != nil {
		return err
	}
	if name != s.key.Name {
		s.id.more().name = name
	}
	at, _ := m.deletion()
	s.notes, s.id.uid, s.id.deleting = notes, uid, at != nil
	return nil
}

// collide skips all but the first of the records that share a v3 name. Where that is allowed, the
// first is migrated.
func (m *run) collide(group []*identity) {
	first := m.take(group[0])
	for _, id := range group[1:] {
		r := m.take(id)
		if m.Err != nil {
			return
		}
		for _, spec := range []map[string]any{first.spec, r.spec} {
			_ = convertSpec(id.kind, map[string]any{}, spec) // sets what one of them lacks
		}
		same := "another spec"
		if len(specDifferences(id.kind, first.obj, r.obj)) == 0 {
			same = "the same spec"
		}
		m.skip(id, codeNameCollision.Because("its v3 name is %q, and so is that of %s, which has %s", id.name(), group[0].key, same))
	}
}

// take returns the decoded record, for the caller to change. It is nil after an error.
func (m *run) take(id *identity) *record {
	value := m.stored(id)
	if m.Err != nil {
		return nil
	}
	r, err := id.decode(value)
	m.Failed(err)
	return r
}

// stored returns the value of a record, decrypted.
func (m *run) stored(id *identity) []byte {
	entry := m.Get(id.key)
	if entry == nil {
		m.Failed(errors.New("record " + string(id.key) + " is not there any more"))
		return nil
	}
	return entry.Value
}

// decode decodes the value of a record.
func (id *identity) decode(value []byte) (*record, error) {
	return readRecord(id.kind, keys.Key{Resource: id.kind.v1(), Namespace: id.namespace(), Name: id.stored()}, value)
}

// skip reports a record that is not migrated. Every v1 record then stays.
func (m *run) skip(id *identity, f *finding.Finding) {
	m.skipped++
	id.fate = skipped
	m.Raise(string(id.key), f)
}

// record is one v1 record, decoded.
type record struct {
	kind   *kind
	key    keys.Key
	obj    map[string]any
	spec   map[string]any
	format encoding.Format
	meta   metadata
	uid    uuid.UUID // as stored
}

// readRecord decodes a stored v1 record. All its errors are findings.
func readRecord(k *kind, key keys.Key, value []byte) (*record, error) {
	obj, format, err := encoding.DecodeWithoutManagedFields(value, apiVersionV3) // those of v1 are not read
	if err != nil {
		return nil, transform.Unreadable(err)
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
	r.spec, err = specOf(obj)
	return r, err
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
