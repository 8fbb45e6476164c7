package encoding

import (
	"bytes"
	"strconv"
)

// decoder decodes JSON text as an API server does, several times as fast.
type decoder struct {
	Scanner
	unless     string // an apiVersion: lists of managedFields without it are left out; "" to read all
	inMetadata bool
}

func decoderOf(text []byte) decoder { return decoder{Scanner: Scanner{Text: text}} }

// decode decodes text like an API server, several times as fast. ok is false for numbers out of
// range and for text that is not JSON.
func (p *decoder) decode() (value any, ok bool) {
	p.Next()
	value, ok = p.readValue()
	return value, ok && p.ends()
}

func (p *decoder) readObject() (map[string]any, bool) {
	out := map[string]any{}
	more, ok := p.begins('}')
	for more && ok {
		key, named := p.name()
		if !named {
			return nil, false
		}
		name, decoded := decodedName(key)
		if p.depth == 1 {
			p.inMetadata = name == "metadata"
		}
		if ok = decoded; ok && p.skipsManagedFields(name) {
			delete(out, name) // the last of two fields counts
		} else if ok {
			out[name], ok = p.readValue()
		}
		if ok {
			more, ok = p.goesOn('}')
		}
	}
	return out, ok
}

func (p *decoder) readList() ([]any, bool) {
	out := []any{}
	more, ok := p.begins(']')
	for more && ok {
		var element any
		if element, ok = p.readValue(); ok {
			out = append(out, element)
			more, ok = p.goesOn(']')
		}
	}
	return out, ok
}

// readValue reads a value that begins at the position.
func (p *decoder) readValue() (any, bool) {
	if p.At == len(p.Text) {
		return nil, false
	}
	switch p.Text[p.At] {
	case '{':
		return p.readObject()
	case '[':
		return p.readList()
	case '"':
		return p.decoded()
	case 't':
		return true, p.Word("true")
	case 'f':
		return false, p.Word("false")
	case 'n':
		return nil, p.Word("null")
	}
	return p.readNumber()
}

// readNumber reads a number: an int64 if possible, else a float64.
func (p *decoder) readNumber() (any, bool) {
	start := p.At
	if !p.number() {
		return nil, false
	}
	text := string(p.Text[start:p.At])
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, true
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil
}

// DecodeWithoutManagedFields is DecodeObject, but may omit metadata.managedFields, often most of
// the text. A list with a possible entry of the apiVersion unless is kept.
func DecodeWithoutManagedFields(data []byte, unless string) (map[string]any, Format, error) {
	if p := (decoder{Scanner: Scanner{Text: data}, unless: unless}); p.Next() == '{' {
		if obj, ok := p.decode(); ok {
			return obj.(map[string]any), FormatJSON, nil
		}
	}
	return DecodeObject(data)
}

// skipsManagedFields skips the value of a field, and reports true, if the value is a managedFields
// list to omit.
func (p *decoder) skipsManagedFields(name string) bool {
	if p.unless == "" || p.depth != 2 || name != "managedFields" || !p.inMetadata || p.At == len(p.Text) ||
		p.Text[p.At] != '[' {
		return false
	}
	list := Scanner{Text: p.Text, At: p.At, depth: p.depth}
	if !list.Value() || list.Huge {
		return false
	}
	entries := p.Text[p.At:list.At]
	for _, odd := range []string{p.unless, `\u`, `\/`} {
		if bytes.Contains(entries, []byte(odd)) {
			return false
		}
	}
	p.At = list.At
	return true
}
