package calico

import (
	"context"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/keys"
)

// ClusterInformation is the datastore's lock: while spec.datastoreReady is not true, components of
// its mode neither allocate addresses nor program policy. The v3 one is written ready after
// everything else. The v1 one, where it is kept, is locked, so that a component that still looks
// there does nothing.

// lateWrite is a v3 ClusterInformation that is yet to be staged.
type lateWrite struct {
	id    *identity
	value []byte
}

// stageLocks stages the v3 ClusterInformation. It also makes one ready that was there before and
// stays: the live controller may have left it locked.
func (m *run) stageLocks(ctx context.Context) error {
	for _, l := range m.late {
		if err := m.view.Put(ctx, l.id.v3key, l.value, whyRecord(l.id)); err != nil {
			return err
		}
	}
	kd, _ := kindOfV3("clusterinformations")
	for _, o := range m.table.objectsOf(kd) {
		if err := m.setReady(ctx, o.key, true, "the v3 datastore is ready"); err != nil {
			return err
		}
	}
	return nil
}

// warnLocked reports a v1 datastore that was locked when the snapshot was taken, by an upgrade or
// by an aborted live migration.
func (m *run) warnLocked(ctx context.Context) error {
	key := m.lockKey()
	obj, _, err := m.read(ctx, key)
	if err != nil || obj == nil {
		return err
	}
	if spec, err := specOf(obj); err == nil && spec["datastoreReady"] != true {
		m.view.Raise(string(key), codeDatastoreLocked.Because("the v1 datastore was not ready when the snapshot was taken; the v3 one will be"))
	}
	return nil
}

func (m *run) lockKey() []byte {
	k, _ := kindOfV3("clusterinformations")
	return m.keys.Format(keys.Key{Resource: k.v1(), Name: "default"})
}

// read decodes the object at key; nil for none, and for one that cannot be decoded, which is
// reported elsewhere.
func (m *run) read(ctx context.Context, key []byte) (map[string]any, encoding.Format, error) {
	entry, err := m.view.Get(ctx, key)
	if err != nil || entry == nil {
		return nil, encoding.FormatUnknown, err
	}
	obj, format, err := encoding.DecodeObject(entry.Value)
	if err != nil {
		return nil, format, nil
	}
	return obj, format, nil
}

// setReady stages the ClusterInformation at key with another datastoreReady, as an update would
// store it. One that has it, or that cannot be read, stays as it is.
func (m *run) setReady(ctx context.Context, key []byte, ready bool, why string) error {
	obj, format, err := m.read(ctx, key)
	if err != nil || obj == nil {
		return err
	}
	spec, err := specOf(obj)
	if err != nil || spec["datastoreReady"] == ready {
		return nil // a spec that is no object was refused as invalid
	}
	spec["datastoreReady"] = ready
	meta := objectAt(obj, "metadata")
	if generation, ok := meta["generation"].(int64); ok {
		meta["generation"] = generation + 1
	}
	value, err := encoding.EncodeObject(obj, format)
	if err != nil {
		return err
	}
	return m.view.Put(ctx, key, value, why)
}
