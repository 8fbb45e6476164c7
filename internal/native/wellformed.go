package native

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// wellFormed reports, without decoding, whether the kind's type accepts the message. False means
// unsure, as for an unknown kind or field: the message must be decoded.
func wellFormed(gvk schema.GroupVersionKind, raw []byte) bool {
	m := messages()[gvk]
	return m != nil && m.accept(raw)
}

// message is a protobuf message type: its fields by number, from the tags of the Go type.
type message struct {
	fields []wireField
	opaque bool  // its JSON content has other fields
	typed  bool  // its JSON content has apiVersion and kind
	added  []int // fields that some releases always write, and others do not know
}

type wireField struct {
	name    string // in JSON content; "" for fields that JSON content has in place of the message
	known   span   // releases with the field
	list    bool
	pointer bool
	always  bool // encoders write the field, if unset too
	added   bool // see message
	kind    wireKind
	unused  bool     // see Direct
	current bool     // an instant at which the field was written: see NewestTime
	below   *message // of a nested message, or of the values of a map
}

// wireKind is the encoding of a field. The zero value is for fields without a check.
type wireKind int

const (
	unsure wireKind = iota
	varint
	text // or bytes
	nested
	quantity
	textMap   // string to string or bytes
	nestedMap // string to message
	quantityMap
	instant // only for Direct, like the kinds below
	instantPointer
	numberOrText
	fieldSet
)

func (m *message) accept(raw []byte) bool {
	for len(raw) > 0 {
		f, content, n := m.next(raw)
		if n < 0 || f.kind != varint && !f.accept(content) {
			return false
		}
		raw = raw[n:]
	}
	return true
}

// accept reports whether the content of a field with a length decodes.
func (f *wireField) accept(content []byte) bool {
	switch f.kind {
	case text:
		return true
	case nested:
		return f.below.accept(content)
	case quantity:
		return acceptQuantity(content)
	case textMap, nestedMap, quantityMap:
		return f.acceptEntry(content)
	case instant:
		return acceptInstant(content)
	case instantPointer:
		return len(content) > 0 && acceptInstant(content)
	case numberOrText:
		return acceptNumberOrText(content)
	case fieldSet:
		return acceptFieldSet(content)
	}
	return false
}

// acceptEntry accepts an entry of a map.
func (f *wireField) acceptEntry(entry []byte) bool {
	content, ok := valueOf(entry)
	switch {
	case !ok || f.kind == textMap:
		return ok
	case f.kind == quantityMap:
		return acceptQuantity(content)
	}
	return f.below.accept(content)
}

// valueOf returns the value of an entry of a map as every encoder writes it: key, then value.
func valueOf(entry []byte) (content []byte, ok bool) {
	const key, value = 1<<3 | byte(protowire.BytesType), 2<<3 | byte(protowire.BytesType)
	if len(entry) == 0 || entry[0] != key {
		return nil, false
	}
	_, n := protowire.ConsumeBytes(entry[1:])
	if n < 0 || len(entry) < n+2 || entry[n+1] != value {
		return nil, false
	}
	content, used := protowire.ConsumeBytes(entry[n+2:])
	return content, used == len(entry)-n-2
}

// acceptQuantity accepts a quantity of digits and a usual suffix.
func acceptQuantity(msg []byte) bool {
	if len(msg) < 2 || msg[0] != 1<<3|byte(protowire.BytesType) || int(msg[1]) != len(msg)-2 {
		return false
	}
	number := strings.TrimRight(string(msg[2:]), "mkMGTPEi")
	if len(number) == 0 || len(number) > 15 || strings.Trim(number, "0123456789") != "" {
		return false
	}
	switch string(msg[2+len(number):]) {
	case "", "m", "k", "M", "G", "Ki", "Mi", "Gi":
		return true
	}
	return false
}

// messages returns the types of all kinds of client-go's scheme.
var messages = sync.OnceValue(func() map[schema.GroupVersionKind]*message { return messagesOf(false) })

func messagesOf(direct bool) map[schema.GroupVersionKind]*message {
	p := plans{known: map[reflect.Type]*message{}, direct: direct}
	out := map[schema.GroupVersionKind]*message{}
	for gvk, t := range scheme.Scheme.AllKnownTypes() {
		if isMessage(t) {
			out[gvk] = p.of(t)
		}
	}
	return out
}

