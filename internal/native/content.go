package native

import (
	"encoding/base64"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/etcdshift/etcdshift/encoding"
)

// Visitor is shown JSON content in the order of its text: the names of a map are sorted.
type Visitor interface {
	Begin(list bool, n int)      // a map or a list of n values; each value of a map follows its Name
	Name(name string, field int) // field numbers the names of fields of Go types, from 1; 0 for keys of maps
	Text(text string)
	Value(v any) // any other value, also a map or list of a type that defines its content itself
	End()
}

// Content converts a typed object to JSON content, like runtime.DefaultUnstructuredConverter but
// faster.
func Content(obj runtime.Object) (content map[string]any, err error) {
	m := maker{open: make([]making, 0, usual)}
	if err := show(obj, &m); err != nil {
		return nil, err
	}
	return m.made.(map[string]any), nil
}

// Visit shows a visitor the content of a stored protobuf value, without metadata.managedFields and
// with metadata.resourceVersion if it is not "". No maps are made. It returns false, perhaps after
// a part of the content, if DecodeParsed must decide.
func Visit(v encoding.Value, resourceVersion string, to Visitor) bool {
	obj, err := decodeProtobuf(v)
	if err != nil {
		return false
	}
	dropManaged(obj)
	of, err := meta.Accessor(obj)
	if err != nil || of.GetManagedFields() != nil {
		return false
	}
	if resourceVersion != "" {
		of.SetResourceVersion(resourceVersion)
	}
	kind := obj.GetObjectKind()
	kind.SetGroupVersionKind(v.GVK)
	return kind.GroupVersionKind() == v.GVK && show(obj, to) == nil
}

// show shows the content of a typed object to a visitor. Some types panic on bytes that no server
// stores, such as an invalid quantity.
func show(obj runtime.Object, to Visitor) (err error) {
	defer func() {
		if recover() != nil { // an error may quote the value
			err = errFieldType
		}
	}()
	v := reflect.ValueOf(obj).Elem()
	contentPlans().of(v.Type()).visit(v, to)
	return nil
}

// maker makes content in maps and lists.
type maker struct {
	open []making
	made any
}

const usual = 16 // levels of most content

// making is a begun map or list.
type making struct {
	fields map[string]any
	list   []any
	name   string // of the next field
}

// Begin implements Visitor.
func (m *maker) Begin(list bool, n int) {
	if list {
		m.open = append(m.open, making{list: make([]any, 0, n)})
	} else {
		m.open = append(m.open, making{fields: make(map[string]any, n)})
	}
}

// Name implements Visitor.
func (m *maker) Name(name string, _ int) { m.open[len(m.open)-1].name = name }

// Text implements Visitor.
func (m *maker) Text(text string) { m.Value(text) }

// Value implements Visitor.
func (m *maker) Value(v any) {
	if len(m.open) == 0 {
		m.made = v
		return
	}
	if in := &m.open[len(m.open)-1]; in.fields != nil {
		in.fields[in.name] = v
	} else {
		in.list = append(in.list, v)
	}
}

// End implements Visitor.
func (m *maker) End() {
	made := m.open[len(m.open)-1]
	if m.open = m.open[:len(m.open)-1]; made.fields != nil {
		m.Value(made.fields)
	} else {
		m.Value(made.list)
	}
}

// contentPlans has the plans of types converted before.
var contentPlans = sync.OnceValue(func() *planned {
	return &planned{known: map[reflect.Type]*contentPlan{}, names: map[string]int{}}
})

type planned struct {
	mu    sync.Mutex
	known map[reflect.Type]*contentPlan
	names map[string]int // the numbers of the names of fields
}

// number returns the number of a name, the same for fields of all types.
func (p *planned) number(name string) int {
	if p.names[name] == 0 {
		p.names[name] = len(p.names) + 1
	}
	return p.names[name]
}

// contentPlan says how values of a Go type become JSON content.
type contentPlan struct {
	kind   reflect.Kind
	own    *value.TypeReflectCacheEntry // converts a type that defines its JSON content; nil for others
	below  *contentPlan                 // of the elements of a list or a map, or of a pointer
	fields []contentField
}

