package inspect

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/internal/native"
)

// shares are summed up by name.
type shares map[string]*Share

func (s shares) of(name string) *Share {
	if s[name] == nil {
		s[name] = &Share{Name: name}
	}
	return s[name]
}

func (s *Share) count(size int) { s.Objects, s.Live = s.Objects+1, s.Live+int64(size) }

// sorted lists the shares, those with the most live bytes first, then those with the most history, then by name.
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

// The fields that sizes are told of. Every byte of a live record belongs to exactly one.
const (
	FieldManaged     = "managedFields"
	FieldLastApplied = "last-applied annotation"
	FieldMetadata    = "metadata, the rest"
	FieldSpec        = "spec"
	FieldStatus      = "status"
	FieldData        = "data"
	FieldOther       = "other fields"
	FieldSealed      = "encrypted, not opened"
	FieldNoObject    = "values that are no objects"
	FieldEnvelope    = "keys, numbers, envelopes"
)

// fieldSizes sums up what fields take.
type fieldSizes struct {
	shares shares
	names  map[schema.GroupVersionKind]map[int]string
}

func newFieldSizes() *fieldSizes {
	return &fieldSizes{shares{}, map[schema.GroupVersionKind]map[int]string{}}
}

// add takes a live record of so many bytes apart.
func (f *fieldSizes) add(e *Entry, stored int) {
	sizes := map[string]int{FieldEnvelope: stored}
	give := func(field string, n int) {
		sizes[field] += n
		sizes[FieldEnvelope] -= n
	}
	v, err := e.ParseValue()
	var parts encoding.Parts
	if err == nil {
		parts, err = encoding.MeasureParts(v)
	}
	switch {
	case e.Undecryptable != nil:
		give(FieldSealed, len(e.Stored))
	case err != nil:
		give(FieldNoObject, len(e.Stored))
	}
	if e.Undecryptable == nil && err == nil {
		for _, p := range parts.Fields {
			give(f.field(v, p), p.Bytes)
		}
		sizes[FieldMetadata] -= parts.ManagedFields + parts.LastApplied
		sizes[FieldManaged], sizes[FieldLastApplied] = parts.ManagedFields, parts.LastApplied
	}
	for field, n := range sizes {
		if n != 0 {
			f.shares.of(field).count(n)
		}
	}
}

// field is the sort of one top-level field.
func (f *fieldSizes) field(v encoding.Value, p encoding.Part) string {
	name := p.Name
	if p.Number == encoding.ObjectMetaField {
		name = "metadata"
	} else if p.Number > 0 {
		name = f.nameOf(v.GVK, p.Number)
	}
	switch name {
	case "metadata":
		return FieldMetadata
	case "spec", "status":
		return name
	case "data", "binaryData", "stringData":
		return FieldData
	}
	return FieldOther
}

// nameOf is the name of a protobuf field; "" of kinds the build does not know. Kinds are few, but a hostile file names many.
func (f *fieldSizes) nameOf(gvk schema.GroupVersionKind, number int) string {
	names, known := f.names[gvk]
	if !known {
		if names = native.FieldNames(gvk); names != nil {
			f.names[gvk] = names
		}
	}
	return names[number]
}
