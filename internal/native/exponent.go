package native

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/etcdshift/etcdshift/encoding"
)

// errExponent is returned for a quantity such as 11111111111111111111e999999999. The library
// computes all its digits, as API servers do: that takes hours and gigabytes.
var errExponent = errors.New("a quantity has an exponent of more than four digits")

// mark replaces a number with a large exponent: it parses quickly and is recognizable.
const mark = 242427

// checkExponents returns errExponent for a value with such a quantity, without decoding the value
// into a typed object.
func checkExponents(v encoding.Value) error {
	small, unsure := withoutExponents(v)
	if small == nil && !unsure {
		return nil
	}
	obj, err := newObject(v.GVK)
	if err != nil {
		return nil // not a typed kind
	}
	if message, is := obj.(interface{ Unmarshal([]byte) error }); is && v.Format == encoding.FormatProtobuf {
		err = message.Unmarshal(small)
	} else {
		err = utiljson.Unmarshal(small, obj)
	}
	if unsure || err == nil && hasMark(reflect.ValueOf(obj)) { // a label may look like a number, too
		return fmt.Errorf("%s: %w", name(v.GVK), errExponent)
	}
	return nil
}

// withoutExponents returns the value with marks in place of numbers with large exponents, nil for
// none. unsure is true for a text that occurs only in hostile values.
func withoutExponents(v encoding.Value) (small []byte, unsure bool) {
	raw := v.Raw
	if v.Format != encoding.FormatProtobuf && escapesDigits(raw) {
		return nil, true
	}
	for at := 1; at < len(raw); at++ {
		if raw[at] != 'e' && raw[at] != 'E' || !isNumeric(raw[at-1]) {
			continue
		}
		first := at + 1
		if first < len(raw) && (raw[first] == '+' || raw[first] == '-') {
			first++
		}
		end := first
		for end < len(raw) && raw[end] >= '0' && raw[end] <= '9' {
			end++
		}
		if end-first < 5 {
			continue
		}
		texts := textsAround(v, at, first+5, end)
		if len(texts) > 1 || end-first > 20 || at > 100 && len(bytes.TrimRight(raw[at-100:at], "0123456789.+-")) == 0 {
			return nil, true
		}
		if len(texts) == 0 {
			continue
		}
		if small == nil {
			small = bytes.Clone(raw)
		}
		from, to, pad := texts[0][0], texts[0][1], "0"
		if v.Format != encoding.FormatProtobuf && raw[from-1] != '"' {
			pad = " " // a JSON number does not begin with 0
		}
		copy(small[from:to], strings.Repeat(pad, to-from))
		copy(small[to-6:], fmt.Sprint(mark))
	}
	return small, false
}

// escapesDigits reports whether a JSON text escapes a character of numbers, as no encoder does.
func escapesDigits(raw []byte) bool {
	for at := 0; at+6 <= len(raw); at++ {
		next := bytes.IndexByte(raw[at:], '\\')
		if next < 0 {
			return false
		}
		if at += next + 1; at+5 <= len(raw) && string(raw[at:at+3]) == "u00" {
			switch hex := strings.ToLower(string(raw[at+3 : at+5])); {
			case hex[0] == '3' && hex[1] <= '9', hex == "45", hex == "65", hex == "2b", hex == "2d", hex == "2e":
				return true
			}
		}
	}
	return false
}

// textsAround returns the texts that are a number with its exponent at a position, and end between
// least and most: in JSON at the end of the digits, in protobuf by their lengths.
func textsAround(v encoding.Value, at, least, most int) (texts [][2]int) {
	raw := v.Raw
	for i := at - 1; i > 0 && isNumeric(raw[i]); i-- {
		before := raw[i-1]
		if v.Format != encoding.FormatProtobuf {
			if isNumeric(before) {
				continue
			}
			letter := before >= 'a' && before <= 'z' || before >= 'A' && before <= 'Z'
			if most < len(raw) && !letter && bytes.IndexByte([]byte(`",]}`+" \t\r\n"), raw[most]) >= 0 {
				texts = append(texts, [2]int{i, most})
			}
		} else if end := i + int(before); end >= least && end <= most {
			texts = append(texts, [2]int{i, end})
		}
	}
	return texts
}

func isNumeric(b byte) bool { return b >= '0' && b <= '9' || b == '.' || b == '+' || b == '-' }

// hasMark reports whether a quantity below v equals mark.
func hasMark(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return !v.IsNil() && hasMark(v.Elem())
	case reflect.Struct:
		if q, is := v.Interface().(resource.Quantity); is {
			return q.Value() == mark
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && hasMark(v.Field(i)) {
				return true
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if hasMark(v.Index(i)) {
				return true
			}
		}
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			if hasMark(entries.Value()) {
				return true
			}
		}
	}
	return false
}