// most bounds the fields of a struct.
const most = 64

// contentField is a field of a struct, or of a struct embedded in it.
type contentField struct {
	*contentPlan
	path      []int
	name      string
	number    int // of name
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
			plan.fields = append(plan.fields, p.fieldsOf(t.Field(i), i)...)
		}
		slices.SortFunc(plan.fields, func(a, b contentField) int { return strings.Compare(a.name, b.name) })
	}
	return plan
}

// fieldsOf returns a field, or the fields of an embedded struct. Other embedded types have no
// content.
func (p *planned) fieldsOf(of reflect.StructField, index int) (fields []contentField) {
	name, options, _ := strings.Cut(of.Tag.Get("json"), ",")
	plan := p.plan(of.Type)
	switch {
	case name == "-":
		return nil
	case name == "" && of.Anonymous:
		for _, f := range plan.fields {
			f.path = slices.Insert(slices.Clone(f.path), 0, index)
			fields = append(fields, f)
		}
		return fields
	case name == "":
		name = of.Name
	}
	f := contentField{contentPlan: plan, path: []int{index}, name: name, number: p.number(name)}
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "omitempty":
			f.omitEmpty = true
		case "omitzero":
			f.omitZero = value.OmitZeroFunc(of.Type)
		}
	}
	return []contentField{f}
}

// visit shows the content of a value to a visitor.
func (p *contentPlan) visit(v reflect.Value, to Visitor) {
	if p.own != nil {
		content, err := p.own.ToUnstructured(v)
		if err != nil {
			panic(err)
		}
		if text, is := content.(string); is {
			to.Text(text)
			return
		}
		to.Value(content)
		return
	}
	switch p.kind {
	case reflect.String:
		to.Text(v.String())
		return
	case reflect.Bool:
		to.Value(v.Bool())
		return
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		to.Value(v.Int())
		return
	case reflect.Float32, reflect.Float64:
		to.Value(v.Float())
		return
	case reflect.Struct:
		p.visitFields(v, to)
		return
	}
	switch {
	case v.IsNil():
		to.Value(nil)
	case p.kind == reflect.Pointer:
		p.below.visit(v.Elem(), to)
	case p.kind == reflect.Map:
		p.visitMap(v, to)
	case p.below.kind == reflect.Uint8:
		to.Text(base64.StdEncoding.EncodeToString(v.Bytes()))
	default:
		to.Begin(true, v.Len())
		for i := range v.Len() {
			p.below.visit(v.Index(i), to)
		}
		to.End()
	}
}

func (p *contentPlan) visitFields(v reflect.Value, to Visitor) {
	var shown [most]bool
	n := 0
	for i := range p.fields {
		if f := &p.fields[i]; !f.omits(f.of(v)) {
			shown[i] = true
			n++
		}
	}
	to.Begin(false, n)
	for i := range p.fields {
		if f := &p.fields[i]; shown[i] {
			to.Name(f.name, f.number)
			f.visit(f.of(v), to)
		}
	}
	to.End()
}

func (p *contentPlan) visitMap(v reflect.Value, to Visitor) {
	const few = 16
	names := make([]string, 0, few)
	texts, isTexts := v.Interface().(map[string]string) // most often
	if isTexts {
		for name := range texts {
			names = append(names, name)
		}
	} else {
		for _, key := range v.MapKeys() {
			names = append(names, key.String())
		}
	}
	slices.Sort(names)
	to.Begin(false, len(names))
	for _, name := range names {
		if to.Name(name, 0); isTexts {
			to.Text(texts[name])
		} else {
			p.below.visit(v.MapIndex(reflect.ValueOf(name).Convert(v.Type().Key())), to)
		}
	}
	to.End()
}

// of returns the field of a struct.
func (f *contentField) of(v reflect.Value) reflect.Value {
	v = v.Field(f.path[0])
	for _, i := range f.path[1:] {
		v = v.Field(i)
	}
	return v
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
