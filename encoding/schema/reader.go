package schema

import (
	"encoding/json"
	"strconv"
	"strings"
)

// readCanonical decodes a value that the bytes told of.
func readCanonical(value []byte) map[string]any {
	r := reader{text: string(value)}
	obj, _ := r.value().(map[string]any)
	return obj
}

// reader decodes text that canonical has passed, as encoding.DecodeObject does. Strings share the
// memory of the text.
type reader struct {
	text string
	at   int
}

func (r *reader) value() any {
	switch r.text[r.at] {
	case '{':
		out := map[string]any{}
		for r.next('}') {
			name := r.str()
			r.at++ // the colon
			out[name] = r.value()
		}
		return out
	case '[':
		out := []any{}
		for r.next(']') {
			out = append(out, r.value())
		}
		return out
	case '"':
		return r.str()
	case 't':
		r.at += len("true")
		return true
	case 'f':
		r.at += len("false")
		return false
	case 'n':
		r.at += len("null")
		return nil
	}
	return r.number()
}

// next goes past an opening bracket or a comma, and past the end of the object or list.
func (r *reader) next(end byte) bool {
	if first := r.text[r.at]; first == '{' || first == '[' || first == ',' {
		r.at++
	}
	if r.text[r.at] == end {
		r.at++
		return false
	}
	return true
}

func (r *reader) str() string {
	start := r.at
	n := 1 + strings.IndexByte(r.text[start+1:], '"')
	if plain := r.text[start+1 : start+n]; strings.IndexByte(plain, '\\') < 0 {
		r.at = start + n + 1
		return plain
	}
	for r.at++; r.text[r.at] != '"'; r.at++ {
		if r.text[r.at] == '\\' {
			r.at++
		}
	}
	r.at++
	out := ""
	_ = json.Unmarshal([]byte(r.text[start:r.at]), &out) // canonical text decodes
	return out
}

func (r *reader) number() any {
	start := r.at
	for strings.IndexByte("0123456789.eE+-", r.text[r.at]) >= 0 {
		r.at++
	}
	text := r.text[start:r.at]
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	f, _ := strconv.ParseFloat(text, 64)
	return f
}
