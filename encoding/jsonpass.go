package encoding

import (
	"encoding/binary"
	"math/bits"
)

// pass goes over JSON text once and checks its syntax as encoding/json does, several times as fast.
// Its methods pass one element and report whether its syntax is right; after false the position
// means nothing, and the caller asks encoding/json.
type pass struct {
	text []byte
	at   int
	odd  bool // the last string has an escape, or is not ASCII
	huge bool // a number may be out of range

	unless     string // of an entry of managedFields that is read; "" to read all
	inMetadata bool
}

// passDepth is the depth down to which pass looks.
const passDepth = 100

// passObject appends the fields of an object to out, which is empty. ok is false for text that is
// no JSON object, or that needs a closer look: deep nesting, names with escapes.
func passObject(text []byte, out jsonObject) (fields jsonObject, ok bool) {
	p := pass{text: text}
	if p.next() != '{' {
		return nil, false
	}
	for more := p.begins('}'); more; {
		key := p.at
		colon, start, ok := p.field(1)
		if !ok {
			return nil, false
		}
		name, ok := fieldName(text[key:colon])
		if !ok {
			return nil, false
		}
		out = append(out, jsonField{name: name, key: text[key:colon], value: text[start:p.at]})
		if more, ok = p.goesOn('}'); !ok {
			return nil, false
		}
	}
	p.next()
	return out, p.at == len(text)
}

// next skips white space and returns the byte behind it, 0 at the end.
func (p *pass) next() byte {
	for ; p.at < len(p.text); p.at++ {
		switch b := p.text[p.at]; b {
		case ' ', '\t', '\r', '\n':
		default:
			return b
		}
	}
	return 0
}

// eat passes one byte if it is b.
func (p *pass) eat(b byte) bool {
	if p.at == len(p.text) || p.text[p.at] != b {
		return false
	}
	p.at++
	return true
}

// value passes a value, which begins at the position.
func (p *pass) value(depth int) bool {
	if p.at == len(p.text) || depth > passDepth {
		return false
	}
	switch p.text[p.at] {
	case '"':
		return p.str()
	case '{':
		return p.object(depth + 1)
	case '[':
		return p.list(depth + 1)
	case 't':
		return p.word("true")
	case 'f':
		return p.word("false")
	case 'n':
		return p.word("null")
	}
	return p.number()
}

// begins passes the bracket that opens an object or a list, and reports whether it has an element.
func (p *pass) begins(closing byte) bool {
	p.at++
	p.next()
	return !p.eat(closing)
}

// goesOn passes what follows an element, and reports whether that is one more.
func (p *pass) goesOn(closing byte) (more, ok bool) {
	switch p.next() {
	case closing:
		p.at++
		return false, true
	case ',':
		p.at++
		p.next()
		return true, true
	}
	return false, false
}

// object passes an object.
func (p *pass) object(depth int) bool {
	more, ok := p.begins('}'), true
	for more && ok {
		if _, _, ok = p.field(depth); ok {
			more, ok = p.goesOn('}')
		}
	}
	return ok
}

// field passes a field, and returns where its name ends and its value starts.
func (p *pass) field(depth int) (nameEnd, start int, ok bool) {
	if p.at == len(p.text) || p.text[p.at] != '"' || !p.str() {
		return 0, 0, false
	}
	nameEnd = p.at
	if p.next() != ':' {
		return 0, 0, false
	}
	p.at++
	p.next()
	start = p.at
	return nameEnd, start, p.value(depth)
}

// list passes a list.
func (p *pass) list(depth int) bool {
	more, ok := p.begins(']'), true
	for more && ok {
		if ok = p.value(depth); ok {
			more, ok = p.goesOn(']')
		}
	}
	return ok
}

// fieldName is the name in a key; ok is false for one with escapes or other than ASCII. The common
// ones cost no memory.
func fieldName(key []byte) (name string, ok bool) {
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
	for _, b := range key {
		if b == '\\' || b >= 0x80 {
			return "", false
		}
	}
	return string(key[1 : len(key)-1]), true
}

func (p *pass) word(word string) bool {
	if !hasPrefix(p.text[p.at:], word) {
		return false
	}
	p.at += len(word)
	return true
}

// str passes a string.
func (p *pass) str() bool {
	p.at++
	p.odd = false
	var all uint64 // bytes of the string, one on top of the other
	for p.at < len(p.text) {
		if rest := p.text[p.at:]; len(rest) >= 8 {
			eight := binary.LittleEndian.Uint64(rest)
			n := plainBytes(eight)
			all |= eight << (64 - 8*n) // without those behind them
			if p.at += n; n == 8 {
				continue
			}
		}
		switch b := p.text[p.at]; {
		case b == '"':
			p.at++
			p.odd = p.odd || all&highs != 0
			return true
		case b == '\\':
			if p.odd = true; !p.escape() {
				return false
			}
		case b < ' ':
			return false
		default:
			all |= uint64(b)
			p.at++
		}
	}
	return false
}

const ones, highs = 0x0101010101010101, 0x8080808080808080

// plainBytes counts the bytes in front of the first quote, backslash or control character of eight.
func plainBytes(eight uint64) int {
	quote, backslash := eight^'"'*ones, eight^'\\'*ones
	found := (eight-' '*ones)&^eight | (quote-ones)&^quote | (backslash-ones)&^backslash
	return bits.TrailingZeros64(found&highs) / 8
}

// escape passes a backslash and what belongs to it.
func (p *pass) escape() bool {
	rest := p.text[p.at+1:]
	if len(rest) == 0 {
		return false
	}
	switch rest[0] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		p.at += 2
		return true
	}
	if rest[0] != 'u' || len(rest) < 5 {
		return false
	}
	for _, b := range rest[1:5] {
		if (b < '0' || b > '9') && (b < 'a' || b > 'f') && (b < 'A' || b > 'F') {
			return false
		}
	}
	p.at += 6
	return true
}

// number passes a number.
func (p *pass) number() bool {
	p.eat('-')
	if !p.eat('0') && !p.digits() {
		return false
	}
	if p.eat('.') && !p.digits() {
		return false
	}
	if p.eat('e') || p.eat('E') {
		p.huge = true
		if !p.eat('+') {
			p.eat('-')
		}
		return p.digits()
	}
	return true
}

// digits passes digits, one at least.
func (p *pass) digits() bool {
	start := p.at
	for p.at < len(p.text) && p.text[p.at] >= '0' && p.text[p.at] <= '9' {
		p.at++
	}
	p.huge = p.huge || p.at-start > 300
	return p.at > start
}