// isMessage reports whether values of a Go type are messages.
func isMessage(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[interface{ Unmarshal([]byte) error }]())
}

// isList reports whether a field of a Go type is repeated.
func isList(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8 && !isMessage(t)
}

// isAlwaysWritten reports whether encoders write a field of a Go type that was never set.
func isAlwaysWritten(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool, reflect.Int32, reflect.Int64, reflect.String, reflect.Struct:
		return true
	}
	return false
}

// plans builds the messages of Go types.
type plans struct {
	known  map[reflect.Type]*message
	direct bool                      // for Direct
	used   map[reflect.Type][]string // see NewDirect
}

// of returns the message of a Go type.
func (p *plans) of(t reflect.Type) *message {
	if m := p.known[t]; m != nil {
		return m
	}
	m := &message{opaque: t.Kind() != reflect.Struct || hasContentOfItsOwn(t)}
	p.known[t] = m
	switch {
	case t == reflect.TypeFor[metav1.Time]() || t == reflect.TypeFor[metav1.MicroTime]():
		m.fields = []wireField{1: {kind: varint}, 2: {kind: varint}} // Timestamp
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.String: // such as Verbs
		m.fields = []wireField{1: {kind: text}}
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			p.add(m, t, t.Field(i))
		}
		for _, f := range fieldSpans()[typeName(t)] {
			one := m.grow(f.number)
			one.name, one.known, one.added = f.name, f.known, one.always
			if one.added {
				m.added = append(m.added, f.number)
			}
		}
	}
	return m
}

// grow returns the field of a number.
func (m *message) grow(number int) *wireField {
	for len(m.fields) <= number {
		m.fields = append(m.fields, wireField{})
	}
	return &m.fields[number]
}

// add adds the field of a struct, by its tag: bytes,2,opt,name=spec.
func (p *plans) add(m *message, t reflect.Type, f reflect.StructField) {
	m.typed = m.typed || f.Type == reflect.TypeFor[metav1.TypeMeta]()
	parts := strings.Split(f.Tag.Get("protobuf"), ",")
	if len(parts) < 2 {
		return
	}
	number, err := strconv.Atoi(parts[1])
	if err != nil || number < 1 || number > 1000 {
		return
	}
	field := m.grow(number)
	if !slices.Contains(parts, "packed") {
		*field = p.field(f.Type)
	}
	if used, listed := p.used[t]; listed {
		field.unused = !slices.Contains(used, f.Name)
	}
	field.name, _, _ = strings.Cut(f.Tag.Get("json"), ",")
	field.known, field.pointer = span{last: LinkedRelease}, f.Type.Kind() == reflect.Pointer
	field.always = isAlwaysWritten(f.Type)
	field.current = isCurrent(field.name) && (field.kind == instant || field.kind == instantPointer)
}

// field returns the encoding of values of a Go type, at most one level of list or pointer down. The
// encoding in the tag is wrong in places (core/v1 SecretVolumeSource.DefaultMode).
func (p *plans) field(t reflect.Type) wireField {
	if t.Kind() == reflect.Pointer {
		f := p.field(t.Elem())
		if f.kind == instant {
			f.kind = instantPointer
		}
		return f
	}
	if isList(t) {
		f := p.single(t.Elem())
		f.list = true
		return f
	}
	if t.Kind() == reflect.Map && t.Key().Kind() == reflect.String {
		f := p.single(t.Elem())
		f.kind = map[wireKind]wireKind{quantity: quantityMap, nested: nestedMap, text: textMap}[f.kind]
		return f
	}
	return p.single(t)
}

// single returns the encoding of a type other than a list, pointer or map.
func (p *plans) single(t reflect.Type) wireField {
	isBytes := t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
	switch {
	case t == reflect.TypeFor[resource.Quantity]():
		return wireField{kind: quantity}
	case p.direct && hasContentOfItsOwn(t):
		return wireField{kind: directKind(t)}
	case isMessage(t):
		return wireField{kind: nested, below: p.of(t)}
	case slices.Contains([]reflect.Kind{reflect.Bool, reflect.Int32, reflect.Int64}, t.Kind()):
		return wireField{kind: varint}
	case t.Kind() == reflect.String || isBytes:
		return wireField{kind: text}
	}
	return wireField{}
}
