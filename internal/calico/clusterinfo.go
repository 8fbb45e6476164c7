package calico

import (
	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/keys"
)

// ClusterInformation is the datastore's lock: while spec.datastoreReady is not true, components of
// its mode neither allocate addresses nor program policy. The v3 one is written ready after
// everything else. The v1 one, where it is kept, is locked, so that a component that still looks
// there does nothing.

// stageLocks stages the v3 ClusterInformation. It also makes one ready that was there before and
// stays: the live controller may have left it locked.
func (m *run) stageLocks() {
	for _, id := range m.table.records {
		if late := id.rest().late; late != nil {
			m.Put(id.v3key(m.Keys), late)
		}
	}
	kd, _ := kinds().ofV3("clusterinformations")
	for _, o := range m.table.objectsOf(kd) {
		m.setReady(o.key, true)
	}
}

// warnLocked reports a v1 datastore that was locked when the snapshot was taken, by an upgrade or
// by an aborted live migration.
func (m *run) warnLocked() {
	obj, _ := m.Read(m.lockKey())
	if obj == nil {
		return
	}
	if spec, err := specOf(obj); err == nil && spec["datastoreReady"] != true {
		m.Raise(string(m.lockKey()), codeDatastoreLocked.Because("the v1 datastore was not ready when the snapshot was taken; the v3 one will be"))
	}
}

func (m *run) lockKey() []byte {
	k, _ := kinds().ofV3("clusterinformations")
	return m.Keys.Format(keys.Key{Resource: k.v1(), Name: "default"})
}

// setReady stages the ClusterInformation at key with another datastoreReady, as an update would
// store it, and without the annotations that without names. One that has it, or that cannot be
// read, stays as it is.
func (m *run) setReady(key []byte, ready bool, without ...string) {
	obj, format := m.Read(key)
	if obj == nil {
		return
	}
	spec, err := specOf(obj)
	if err != nil || spec["datastoreReady"] == ready && len(without) == 0 {
		return // a spec that is no object was refused as invalid
	}
	spec["datastoreReady"] = ready
	meta := objectAt(obj, "metadata")
	for _, name := range without {
		delete(objectAt(meta, "annotations"), name)
	}
	if generation, ok := meta["generation"].(int64); ok {
		meta["generation"] = generation + 1
	}
	if value, err := encoding.EncodeObject(obj, format); !m.Failed(err) {
		m.Put(key, value)
	}
}
