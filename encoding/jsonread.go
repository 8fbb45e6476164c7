package encoding

import (
	"strconv"
)

// decoder decodes JSON text as an API server does, several times as fast.
type decoder struct{ Scanner }

func decoderOf(text []byte) decoder { return decoder{Scanner{Text: text}} }

// decode decodes the text. ok is false for numbers out of range and for text that is not JSON.
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
		if !decoded {
			return nil, false
		}
		if out[name], ok = p.readValue(); ok {
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
