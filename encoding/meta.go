package encoding

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Meta is the metadata of an API object. A missing field has the zero value.
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

// GVK returns the object's kind; group and version are empty if apiVersion is not GROUP/VERSION.
func (m Meta) GVK() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(m.APIVersion, m.Kind)
}

// ReadMeta reads the metadata of a value in any format except encrypted, without decoding the rest.
// A protobuf value may be of any kind: ObjectMeta is field 1 of every stored object (checked
// against k8s.io/api 0.37). A field of the wrong type is an error with its path; an API server
// silently drops such a field of a custom resource.
func ReadMeta(data []byte) (Meta, error) {
	return byFormat(data, metaOfJSON, metaOfCBOR, metaOfProtobuf)
}

// metaOfJSON decodes only the metadata field.
func metaOfJSON(data []byte) (Meta, error) {
	obj, err := parseJSONObject(data)
	if err != nil {
		return Meta{}, err
	}
	fields, err := obj.object("metadata")
	if err != nil {
		return Meta{}, err
	}
	var metadata map[string]any
	text := fields.without("managedFields").text() // managedFields is most of the text, and Meta needs none of it
	if err := unmarshal(text, &metadata); err != nil {
		return Meta{}, at("metadata", err)
	}
	apiVersion, kind, err := obj.typeMeta()
	if err != nil {
		return Meta{}, err
	}
	return metaOf(apiVersion, kind, metadata)
}

func metaOfCBOR(data []byte) (Meta, error) {
	obj, err := decodeCBOR(data)
	r := reader{obj: obj, err: err}
	apiVersion, kind, metadata := r.str("apiVersion"), r.str("kind"), r.object("metadata")
	if r.err != nil {
		return Meta{}, r.err
	}
	return metaOf(apiVersion, kind, metadata)
}

// metaOf reads decoded metadata.
func metaOf(apiVersion, kind string, metadata map[string]any) (Meta, error) {
	r := reader{obj: metadata}
	m := Meta{
		APIVersion: apiVersion, Kind: kind,
		Name:              r.str("name"),
		Namespace:         r.str("namespace"),
		UID:               r.str("uid"),
		Generation:        r.integer("generation"),
		CreationTimestamp: r.time("creationTimestamp"),
		DeletionTimestamp: r.time("deletionTimestamp"),
		Labels:            r.stringMap("labels"),
		Annotations:       r.stringMap("annotations"),
		Finalizers:        r.stringList("finalizers"),
	}
	r.objects("ownerReferences", func(o *reader) {
		m.OwnerReferences = append(m.OwnerReferences, o.owner())
	})
	if r.err != nil {
		return Meta{}, at("metadata", r.err)
	}
	return m, nil
}
