package inspect

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/internal/native"
)

// shares are sizes by name.
type shares map[string]*Share

func (s shares) of(name string) *Share {
	if s[name] == nil {
		s[name] = &Share{Name: name}
	}
	return s[name]
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

// The names of Fields. Every byte of a live record belongs to exactly one.
const (
	fieldManaged     = "managedFields"
	fieldLastApplied = "last-applied annotation"
	fieldMetadata    = "metadata, the rest"
	fieldSpec        = "spec"
	fieldStatus      = "status"
	fieldData        = "data"
	fieldOther       = "other fields"
	fieldEncrypted   = "encrypted, not opened"
	fieldNoObject    = "values that are no objects"
	fieldEnvelope    = "keys, numbers, envelopes"
)

// fieldSizes sums up the sizes of fields.
type fieldSizes struct {
	shares shares
	names  map[schema.GroupVersionKind]map[int]string
}

func newFieldSizes() *fieldSizes {
	return &fieldSizes{shares{}, map[schema.GroupVersionKind]map[int]string{}}
}

// add counts the fields of a live record of so many bytes.
func (f *fieldSizes) add(e *Entry, stored int) {
	sizes := map[string]int{fieldEnvelope: stored}
	give := func(field string, n int) {
		sizes[field] += n
		sizes[fieldEnvelope] -= n
	}
	v, err := encoding.Parse(e.Value) // read once: nothing to keep
	var parts encoding.Parts
	if err == nil {
		parts, err = encoding.MeasureParts(v)
	}
	switch {
	case e.Undecryptable != nil:
		give(fieldEncrypted, len(e.Stored))
	case err != nil:
		give(fieldNoObject, len(e.Stored))
	default:
		for _, p := range parts.Fields {
			give(f.field(v, p), p.Bytes)
		}
		sizes[fieldMetadata] -= parts.ManagedFields + parts.LastApplied
		sizes[fieldManaged], sizes[fieldLastApplied] = parts.ManagedFields, parts.LastApplied
	}
	for field, n := range sizes {
		if n != 0 {
			f.shares.of(field).count(n)
		}
	}
}

// field is the name of one top-level field in Fields.
func (f *fieldSizes) field(v encoding.Value, p encoding.Part) string {
	name := p.Name
	if p.Number == encoding.ObjectMetaField {
		name = "metadata"
	} else if p.Number > 0 {
		name = f.nameOf(v.GVK, p.Number)
	}
	switch name {
	case "metadata":
		return fieldMetadata
	case "spec", "status":
		return name
	case "data", "binaryData", "stringData":
		return fieldData
	}
	return fieldOther
}

// nameOf is the name of a protobuf field; "" of unknown kinds, which a hostile file may name in
// masses.
func (f *fieldSizes) nameOf(gvk schema.GroupVersionKind, number int) string {
	names, known := f.names[gvk]
	if !known {
		if names = native.FieldNames(gvk); names != nil {
			f.names[gvk] = names
		}
	}
	return names[number]
}
