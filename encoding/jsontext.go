package encoding

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// jsonObject is a JSON object or list parsed one level deep: decoded names, values as text. An edit
// changes one field and keeps the order and the text of all other fields. A jsonObject is always
// made from checked text.
type jsonObject []jsonField

type jsonField struct {
	name       string // name and key of a list element are empty
	key, value []byte // text, the key with its quotes; both alias the input
}

// checkJSON returns an error with the offset of a syntax error, without recursion. The limit is
// 10,000 levels.
func checkJSON(data []byte) error {
	if json.Valid(data) {
		return nil
	}
	var text json.RawMessage
	err := json.Unmarshal(data, &text)
	var syntax *json.SyntaxError
	// err quotes a character, perhaps of a Secret
	if errors.As(err, &syntax) && strings.HasPrefix(err.Error(), "invalid character") {
		return fmt.Errorf("not JSON at byte %d", syntax.Offset)
	}
	return err
}

// parseJSONObject parses an object; null gives an empty one.
func parseJSONObject(text []byte) (jsonObject, error) {
	return parseJSON(text, '{', make(jsonObject, 0, 8))
}

// parseJSONList parses a list; null gives an empty one.
func parseJSONList(text []byte) (jsonObject, error) {
	return parseJSON(text, '[', make(jsonObject, 0, 8))
}

// parseJSON parses text that begins with a bracket, and appends its fields to the empty out.
func parseJSON(text []byte, opening byte, out jsonObject) (jsonObject, error) {
	if string(text) == "null" {
		return nil, nil
	}
	p, wrong := Scanner{Text: text}, errNotList
	if opening == '{' {
		wrong = errNotObject
	}
	if p.Next() == opening {
		if fields, ok := passFields(&p, opening+2, out); ok && p.ends() { // in ASCII ] and } follow so
			return fields, nil
		}
	}
	if err := checkJSON(text); err != nil {
		return nil, err
	}
	return nil, wrong
}

// passFields appends the fields of an object, or the elements of a list, to out, which is empty.
// The position is at the bracket.
func passFields(p *Scanner, closing byte, out jsonObject) (_ jsonObject, ok bool) {
	more, ok := p.begins(closing)
	for more && ok {
		var f jsonField
		if closing == '}' {
			if f.key, ok = p.name(); !ok {
				return nil, false
			}
			if f.name, ok = decodedName(f.key); !ok {
				return nil, false
			}
		}
		start := p.At
		if !p.Value() {
			return nil, false
		}
		f.value = p.Text[start:p.At]
		out = append(out, f)
		more, ok = p.goesOn(closing)
	}
	return out, ok
}

// decodedName returns the name in a key. Common names need no allocation.
func decodedName(key []byte) (name string, ok bool) {
	switch string(key) {
	case `"apiVersion"`:
		return "apiVersion", true
	case `"kind"`:
		return "kind", true
	case `"metadata"`:
		return "metadata", true
	case `"spec"`:
		return "spec", true
	case `"status"`:
		return "status", true
	}
	name, err := unquote(key)
	return name, err == nil
}

func (o jsonObject) last(name string) int {
	for i := len(o) - 1; i >= 0; i-- {
		if o[i].name == name {
			return i
		}
	}
	return -1
}

// get returns the text of the last field with the name, like a decoder. A missing field is null.
func (o jsonObject) get(name string) []byte {
	if i := o.last(name); i >= 0 {
		return o[i].value
	}
	return []byte("null")
}

func byName(a, b jsonField) int { return strings.Compare(a.name, b.name) }

// set replaces the text of a field in place, or adds the field: by name if the names are sorted (as
// in custom resources), otherwise at the end.
func (o jsonObject) set(name string, value []byte) jsonObject {
	if i := o.last(name); i >= 0 {
		o[i].value = value
		return o
	}
	field := jsonField{name: name, key: quote(name), value: value}
	if !slices.IsSortedFunc(o, byName) {
		return append(o, field)
	}
	i, _ := slices.BinarySearchFunc(o, field, byName)
	return slices.Insert(o, i, field)
}

// without returns o without a field.
func (o jsonObject) without(name string) jsonObject {
	return slices.DeleteFunc(slices.Clone(o), func(f jsonField) bool { return f.name == name })
}

func (o jsonObject) text() []byte { return o.join('{', '}') }

func (o jsonObject) listText() []byte { return o.join('[', ']') }

func (o jsonObject) join(opening, closing byte) []byte {
	size := len("{}")
	for _, f := range o {
		size += f.size() + len(",")
	}
	out := append(make([]byte, 0, size), opening)
	for i, f := range o {
		if i > 0 {
			out = append(out, ',')
		}
		if opening == '{' {
			out = append(append(out, f.key...), ':')
		}
		out = append(out, f.value...)
	}
	return append(out, closing)
}

// object parses the field name.
func (o jsonObject) object(name string) (jsonObject, error) {
	inner, err := parseJSONObject(o.get(name))
	return inner, at(name, err)
}

// str returns the string in the field name; missing and null are empty.
func (o jsonObject) str(name string) (string, error) {
	text := o.get(name)
	if string(text) == "null" {
		return "", nil
	}
	if text[0] != '"' {
		return "", at(name, errNotString)
	}
	return unquote(text)
}

func (o jsonObject) typeMeta() (apiVersion, kind string, err error) {
	if apiVersion, err = o.str("apiVersion"); err != nil {
		return "", "", err
	}
	kind, err = o.str("kind")
	return apiVersion, kind, err
}

// quote encodes a string like an API server, with escaped HTML characters.
func quote(s string) []byte {
	text, _ := json.Marshal(s) // every Go string has a JSON form
	return text
}

func unquote(text []byte) (string, error) {
	if bytes.IndexByte(text, '\\') < 0 && utf8.Valid(text) {
		return string(text[1 : len(text)-1]), nil
	}
	var s string
	err := json.Unmarshal(text, &s)
	return s, err
}
