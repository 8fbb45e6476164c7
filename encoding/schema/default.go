package schema

import (
	"errors"
	"fmt"
	"slices"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/etcdshift/etcdshift/encoding"
)

// MaxGrowth is the maximum growth of one object by defaults or a conversion, in bytes counted by
// encoding.Weigh: four times etcd's default request size. Nested defaults grow without a limit.
const MaxGrowth = 4 * 1536 << 10

// ErrTooLarge is returned for an object that would grow by more than MaxGrowth.
var ErrTooLarge = errors.New("the object grows too large")

// Default adds the version's defaults in place, like a server after each read at the stored version
// and each write at the requested version. Objects of another group or kind stay unchanged. After
// ErrTooLarge obj is undefined.
func (v *Version) Default(obj map[string]any) error {
	if _, err := v.structural(); err != nil || !v.governs(obj) {
		return nil
	}
	d := defaulter{left: MaxGrowth}
	if err := d.fill(obj, v.shape()); err != nil {
		return fmt.Errorf("defaults of %s: %w", v.spec.Name, err)
	}
	return nil
}

// defaulter is defaulting.Default of apiextensions-apiserver with a limit for the copied defaults.
type defaulter struct{ left int }

// fill adds the defaults below value.
func (d *defaulter) fill(value any, s *shape) (err error) {
	if !s.hasDefaults() {
		return nil
	}
	switch value := value.(type) {
	case map[string]any:
		for _, name := range s.defaults {
			if _, found := value[name]; found {
				continue
			}
			if value[name], err = d.copy(s.properties[name]); err != nil {
				return err
			}
		}
		for name := range value {
			child, _ := s.field(name)
			if value[name], err = d.element(value[name], child); err != nil {
				return err
			}
		}
	case []any:
		for i := range value {
			if value[i], err = d.element(value[i], s.items); err != nil {
				return err
			}
		}
	}
	return nil
}

// element returns an element of a map or list with its defaults. A null that is not nullable
// becomes the default of the element.
func (d *defaulter) element(value any, s *shape) (_ any, err error) {
	if value == nil && s != nil && s.hasDefault && !s.nullable {
		value, err = d.copy(s)
	}
	if err != nil {
		return nil, err
	}
	return value, d.fill(value, s)
}

// copy returns a copy of the default of the shape.
func (d *defaulter) copy(s *shape) (any, error) {
	if d.left -= s.weight; d.left < 0 {
		return nil, fmt.Errorf("%w: by more than %d bytes", ErrTooLarge, MaxGrowth)
	}
	return cloneJSON(s.value), nil
}

// shape holds the parts of a structural schema needed for coercing and defaulting. Look-ups are
// quick; structural schemas hold their properties by value, and each look-up copies one.
type shape struct {
	properties map[string]*shape
	open       bool   // has additionalProperties
	additional *shape // schema of additionalProperties, if any
	items      *shape
	preserve   bool // x-kubernetes-preserve-unknown-fields
	embedded   bool // x-kubernetes-embedded-resource
	nullable   bool
	defaults   []string // properties with a default
	hasDefault bool     // the shape itself has a default
	value      any      // default of the shape
	weight     int      // weight of the default and its key
	defaulting bool     // the shape, or a shape below, has a default
	embeds     bool     // the shape, or a shape below, is an embedded resource
	rules      *rules   // of Version.checked; nil if no rules can be determined
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
	all := []*shape{out.items}
	for name, property := range s.Properties {
		below := newShape(&property)
		out.properties[name] = below
		all = append(all, below)
		if below.hasDefault {
			below.weight += encoding.Weigh(name)
			out.defaults = append(out.defaults, name)
		}
	}
	slices.Sort(out.defaults)
	if s.AdditionalProperties != nil {
		out.open, out.additional = true, newShape(s.AdditionalProperties.Structural)
		all = append(all, out.additional)
	}
	out.defaulting = out.hasDefault || slices.ContainsFunc(all, (*shape).hasDefaults)
	out.embeds = out.embedded || slices.ContainsFunc(all, (*shape).hasEmbedded)
	return out
}

func (s *shape) hasDefaults() bool { return s != nil && s.defaulting }

func (s *shape) hasEmbedded() bool { return s != nil && s.embeds }

// field returns the shape of a field, or nil, and reports whether the schema declares the field.
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
