package encoding

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Meta is the metadata of an API object. The zero value of a field means that the object lacks it.
type Meta struct {
	APIVersion, Kind    string // protobuf: from the envelope; JSON and CBOR: from the object
	Name, Namespace     string
	UID                 string
	Generation          int64
	CreationTimestamp   time.Time // UTC, whole seconds
	DeletionTimestamp   time.Time // UTC, whole seconds; zero when the object is not being deleted
	Labels, Annotations map[string]string
	Finalizers          []string
	OwnerReferences     []OwnerReference
}

// OwnerReference is one entry of metadata.ownerReferences. A nil pointer is a missing field.
type OwnerReference struct {
	APIVersion, Kind, Name, UID    string
	Controller, BlockOwnerDeletion *bool
}

// GVK is the object's kind; group and version are empty if apiVersion is not GROUP/VERSION.
func (m Meta) GVK() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(m.APIVersion, m.Kind)
}

// ReadMeta reads the metadata of a value in any format except encrypted, without decoding the rest.
// A protobuf value may be of any kind: ObjectMeta is field 1 of every object an API server stores
// (checked against k8s.io/api 0.37). A field of the wrong type is an error with its path; an API
// server silently drops such a field of a custom resource.
func ReadMeta(data []byte) (Meta, error) {
	var m Meta
	var err error
	f := Detect(data)
	switch f {
	case FormatProtobuf:
		m, err = metaOfProtobuf(data, 0)
	case FormatJSON:
		m, err = metaOfJSON(data)
	case FormatCBOR:
		m, err = metaOfCBOR(data)
	default:
		return Meta{}, unsupported(data, f)
	}
	if err != nil {
		return Meta{}, fmt.Errorf("%s value: %w", f, err)
	}
	return m, nil
}
