package encoding

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers of ObjectMeta, OwnerReference and Time (k8s.io/apimachinery
// pkg/apis/meta/v1/generated.proto).
const (
	objectMeta protowire.Number = 1 // in every API object

	metaName              protowire.Number = 1
	metaNamespace         protowire.Number = 3
	metaUID               protowire.Number = 5
	metaGeneration        protowire.Number = 7
	metaCreationTimestamp protowire.Number = 8
	metaDeletionTimestamp protowire.Number = 9
	metaLabels            protowire.Number = 11
	metaAnnotations       protowire.Number = 12
	metaOwnerReferences   protowire.Number = 13
	metaFinalizers        protowire.Number = 14
	metaManagedFields     protowire.Number = 17

	ownerKind               protowire.Number = 1
	ownerName               protowire.Number = 3
	ownerUID                protowire.Number = 4
	ownerAPIVersion         protowire.Number = 5
	ownerController         protowire.Number = 6
	ownerBlockOwnerDeletion protowire.Number = 7

	timeSeconds protowire.Number = 1

	mapKey   protowire.Number = 1
	mapValue protowire.Number = 2
)

// metaOfProtobuf reads the metadata. The last of repeated scalars wins, as in a generated decoder.
func metaOfProtobuf(data []byte) (Meta, error) {
	e, err := parseEnvelope(data)
	if err != nil {
		return Meta{}, err
	}
	m := Meta{APIVersion: e.apiVersion, Kind: e.kind}
	err = each(e.body.payload, func(f wireField) error {
		if f.num != objectMeta {
			return nil
		}
		return at("metadata", f.each(m.readWire))
	})
	return m, err
}

// readWire reads a field of an ObjectMeta.
func (m *Meta) readWire(f wireField) (err error) {
	switch f.num {
	case metaName:
		m.Name, err = f.text()
	case metaNamespace:
		m.Namespace, err = f.text()
	case metaUID:
		m.UID, err = f.text()
	case metaGeneration:
		m.Generation, err = f.integer()
	case metaCreationTimestamp:
		m.CreationTimestamp, err = readTime("creationTimestamp", f)
	case metaDeletionTimestamp:
		m.DeletionTimestamp, err = readTime("deletionTimestamp", f)
	case metaLabels:
		err = readMapEntry(&m.Labels, f)
	case metaAnnotations:
		err = readMapEntry(&m.Annotations, f)
	case metaFinalizers:
		var text string
		text, err = f.text()
		m.Finalizers = append(m.Finalizers, text)
	case metaOwnerReferences:
		var owner OwnerReference
		if err = f.each(owner.readWire); err != nil {
			err = at(fmt.Sprintf("[%d]", len(m.OwnerReferences)), err)
		}
		m.OwnerReferences = append(m.OwnerReferences, owner)
	}
	return atMember(objectMetaMember.members, f.num, err)
}

// readWire reads a field of an OwnerReference.
func (o *OwnerReference) readWire(f wireField) (err error) {
	switch f.num {
	case ownerKind:
		o.Kind, err = f.text()
	case ownerName:
		o.Name, err = f.text()
	case ownerUID:
		o.UID, err = f.text()
	case ownerAPIVersion:
		o.APIVersion, err = f.text()
	case ownerController:
		o.Controller, err = readBool(f)
	case ownerBlockOwnerDeletion:
		o.BlockOwnerDeletion, err = readBool(f)
	}
	return atMember(ownerMembers, f.num, err)
}

func readBool(f wireField) (*bool, error) {
	n, err := f.integer()
	value := n != 0
	return &value, err
}

// readTime reads a metav1.Time as metav1.Time.Unmarshal does: an empty message is the zero time,
// nanoseconds are ignored.
func readTime(name string, field wireField) (time.Time, error) {
	var seconds int64
	err := field.each(func(f wireField) (err error) {
		if f.num == timeSeconds {
			seconds, err = f.integer()
		}
		return at("seconds", err)
	})
	if err != nil || len(field.payload) == 0 {
		return time.Time{}, at(name, err)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// readMapEntry adds one entry of a map<string, string> to a map, made when needed.
func readMapEntry(into *map[string]string, field wireField) error {
	content, err := field.bytes()
	if err != nil {
		return err
	}
	key, value, err := mapEntry(content)
	if *into == nil {
		*into = make(map[string]string)
	}
	(*into)[string(key)] = string(value)
	return err
}

func mapEntry(msg []byte) (key, value []byte, err error) {
	err = each(msg, func(f wireField) (err error) {
		switch f.num {
		case mapKey:
			key, err = f.bytes()
		case mapValue:
			value, err = f.bytes()
		}
		return err
	})
	return key, value, err
}
