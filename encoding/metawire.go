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

// Names of those fields, for errors.
var (
	metaNames = map[protowire.Number]string{
		metaName: "name", metaNamespace: "namespace", metaUID: "uid", metaGeneration: "generation",
		metaCreationTimestamp: "creationTimestamp", metaDeletionTimestamp: "deletionTimestamp", metaLabels: "labels",
		metaAnnotations: "annotations", metaFinalizers: "finalizers", metaOwnerReferences: "ownerReferences",
	}
	ownerNames = map[protowire.Number]string{
		ownerKind: "kind", ownerName: "name", ownerUID: "uid", ownerAPIVersion: "apiVersion",
		ownerController: "controller", ownerBlockOwnerDeletion: "blockOwnerDeletion",
	}
)

// metaOfProtobuf reads the metadata, or only one field.
func metaOfProtobuf(data []byte, only protowire.Number) (Meta, error) {
	e, err := parseEnvelope(data)
	if err != nil {
		return Meta{}, err
	}
	m, seen := Meta{APIVersion: e.apiVersion, Kind: e.kind}, false
	for f, err := range fields(e.body.payload) {
		if err != nil {
			return Meta{}, err
		}
		if f.num != objectMeta {
			continue
		}
		content, err := f.bytes()
		if twice := seen && only != 0; err == nil && twice {
			err = f.repeated()
		} else if err == nil {
			err = m.readWire(content, only)
		}
		seen = true
		if err != nil {
			return Meta{}, at("metadata", err)
		}
	}
	return m, nil
}

// readWire reads an ObjectMeta. The last of repeated scalars wins, as in a generated decoder.
func (m *Meta) readWire(msg []byte, only protowire.Number) error {
	for f, err := range fields(msg) {
		if err != nil {
			return err
		}
		if only != 0 && f.num != only {
			continue
		}
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
			m.CreationTimestamp, err = readTime(f)
		case metaDeletionTimestamp:
			m.DeletionTimestamp, err = readTime(f)
		case metaLabels:
			m.Labels, err = readMapEntry(m.Labels, f)
		case metaAnnotations:
			m.Annotations, err = readMapEntry(m.Annotations, f)
		case metaFinalizers:
			var text string
			text, err = f.text()
			m.Finalizers = append(m.Finalizers, text)
		case metaOwnerReferences:
			var owner OwnerReference
			if owner, err = readOwner(f); err != nil {
				err = at(fmt.Sprintf("[%d]", len(m.OwnerReferences)), err)
			}
			m.OwnerReferences = append(m.OwnerReferences, owner)
		}
		if err != nil {
			return at(metaNames[f.num], err)
		}
	}
	return nil
}

func readOwner(field wireField) (OwnerReference, error) {
	var o OwnerReference
	content, err := field.bytes()
	if err != nil {
		return o, err
	}
	for f, err := range fields(content) {
		if err != nil {
			return o, err
		}
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
		if err != nil {
			return o, at(ownerNames[f.num], err)
		}
	}
	return o, nil
}

func readBool(f wireField) (*bool, error) {
	n, err := f.integer()
	value := n != 0
	return &value, err
}

// readTime reads a metav1.Time as metav1.Time.Unmarshal does: an empty message is the zero time,
// nanoseconds are ignored.
func readTime(field wireField) (time.Time, error) {
	content, err := field.bytes()
	if err != nil || len(content) == 0 {
		return time.Time{}, err
	}
	var seconds int64
	for f, err := range fields(content) {
		if err != nil {
			return time.Time{}, err
		}
		if f.num == timeSeconds {
			if seconds, err = f.integer(); err != nil {
				return time.Time{}, at("seconds", err)
			}
		}
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// readMapEntry adds one entry of a map<string, string> to a map, made when needed.
func readMapEntry(into map[string]string, field wireField) (map[string]string, error) {
	content, err := field.bytes()
	if err != nil {
		return into, err
	}
	key, value, err := mapEntry(content)
	if err != nil {
		return into, err
	}
	if into == nil {
		into = make(map[string]string)
	}
	into[string(key)] = string(value)
	return into, nil
}

func mapEntry(msg []byte) (key, value []byte, err error) {
	for f, err := range fields(msg) {
		if err != nil {
			return nil, nil, err
		}
		switch f.num {
		case mapKey:
			key, err = f.bytes()
		case mapValue:
			value, err = f.bytes()
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return key, value, nil
}
