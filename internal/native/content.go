package native

import (
	"encoding/base64"
	"reflect"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Content converts a typed object to JSON content, like runtime.DefaultUnstructuredConverter but
// faster. Some types panic on bytes that no server stores, such as an invalid quantity.
func Content(obj runtime.Object) (content map[string]any, err error) {
	defer func() {
		if recover() != nil { // an error may quote the value
			content, err = nil, errFieldType
		}
	}()
	v := reflect.ValueOf(obj).Elem()
	return contentPlans().of(v.Type()).content(v).(map[string]any), nil
}

// contentPlans has the plans of types converted before.
var contentPlans = sync.OnceValue(func() *planned { return &planned{known: map[reflect.Type]*contentPlan{}} })

type planned struct {
	mu    sync.Mutex
	known map[reflect.Type]*contentPlan
}

// contentPlan says how values of a Go type become JSON content.
type contentPlan struct {
	kind   reflect.Kind
	own    *value.TypeReflectCacheEntry // converts a type that defines its JSON content; nil for others
	below  *contentPlan                 // of the elements of a list or a map, or of a pointer
	fields []contentField
}

type contentField struct {
	*contentPlan
	index     int
	name      string // "" for the fields of an embedded struct
	omitEmpty bool
	omitZero  func(reflect.Value) bool // nil if zero is content
}

func (p *planned) of(t reflect.Type) *contentPlan {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.plan(t)
}

func (p *planned) plan(t reflect.Type) *contentPlan {
	if plan, has := p.known[t]; has {
		return plan
	}
	plan := &contentPlan{kind: t.Kind()}
	p.known[t] = plan
	if entry := value.TypeReflectEntryOf(t); entry.CanConvertToUnstructured() {
		plan.own = entry
		return plan
	}
	switch t.Kind() {
	case reflect.Map, reflect.Slice, reflect.Pointer:
		plan.below = p.plan(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if f := p.field(t.Field(i), i); f.name != "-" {
				plan.fields = append(plan.fields, f)
			}
		}
	}
	return plan
}

func (p *planned) field(of reflect.StructField, index int) contentField {
	name, options, _ := strings.Cut(of.Tag.Get("json"), ",")
	if name == "" && !of.Anonymous {
		name = of.Name
	}
	f := contentField{contentPlan: p.plan(of.Type), index: index, name: name}
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "omitempty":
			f.omitEmpty = true
		case "omitzero":
			f.omitZero = value.OmitZeroFunc(of.Type)
		}
	}
	return f
}

func (p *contentPlan) content(v reflect.Value) any {
	if p.own != nil {
		content, err := p.own.ToUnstructured(v)
		if err != nil {
			panic(err)
		}
		return content
	}
	switch p.kind {
	case reflect.String:
		return v.String()
	case reflect.Bool:
		return v.Bool()
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int()
	case reflect.Float32, reflect.Float64:
		return v.Float()
	case reflect.Struct:
		content := make(map[string]any, p.count(v))
		p.addTo(content, v)
		return content
	}
	if v.IsNil() {
		return nil
	}
	switch p.kind {
	case reflect.Pointer:
		return p.below.content(v.Elem())
	case reflect.Map:
		content := make(map[string]any, v.Len())
		for key, value := range v.Seq2() {
			content[key.String()] = p.below.content(value)
		}
		return content
	}
	if p.below.kind == reflect.Uint8 {
		return base64.StdEncoding.EncodeToString(v.Bytes())
	}
	content := make([]any, v.Len())
	for i := range content {
		content[i] = p.below.content(v.Index(i))
	}
	return content
}

// count returns the number of fields in the content of a struct, for a map without spare room.
func (p *contentPlan) count(v reflect.Value) (n int) {
	for i := range p.fields {
		if f := &p.fields[i]; f.name != "" && !f.omits(v.Field(f.index)) {
			n++
		}
	}
	return n
}

// addTo adds the fields of a struct to its content.
func (p *contentPlan) addTo(content map[string]any, v reflect.Value) {
	for i := range p.fields {
		f := &p.fields[i]
		switch field := v.Field(f.index); {
		case f.omits(field):
		case f.name == "":
			f.addTo(content, field)
		default:
			content[f.name] = f.content(field)
		}
	}
}

// omits reports whether the content lacks a field with that value.
func (f *contentField) omits(v reflect.Value) bool {
	if f.omitZero != nil && f.omitZero(v) {
		return true
	}
	switch {
	case !f.omitEmpty, f.kind == reflect.Struct:
		return false
	case f.kind == reflect.Map, f.kind == reflect.Slice, f.kind == reflect.String:
		return v.Len() == 0
	}
	return v.IsZero()
}
