package encoding

import (
	"bytes"
	"strconv"
)

// readObject decodes an object as an API server does, several times as fast. ok is false for text
// that is no JSON object, or that needs a closer look: deep nesting, numbers out of range.
func readObject(text []byte) (obj map[string]any, ok bool) {
	p := pass{text: text}
	if p.next() != '{' {
		return nil, false
	}
	obj, ok = p.readObject(1)
	p.next()
	return obj, ok && p.at == len(text)
}

func (p *pass) readObject(depth int) (map[string]any, bool) {
	out := map[string]any{}
	more, ok := p.begins('}'), true
	for more && ok {
		name, named := p.readName()
		if !named || p.next() != ':' {
			return nil, false
		}
		p.at++
		p.next()
		if depth == 1 {
			p.inMetadata = name == "metadata"
		}
		if p.skipsManagedFields(name, depth) {
			delete(out, name) // the last of two counts
		} else {
			out[name], ok = p.readValue(depth)
		}
		if ok {
			more, ok = p.goesOn('}')
		}
	}
	return out, ok
}

// readName reads the name of a field.
func (p *pass) readName() (string, bool) {
	start := p.at
	if p.next() != '"' || !p.str() {
		return "", false
	}
	key := p.text[start:p.at]
	if name, ok := fieldName(key); ok {
		return name, true
	}
	name, err := unquote(key)
	return name, err == nil
}

func (p *pass) readList(depth int) ([]any, bool) {
	out := []any{}
	more, ok := p.begins(']'), true
	for more && ok {
		var element any
		if element, ok = p.readValue(depth); ok {
			out = append(out, element)
			more, ok = p.goesOn(']')
		}
	}
	return out, ok
}

// readValue reads a value, which begins at the position.
func (p *pass) readValue(depth int) (any, bool) {
	if p.at == len(p.text) || depth > passDepth {
		return nil, false
	}
	start := p.at
	switch p.text[start] {
	case '{':
		return p.readObject(depth + 1)
	case '[':
		return p.readList(depth + 1)
	case '"':
		if !p.str() {
			return nil, false
		}
		text, err := unquote(p.text[start:p.at])
		return text, err == nil
	case 't':
		return true, p.word("true")
	case 'f':
		return false, p.word("false")
	case 'n':
		return nil, p.word("null")
	}
	return p.readNumber()
}

// readNumber reads a number: an int64 where it is one, else a float64.
func (p *pass) readNumber() (any, bool) {
	start := p.at
	if !p.number() {
		return nil, false
	}
	text := string(p.text[start:p.at])
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, true
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil
}

// DecodeWithoutManagedFields is DecodeObject, but may leave out metadata.managedFields, often most
// of the text. It leaves in a list of which an entry may be of that apiVersion.
func DecodeWithoutManagedFields(data []byte, unless string) (map[string]any, Format, error) {
	if p := (pass{text: data, unless: unless}); p.next() == '{' {
		obj, ok := p.readObject(1)
		if p.next(); ok && p.at == len(data) {
			return obj, FormatJSON, nil
		}
	}
	return DecodeObject(data)
}

// skipsManagedFields passes the value of a field, if that is the list to be left out.
func (p *pass) skipsManagedFields(name string, depth int) bool {
	if p.unless == "" || depth != 2 || name != "managedFields" || !p.inMetadata || p.at == len(p.text) || p.text[p.at] != '[' {
		return false
	}
	list := pass{text: p.text, at: p.at}
	if !list.value(depth) || list.huge {
		return false
	}
	entries := p.text[p.at:list.at]
	for _, odd := range []string{p.unless, `\u`, `\/`} {
		if bytes.Contains(entries, []byte(odd)) {
			return false
		}
	}
	p.at = list.at
	return true
}
