package native

import (
	"reflect"
	"time"
)

// places finds fields in values of a Go type.
type places struct {
	here   bool      // the value is such a field
	below  *places   // in the elements of a pointer or list
	fields []*places // in the fields of a struct; nil for none
}

// isTime reports whether a field of a struct is a time.
func isTime(_ reflect.Type, f reflect.StructField) bool {
	return f.Type == reflect.TypeFor[time.Time]()
}

// placesOf returns nil for a type without fields that is accepts. Types that contain themselves are
// in known.
func placesOf(
	t reflect.Type, is func(of reflect.Type, f reflect.StructField) bool, known map[reflect.Type]*places,
) *places {
	if s, seen := known[t]; seen {
		return s
	}
	s, found := &places{}, false
	known[t] = s
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		s.below = placesOf(t.Elem(), is, known)
		found = s.below != nil
	case reflect.Struct:
		s.fields = make([]*places, t.NumField())
		for i := range s.fields {
			switch f := t.Field(i); {
			case is(t, f):
				s.fields[i] = &places{here: true}
			case f.IsExported():
				s.fields[i] = placesOf(f.Type, is, known)
			}
			found = found || s.fields[i] != nil
		}
	}
	if !found {
		known[t] = nil
		return nil
	}
	return s
}

// each calls do for every such field in v.
func (s *places) each(v reflect.Value, do func(reflect.Value)) {
	switch {
	case s == nil:
	case s.here:
		do(v)
	case v.Kind() == reflect.Pointer:
		if !v.IsNil() {
			s.below.each(v.Elem(), do)
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			s.below.each(v.Index(i), do)
		}
	case v.Kind() == reflect.Struct:
		for i, below := range s.fields {
			if below != nil {
				below.each(v.Field(i), do)
			}
		}
	}
}
