package native

import (
	"encoding/json"
	"reflect"
	"slices"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/etcdshift/etcdshift/encoding"
)

// Direct decodes stored protobuf of one kind into its Go type, in a tenth of the time of Decode and
// a conversion of its content.
type Direct struct {
	kinds   []schema.GroupVersionKind
	message *message
	spare   sync.Pool // of *[]byte, for reduced messages
}

// NewDirect returns a Direct for the type of obj. In structs listed in used, only the listed fields
// are decoded, by Go name.
func NewDirect(obj any, used map[reflect.Type][]string) *Direct {
	registered, ok := obj.(runtime.Object)
	if !ok {
		return &Direct{} // decodes nothing
	}
	kinds, _, err := scheme.Scheme.ObjectKinds(registered)
	if err != nil {
		return &Direct{}
	}
	p := plans{known: map[reflect.Type]*message{}, direct: true, used: used}
	return &Direct{kinds: kinds, message: p.of(reflect.TypeOf(obj).Elem())}
}

// Decode decodes a value into obj, which must be empty, and reports whether the result equals the
// result of Decode as a Go type. If false, use the function Decode, which may fail.
func (d *Direct) Decode(v encoding.Value, obj any) bool {
	into, ok := obj.(interface{ Unmarshal([]byte) error })
	if !ok || v.Format != encoding.FormatProtobuf || !slices.Contains(d.kinds, v.GVK) {
		return false
	}
	buf, _ := d.spare.Get().(*[]byte)
	if buf == nil {
		buf = new([]byte)
	}
	defer d.spare.Put(buf) // Unmarshal copies
	var sure bool
	*buf, sure = d.message.reduce(v.Raw, (*buf)[:0])
	return sure && into.Unmarshal(*buf) == nil
}

var convertible = sync.OnceValue(func() map[schema.GroupVersionKind]*message { return messagesOf(true) })

// Decodes reports, without decoding, whether DecodeParsed accepts a protobuf value. False means
// unsure.
func Decodes(v encoding.Value) bool {
	m := convertible()[v.GVK]
	return m != nil && v.Format == encoding.FormatProtobuf && m.accept(v.Raw)
}

// reduce appends the used fields of an accepted message to out.
func (m *message) reduce(raw, out []byte) (_ []byte, accepted bool) {
	for len(raw) > 0 {
		f, content, n := m.next(raw)
		switch {
		case n < 0:
			return out, false
		case f.kind == varint:
			if !f.unused {
				out = append(out, raw[:n]...)
			}
		case f.unused || f.kind != nested:
			if !f.accept(content) {
				return out, false
			}
			if !f.unused {
				out = append(out, raw[:n]...)
			}
		default:
			if out, accepted = f.reduce(raw, content, out); !accepted {
				return out, false
			}
		}
		raw = raw[n:]
	}
	return out, true
}

// next returns the first field of raw, its content if it has a length, and the size of the whole
// field, negative if the field must be decoded.
func (m *message) next(raw []byte) (f *wireField, content []byte, size int) {
	tag, n := readVarint(raw)
	if n < 0 || tag>>3 >= uint64(len(m.fields)) {
		return nil, nil, -1
	}
	f = &m.fields[tag>>3]
	length, size := readVarint(raw[n:])
	if size < 0 {
		return nil, nil, -1
	}
	size += n
	if f.kind == varint {
		if tag&7 != uint64(protowire.VarintType) {
			size = -1
		}
		return f, nil, size
	}
	if tag&7 != uint64(protowire.BytesType) || length > uint64(len(raw)-size) {
		return nil, nil, -1
	}
	end := size + int(length)
	return f, raw[size:end], end
}

// readVarint is protowire.ConsumeVarint. Most varints have one byte.
func readVarint(raw []byte) (value uint64, size int) {
	if len(raw) > 0 && raw[0] < 0x80 {
		return uint64(raw[0]), 1
	}
	return protowire.ConsumeVarint(raw)
}

// reduce reduces a nested message: its tag, a length of a fixed size, and its used fields.
func (f *wireField) reduce(raw, content, out []byte) ([]byte, bool) {
	const size = 5 // bytes; more than protobuf needs for a short length, but valid
	_, n := protowire.ConsumeVarint(raw)
	out = append(out, raw[:n]...)
	at := len(out)
	out, ok := f.below.reduce(content, append(out, make([]byte, size)...))
	length := len(out) - at - size
	for i := range size {
		out[at+i] = byte(length>>(7*i)) & 0x7f
		if i < size-1 {
			out[at+i] |= 0x80
		}
	}
	return out, ok
}

// hasContentOfItsOwn reports whether a type defines its JSON content itself.
func hasContentOfItsOwn(t reflect.Type) bool {
	pointer := reflect.PointerTo(t)
	return pointer.Implements(reflect.TypeFor[json.Marshaler]()) ||
		pointer.Implements(reflect.TypeFor[interface{ ToUnstructured() any }]())
}

// directKind returns the kind of a type with its own content.
func directKind(t reflect.Type) wireKind {
	return map[reflect.Type]wireKind{
		reflect.TypeFor[metav1.Time](): instant, reflect.TypeFor[metav1.MicroTime](): instant,
		reflect.TypeFor[intstr.IntOrString](): numberOrText, reflect.TypeFor[metav1.FieldsV1](): fieldSet,
	}[t]
}

// acceptInstant accepts a time from 1970 to 9999, the range of RFC 3339.
func acceptInstant(msg []byte) bool {
	const seconds, nanos, end = 1, 2, 253402300800
	return encoding.EachField(msg, func(f encoding.WireField) bool {
		return f.Type == protowire.VarintType && (f.Number == seconds && f.Varint < end || f.Number == nanos &&
			f.Varint < 1e9)
	})
}

// acceptNumberOrText accepts an IntOrString of one of the two types; a string must have no escapes.
func acceptNumberOrText(msg []byte) bool {
	const kind, number, textual = 1, 2, 3
	return encoding.EachField(msg, func(f encoding.WireField) bool {
		switch {
		case f.Type == protowire.VarintType:
			return f.Number == number || f.Number == kind && f.Varint <= uint64(intstr.String)
		case f.Type == protowire.BytesType:
			return f.Number == textual && isPlain(f.Payload)
		}
		return false
	})
}

// isPlain accepts ASCII that JSON does not escape.
func isPlain(text []byte) bool {
	return !slices.ContainsFunc(text, func(c byte) bool { return c < ' ' || c > '~' || c == '"' || c == '\\' })
}

// acceptFieldSet accepts managed fields that are a JSON object.
func acceptFieldSet(msg []byte) bool {
	const raw = 1<<3 | byte(protowire.BytesType)
	if len(msg) == 0 || msg[0] != raw {
		return false
	}
	text, n := protowire.ConsumeBytes(msg[1:])
	return n == len(msg)-1 && isFieldSet(text)
}

func isFieldSet(text []byte) bool {
	p := encoding.Scanner{Text: text, MaxDepth: 100}
	return len(text) > 0 && text[0] == '{' && p.Value() && p.Next() == 0 && p.At == len(text) && !p.Huge
}
