package inspect

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/internal/native"
)

type shares map[string]*Share

func (s shares) of(name string) *Share {
	share := s[name]
	if share == nil {
		share = &Share{Name: name}
		s[name] = share
	}
	return share
}

func (s *Share) count(size int) { s.Objects, s.Live = s.Objects+1, s.Live+int64(size) }

// sorted lists the shares, the most live bytes first, then the most history, then by name.
func (s shares) sorted() []Share {
	out := make([]Share, 0, len(s))
	for _, share := range s {
		out = append(out, *share)
	}
	slices.SortFunc(out, func(a, b Share) int {
		return cmp.Or(cmp.Compare(b.Live, a.Live), cmp.Compare(b.History, a.History), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// field is a part of a live record. Every byte belongs to exactly one.
type field int

const (
	fieldManaged field = iota
	fieldLastApplied
	fieldMetadata
	fieldSpec
	fieldStatus
	fieldData
	fieldOther
	fieldEncrypted
	fieldNoObject
	fieldEnvelope
	fieldCount
)

// fieldNames are the names of Fields.
func fieldNames() [fieldCount]string {
	return [fieldCount]string{"managedFields", "last-applied annotation", "metadata, the rest", "spec", "status", "data", "other fields",
		"encrypted, not opened", "values that are no objects", "keys, numbers, envelopes"}
}

type fieldSizes struct {
	shares [fieldCount]Share
	names  map[schema.GroupVersionKind]map[int]string
}

func newFieldSizes() *fieldSizes {
	return &fieldSizes{names: map[schema.GroupVersionKind]map[int]string{}}
}

// named are the shares of the fields that some object has.
func (f *fieldSizes) named() shares {
	out := shares{}
	for i, name := range fieldNames() {
		if f.shares[i].Objects > 0 {
			f.shares[i].Name = name
			out[name] = &f.shares[i]
		}
	}
	return out
}

func (f *fieldSizes) add(one *weighed) {
	sizes := [fieldCount]int{fieldEnvelope: one.stored}
	give := func(to field, n int) {
		sizes[to] += n
		sizes[fieldEnvelope] -= n
	}
	parts := &one.parts
	switch {
	case one.Undecryptable != nil:
		give(fieldEncrypted, len(one.Stored))
	case one.unmeasurable != nil:
		give(fieldNoObject, len(one.Stored))
	default:
		names := f.namesOf(one.value)
		for _, p := range parts.Fields {
			give(fieldOf(p, names), p.Bytes)
		}
		sizes[fieldMetadata] -= parts.ManagedFields + parts.LastApplied
		sizes[fieldManaged], sizes[fieldLastApplied] = parts.ManagedFields, parts.LastApplied
	}
	for i, n := range sizes {
		if n != 0 {
			f.shares[i].count(n)
		}
	}
}

// fieldOf is the field of a top-level part; names has those of protobuf.
func fieldOf(p encoding.Part, names map[int]string) field {
	name := p.Name
	if p.Number == encoding.ObjectMetaField {
		name = "metadata"
	} else if p.Number > 0 {
		name = names[p.Number]
	}
	switch name {
	case "metadata":
		return fieldMetadata
	case "spec":
		return fieldSpec
	case "status":
		return fieldStatus
	case "data", "binaryData", "stringData":
		return fieldData
	}
	return fieldOther
}

// namesOf are the names of the fields of a protobuf value; none of unknown kinds, which a hostile
// file may name in masses.
func (f *fieldSizes) namesOf(v encoding.Value) map[int]string {
	if v.Format != encoding.FormatProtobuf {
		return nil
	}
	names, known := f.names[v.GVK]
	if !known {
		if names = native.FieldNames(v.GVK); names != nil {
			f.names[v.GVK] = names
		}
	}
	return names
}
