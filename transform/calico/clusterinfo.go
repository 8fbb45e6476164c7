package calico

import (
	"context"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/keys"
)

// ClusterInformation is the datastore's lock: while spec.datastoreReady is not true, components of its mode neither
// allocate addresses nor program policy. The v3 one is written ready after everything else; the v1 one, where it is kept, is
// locked, so that a component that still looks there does nothing.

// ready unlocks a v3 ClusterInformation that was there before, as one written by the live controller may be locked. Objects
// of other kinds are left as they are.
func (m *run) ready(ctx context.Context, id *identity, there map[string]any, format encoding.Format) error {
	spec, err := specOf(there)
	if !isClusterInformation(m.kinds[id.kind]) || err != nil || spec["datastoreReady"] == true {
		return nil
	}
	return m.setReady(ctx, id.v3key, there, true, format, "the v3 datastore is ready")
}

// warnLocked reports a v1 datastore that was locked when the snapshot was taken: by an upgrade, or by a live migration that
// was given up.
func (m *run) warnLocked(ctx context.Context) error {
	key := m.lockKey()
	obj, _, err := m.lock(ctx, key)
	if err != nil || obj == nil {
		return err
	}
	if spec, err := specOf(obj); err == nil && spec["datastoreReady"] != true {
		m.view.Warn(string(key), codeDatastoreLocked, "the v1 datastore was not ready when the snapshot was taken; the v3 one will be")
	}
	return nil
}

// lockV1 locks the v1 datastore.
func (m *run) lockV1(ctx context.Context) error {
	key := m.lockKey()
	obj, format, err := m.lock(ctx, key)
	if err != nil || obj == nil {
		return err
	}
	if spec, err := specOf(obj); err != nil || spec["datastoreReady"] == false {
		return nil // a spec that is no object was refused as invalid
	}
	return m.setReady(ctx, key, obj, false, format, "the v1 datastore is locked")
}

func (m *run) lockKey() []byte {
	k, _ := kindOfV3("clusterinformations")
	return m.keys.Format(keys.Key{Resource: k.v1(), Name: "default"})
}

// lock reads the v1 ClusterInformation; nil when there is none that can be read (which is reported elsewhere).
func (m *run) lock(ctx context.Context, key []byte) (map[string]any, encoding.Format, error) {
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

// setReady stages a ClusterInformation with another datastoreReady.
func (m *run) setReady(ctx context.Context, key []byte, obj map[string]any, ready bool, format encoding.Format, why string) error {
	spec, err := specOf(obj)
	if err != nil {
		return err
	}
	spec["datastoreReady"] = ready
	if meta, ok := obj["metadata"].(map[string]any); ok {
		if generation, ok := meta["generation"].(int64); ok {
			meta["generation"] = generation + 1
		}
	}
	value, err := encoding.EncodeObject(obj, format)
	if err != nil {
		return err
	}
	return m.view.Put(ctx, key, value, why)
}
