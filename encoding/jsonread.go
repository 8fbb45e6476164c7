package encoding

import (
	"bytes"
	"strconv"
)

// decode decodes text as an API server does, several times as fast. ok is false for text that needs
// a closer look: numbers out of range, or no JSON.
func (p *pass) decode() (value any, ok bool) {
	p.next()
	value, ok = p.readValue(0)
	return value, ok && p.ends()
}

// readObject reads an object within so many brackets, its own among them.
func (p *pass) readObject(levels int) (map[string]any, bool) {
	out := map[string]any{}
	more, ok := p.begins('}'), levels <= maxLevels
	for more && ok {
		key, named := p.name()
		if !named {
			return nil, false
		}
		name, decoded := decodedName(key)
		if levels == 1 {
			p.inMetadata = name == "metadata"
		}
		if ok = decoded; ok && p.skipsManagedFields(name, levels) {
			delete(out, name) // the last of two counts
		} else if ok {
			out[name], ok = p.readValue(levels)
		}
		if ok {
			more, ok = p.goesOn('}')
		}
	}
	return out, ok
}

func (p *pass) readList(levels int) ([]any, bool) {
	out := []any{}
	more, ok := p.begins(']'), levels <= maxLevels
	for more && ok {
		var element any
		if element, ok = p.readValue(levels); ok {
			out = append(out, element)
			more, ok = p.goesOn(']')
		}
	}
	return out, ok
}

// readValue reads a value, which begins at the position, within so many brackets.
func (p *pass) readValue(levels int) (any, bool) {
	if p.at == len(p.text) {
		return nil, false
	}
	switch p.text[p.at] {
	case '{':
		return p.readObject(levels + 1)
	case '[':
		return p.readList(levels + 1)
	case '"':
		return p.decoded()
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
		if obj, ok := p.decode(); ok {
			return obj.(map[string]any), FormatJSON, nil
		}
	}
	return DecodeObject(data)
}

// skipsManagedFields passes the value of a field, if that is the list to be left out.
func (p *pass) skipsManagedFields(name string, levels int) bool {
	if p.unless == "" || levels != 2 || name != "managedFields" || !p.inMetadata || p.at == len(p.text) || p.text[p.at] != '[' {
		return false
	}
	list := pass{text: p.text, at: p.at}
	if !list.value(levels) || list.huge {
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
