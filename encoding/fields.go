package encoding

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// Fields decodes the fields of the struct T, named by their json tags, from JSON and CBOR values.
// All fields of T must have a json tag. Fields is safe for concurrent use.
type Fields[T any] struct{ plan plan }

// FieldsOf returns Fields for T; call FieldsOf once for each type. Strings, structs, maps of
// strings, and pointers to and lists of these are read in one pass over the text; values with a
// field of another type take ten times as long. Maps may lack entries not named here.
func FieldsOf[T any](entries ...string) Fields[T] {
	return Fields[T]{planOf(reflect.TypeFor[T](), entries)}
}

// Decode decodes a value. A field with a value of the wrong type is an error that does not quote
// the value. Other errors are those of DecodeObject.
func (f Fields[T]) Decode(data []byte) (*T, error) {
	if Detect(data) != FormatJSON {
		content, _, err := DecodeObject(data)
		if err != nil {
			return nil, err
		}
		out := new(T)
		return out, runtime.DefaultUnstructuredConverter.FromUnstructured(content, out)
	}
	out, p := new(T), Scanner{Text: data}
	if f.plan.read(&p, reflect.ValueOf(out).Elem()) && p.ends() {
		return out, nil
	}
	out = new(T)
	if err := unmarshal(data, out); err != nil {
		return nil, fmt.Errorf("%s value: %w", FormatJSON, err)
	}
	return out, nil
}

// plan holds the steps for reading a value into a type.
type plan struct {
	kind    reflect.Kind
	members []planned // of a struct
	element *plan     // of a list or a pointer
	entries []string  // of a map: the requested entries
}

// planned is a field of a struct.
type planned struct {
	name  string
	index []int
	plan  plan
}

func planOf(t reflect.Type, entries []string) plan {
	p := plan{kind: t.Kind(), entries: entries}
	switch {
	case p.kind == reflect.Struct:
		p.members = plannedOf(t, entries)
	case p.kind == reflect.Slice || p.kind == reflect.Pointer:
		element := planOf(t.Elem(), entries)
		p.element = &element
	case p.kind != reflect.String && t != reflect.TypeFor[map[string]string]():
		p.kind = reflect.Invalid
	}
	return p
}

// plannedOf lists the fields of a struct, including fields of embedded structs.
func plannedOf(t reflect.Type, entries []string) (all []planned) {
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "" {
			all = append(all, planned{name, field.Index, planOf(field.Type, entries)})
			continue
		}
		for _, inner := range plannedOf(field.Type, entries) {
			inner.index = slices.Concat(field.Index, inner.index)
			all = append(all, inner)
		}
	}
	return all
}

// read consumes a value and sets the zero value out. False means that the caller must decode the
// value.
func (t *plan) read(p *Scanner, out reflect.Value) bool {
	if p.Next() == 'n' {
		return p.Word("null")
	}
	switch t.kind {
	case reflect.String:
		text, ok := p.decoded()
		out.SetString(text)
		return ok
	case reflect.Map:
		content := map[string]string{}
		out.Set(reflect.ValueOf(content))
		return p.Members(func(name []byte) (ok bool) {
			i := slices.Index(t.entries, string(name))
			if i < 0 {
				return p.Str()
			}
			content[t.entries[i]], ok = p.decoded()
			return ok
		})
	case reflect.Slice:
		out.Set(reflect.MakeSlice(out.Type(), 0, 0))
		return p.Elements(func() bool {
			n := out.Len()
			out.Grow(1)
			out.SetLen(n + 1)
			return t.element.read(p, out.Index(n))
		})
	case reflect.Pointer:
		out.Set(reflect.New(out.Type().Elem()))
		return t.element.read(p, out.Elem())
	case reflect.Struct:
		return t.object(p, out)
	}
	return false
}

// object consumes an object. Two fields of one name return false: decoders merge their values.
func (t *plan) object(p *Scanner, out reflect.Value) bool {
	var seen names
	return p.Members(func(name []byte) bool {
		for i := range t.members {
			if m := &t.members[i]; m.name == string(name) {
				return seen.first(1<<i) && m.plan.read(p, out.FieldByIndex(m.index))
			}
		}
		return p.Value()
	})
}
