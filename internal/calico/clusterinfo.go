package calico

import "github.com/etcdshift/etcdshift/encoding"

// ClusterInformation is the datastore's lock: unless spec.datastoreReady is true, components of its
// mode neither allocate addresses nor program policy. The v3 object is written last, as ready. A
// kept v1 object is locked, so that a component on v1 does nothing.

// stageLocks stages the v3 ClusterInformation. An existing v3 object that stays becomes ready too:
// the live controller may have left it locked.
func (m *run) stageLocks() error {
	for _, id := range m.table.records {
		if late := m.late[id]; late != nil {
			if err := m.put(id.v3key(m.keys), late); err != nil {
				return err
			}
		}
	}
	kd, _ := kinds().called(kindClusterInformation)
	for _, o := range m.table.objectsOf(kd) {
		if err := m.setReady(o.key, true); err != nil {
			return err
		}
	}
	return nil
}

// warnLocked reports a v1 datastore that was locked in the snapshot, by an upgrade or by an aborted
// live migration.
func (s *store) warnLocked() error {
	obj, _, err := s.read(s.lockKey())
	if obj == nil || err != nil {
		return err
	}
	if spec, err := specOf(obj); err == nil && spec["datastoreReady"] != true {
		s.Raise(string(s.lockKey()), codeDatastoreLocked.Because("the v1 datastore was not ready when the snapshot "+
			"was taken; the v3 one will be"))
	}
	return nil
}

func (s *store) lockKey() []byte {
	k, _ := kinds().called(kindClusterInformation)
	return s.key(k.v1(), "", "default")
}

// setReady stages the ClusterInformation at key with the given datastoreReady, as an update would
// store it, and without the annotations in without. An object already in this state, or unreadable,
// stays unchanged.
func (s *store) setReady(key []byte, ready bool, without ...string) error {
	obj, format, err := s.read(key)
	if obj == nil || err != nil {
		return err
	}
	spec, err := specOf(obj)
	if err != nil || spec["datastoreReady"] == ready && len(without) == 0 {
		return nil // a spec of another type was refused as invalid
	}
	spec["datastoreReady"] = ready
	meta := objectAt(obj, "metadata")
	for _, name := range without {
		delete(objectAt(meta, "annotations"), name)
	}
	if generation, ok := meta["generation"].(int64); ok {
		meta["generation"] = generation + 1
	}
	value, err := encoding.EncodeObject(obj, format)
	if err != nil {
		return err
	}
	return s.put(key, value)
}
