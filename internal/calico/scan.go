package calico

import (
	"cmp"
	"errors"
	"iter"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// scan is the first pass: it gives every Calico object an identity, and skips records that cannot
// be migrated because of their content or a shared name.
func (m *run) scan() error {
	if err := m.each(m.groupDir(groupV3), m.scanV3); err != nil {
		return err
	}
	err := stream.Each(m.crds.scanV1(), func(s **scanned) error {
		if *s != nil {
			m.addScanned(*s)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if m.opts.NewUIDs {
		digest, err := m.InputDigest(m.ctx)
		if err != nil {
			return err
		}
		for _, id := range m.table.records {
			id.mutableOptional().minted = objects.MintUID(digest, id.v3key(m.keys))
		}
	}
	for _, group := range m.table.sort() {
		if err := m.collide(group); err != nil {
			return err
		}
	}
	return nil
}

// scanV3 adds a v3 object to the table. Other kinds are ignored.
func (m *run) scanV3(entry *transform.Entry) error {
	key, err := m.keys.Parse(entry.Key)
	if err != nil {
		m.Raise(string(entry.Key), finding.UnknownKey.Because("%v", err))
		return nil
	}
	kd, ok := m.crds.kinds.ofV3(key.Resource.Resource)
	if !ok {
		return nil
	}
	meta, err := encoding.ReadMeta(entry.Value)
	if err != nil {
		m.Raise(string(entry.Key), transform.Unreadable(err))
	}
	m.table.addObject(&object{
		kind: kd, key: entry.Key, namespace: key.Namespace, name: key.Name, value: entry.Value,
		uid: meta.UID, deleting: !meta.DeletionTimestamp.IsZero(), unreadable: err != nil,
	})
	return nil
}

// scanned is a v1 record of the first pass.
type scanned struct {
	id    *identity
	key   keys.Key
	value []byte
	notes []*finding.Finding
	err   error
}

// scanV1 yields all v1 records with their identity. A record without a v3 kind yields nil: checking
// the CRDs reported the record before.
func (s *crdSet) scanV1() iter.Seq2[**scanned, error] {
	of := func(entry *transform.Entry) *scanned {
		key, err := s.keys.Parse(entry.Key)
		kd, ok := s.kinds.ofV1(key.Resource.Resource)
		if err != nil || !ok {
			return nil
		}
		return &scanned{id: newIdentity(kd, key, entry.Key), key: key, value: entry.Value}
	}
	return transform.Ahead(s.View, s.Live(s.ctx, s.groupDir(groupV1)), of, func(r **scanned) {
		if *r != nil {
			(*r).err = (*r).identify()
		}
	})
}

// addScanned adds a v1 record to the table.
func (m *run) addScanned(r *scanned) {
	for _, n := range r.notes {
		m.Raise(string(r.id.key), n)
	}
	if r.err == nil {
		if there := m.table.objects[string(r.id.v3key(m.keys))]; there != nil {
			r.id.mutableOptional().there = there
		}
		r.err = m.table.add(r.id)
	}
	if f := finding.Of(r.err); f != nil {
		meta, _ := encoding.ReadMeta(r.value) // empty if unreadable
		lost := newIdentity(r.id.kind, r.key, r.id.key)
		m.table.addLost(lost, meta.UID)
		m.skip(lost, f)
	}
}

// collide skips all but the first of the records with the same v3 name. If that is allowed, the
// first record is migrated.
func (m *run) collide(group []*identity) error {
	first, err := m.decodeStored(group[0])
	for _, id := range group[1:] {
		r, err2 := m.decodeStored(id)
		if err := cmp.Or(err, err2); err != nil {
			return err
		}
		for _, spec := range []map[string]any{first.spec, r.spec} {
			_ = convertSpec(id.kind, map[string]any{}, spec) // sets missing fields
		}
		same := "another spec"
		if len(specDifferences(id.kind, first.obj, r.obj)) == 0 {
			same = "the same spec"
		}
		m.skip(id, codeNameCollision.Because("its v3 name is %q, and so is that of %s, which has %s", id.name(),
			group[0].key, same))
	}
	return nil
}

// decodeStored returns the decoded record, owned by the caller.
func (s *store) decodeStored(id *identity) (*record, error) {
	entry, err := s.stored(id)
	if err != nil {
		return nil, err
	}
	return id.decode(entry.Value)
}

// stored returns the entry of a record, decrypted.
func (s *store) stored(id *identity) (*transform.Entry, error) {
	entry, err := s.get(id.key)
	if entry == nil && err == nil {
		err = errors.New("record " + string(id.key) + " is not there any more")
	}
	return entry, err
}
