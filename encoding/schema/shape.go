package schema

import (
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/etcdshift/etcdshift/encoding"
)

// shape holds the parts of a structural schema that decide about coercing and defaulting. It is
// quick to look up: structural schemas hold their properties by value, and each lookup copies one.
type shape struct {
	properties map[string]*shape
	open       bool   // has additionalProperties
	additional *shape // their schema, if any
	items      *shape
	preserve   bool // x-kubernetes-preserve-unknown-fields
	embedded   bool // x-kubernetes-embedded-resource
	nullable   bool
	defaults   []string // properties with a default
	hasDefault bool     // has one itself
	value      any      // that default
	weight     int      // of the default and its key
	defaulting bool     // it, or something below, has one
}

func newShape(s *structuralschema.Structural) *shape {
	if s == nil {
		return nil
	}
	out := &shape{
		properties: make(map[string]*shape, len(s.Properties)),
		items:      newShape(s.Items),
		preserve:   s.XPreserveUnknownFields,
		embedded:   s.XEmbeddedResource,
		nullable:   s.Nullable,
		hasDefault: s.Default.Object != nil,
		value:      s.Default.Object,
		weight:     encoding.Weigh(s.Default.Object),
	}
	out.defaulting = out.hasDefault || out.items.hasDefaults()
	for name, property := range s.Properties {
		below := newShape(&property)
		out.properties[name] = below
		out.defaulting = out.defaulting || below.defaulting
		if below.hasDefault {
			below.weight += encoding.Weigh(name)
			out.defaults = append(out.defaults, name)
		}
	}
	if s.AdditionalProperties != nil {
		out.open, out.additional = true, newShape(s.AdditionalProperties.Structural)
		out.defaulting = out.defaulting || out.additional.hasDefaults()
	}
	return out
}

func (s *shape) hasDefaults() bool { return s != nil && s.defaulting }

// field returns the shape of a field, or nil, and whether the schema declares the field.
func (s *shape) field(name string) (below *shape, declared bool) {
	if s == nil {
		return nil, false
	}
	if below, declared = s.properties[name]; declared {
		return below, true
	}
	return s.additional, s.open
}

func (s *shape) item() *shape {
	if s == nil {
		return nil
	}
	return s.items
}
