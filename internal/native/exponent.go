package native

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/etcdshift/etcdshift/encoding"
)

// errExponent is returned for a quantity such as 11111111111111111111e999999999. The library
// computes all its digits, as API servers do: that takes hours and gigabytes.
var errExponent = errors.New("a quantity has an exponent of more than four digits")

// checkExponents returns errExponent for a value with such a quantity. Other texts may look like
// one, such as a label or a uid.
func checkExponents(v encoding.Value) error {
	raw, escapes := v.Raw, v.Format == encoding.FormatJSON && bytes.Contains(v.Raw, []byte(`\u00`)) // of a digit
	if v.Format != encoding.FormatCBOR && !escapes && !hasExponent(raw) {
		return nil
	}
	hostile := false
	if v.Format == encoding.FormatProtobuf {
		m := messages()[v.GVK]
		hostile = m != nil && m.hasExponent(raw)
	} else if obj, err := newObject(v.GVK); err == nil {
		if v.Format == encoding.FormatCBOR {
			content, _, _ := encoding.DecodeObject(raw)
			raw, _ = encoding.EncodeObject(content, encoding.FormatJSON)
		}
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		hostile = json.Valid(raw) && jsonHasExponent(d, reflect.TypeOf(obj))
	}
	if hostile {
		return fmt.Errorf("%s: %w", Name(v.GVK), errExponent)
	}
	return nil
}

// hasExponent reports whether a text has a number with an exponent of more than four digits. It
// looks at every fifth byte, which a run of five digits cannot avoid.
func hasExponent[T string | []byte](text T) bool {
	const least = 5
	isDigit := func(at int) bool { return at >= 0 && at < len(text) && text[at] >= '0' && text[at] <= '9' }
	for at := least - 1; at < len(text); at += least {
		if text[at] < '0' || text[at] > '9' { // most often
			continue
		}
		before := at - 1
		for isDigit(before) {
			before--
		}
		begin := before + 1
		for isDigit(at) {
			at++
		}
		if at-begin < least {
			continue
		}
		if before >= 0 && (text[before] == '+' || text[before] == '-') {
			before--
		}
		if before > 0 && text[before]|0x20 == 'e' && (isDigit(before-1) || text[before-1] == '.') {
			return true
		}
	}
	return false
}

// hasExponent reports whether a quantity in a message has such an exponent. Unknown fields are
// skipped. Bytes that the decoder may divide into fields differently are searched as a whole.
func (m *message) hasExponent(raw []byte) bool {
	for len(raw) > 0 {
		f, content, n := m.next(raw)
		if n < 0 {
			if _, _, n = protowire.ConsumeField(raw); n < 0 {
				return hasExponent(raw)
			}
			f = &wireField{}
		}
		kind := f.kind
		if kind == nestedMap || kind == quantityMap {
			kind = map[wireKind]wireKind{nestedMap: nested, quantityMap: quantity}[kind]
			var isEntry bool
			if content, isEntry = valueOf(content); !isEntry {
				return hasExponent(raw)
			}
		}
		if kind == nested && f.below.hasExponent(content) || kind == quantity && hasExponent(content) {
			return true
		}
		raw = raw[n:]
	}
	return false
}

// jsonHasExponent reports whether a quantity in the next JSON value, of type t, has such an
// exponent. The text must be valid.
func jsonHasExponent(d *json.Decoder, t reflect.Type) (hostile bool) {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil { // an unknown field
		var skipped json.RawMessage
		return d.Decode(&skipped) != nil
	}
	token, _ := d.Token()
	switch token := token.(type) {
	case string:
		return t == reflect.TypeFor[resource.Quantity]() && hasExponent(token)
	case json.Number:
		return t == reflect.TypeFor[resource.Quantity]() && hasExponent(string(token))
	case json.Delim:
		for d.More() {
			field := ""
			if token == '{' {
				name, _ := d.Token()
				field, _ = name.(string)
			}
			hostile = jsonHasExponent(d, typeOf(t, field)) || hostile
		}
		_, _ = d.Token()
	}
	return hostile
}

// typeOf returns the type of a field of a struct, or of the elements of a map or list; nil for
// none.
func typeOf(t reflect.Type, field string) reflect.Type {
	switch t.Kind() {
	case reflect.Map, reflect.Slice:
		return t.Elem()
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name == field && field != "" {
				return f.Type
			}
		}
	}
	return nil
}
