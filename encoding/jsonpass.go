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

// maxLevels is how deep brackets may nest, as in encoding/json.
const maxLevels = 10_000

// fields appends the fields of an object, or the elements of a list, to out, which is empty. The
// position is at the bracket.
func (p *pass) fields(closing byte, out jsonObject) (_ jsonObject, ok bool) {
	for more := p.begins(closing); more; {
		var f jsonField
		if closing == '}' {
			if f.key, ok = p.name(); !ok {
				return nil, false
			}
			if f.name, ok = decodedName(f.key); !ok {
				return nil, false
			}
		}
		start := p.at
		if !p.value(1) {
			return nil, false
		}
		f.value = p.text[start:p.at]
		out = append(out, f)
		if more, ok = p.goesOn(closing); !ok {
			return nil, false
		}
	}
	return out, true
}

// ends reports whether only space is left.
func (p *pass) ends() bool {
	p.next()
	return p.at == len(p.text)
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

// value passes a value, which begins at the position, within so many brackets.
func (p *pass) value(levels int) bool {
	if p.at == len(p.text) {
		return false
	}
	switch p.text[p.at] {
	case '"':
		return p.str()
	case '{':
		return p.bracketed('}', levels+1)
	case '[':
		return p.bracketed(']', levels+1)
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

// bracketed passes an object or a list.
func (p *pass) bracketed(closing byte, levels int) bool {
	more, ok := p.begins(closing), levels <= maxLevels
	for more && ok {
		if closing == '}' {
			_, ok = p.name()
		}
		if ok = ok && p.value(levels); ok {
			more, ok = p.goesOn(closing)
		}
	}
	return ok
}

// name passes the name of a field and what separates it from the value. key has its quotes.
func (p *pass) name() (key []byte, ok bool) {
	start := p.at
	if !p.anyString() {
		return nil, false
	}
	key = p.text[start:p.at]
	if p.next() != ':' {
		return nil, false
	}
	p.at++
	p.next()
	return key, true
}

// anyString passes a string.
func (p *pass) anyString() bool { return p.next() == '"' && p.str() }

// plain passes a string of ASCII without escapes, and sets out to its content.
func (p *pass) plain(out *[]byte) bool {
	start := p.at + 1
	if !p.anyString() {
		return false
	}
	*out = p.text[start : p.at-1]
	return !p.odd
}

// decoded passes a string, and returns its content.
func (p *pass) decoded() (content string, ok bool) {
	start := p.at
	if !p.anyString() {
		return "", false
	}
	content, err := unquote(p.text[start:p.at])
	return content, err == nil
}

// members passes an object; visit passes the value of a name. Names are ASCII without escapes.
func (p *pass) members(visit func(name []byte) bool) bool {
	if p.next() != '{' {
		return false
	}
	more, ok := p.begins('}'), true
	for more && ok {
		key, named := p.name()
		if !named || p.odd {
			return false
		}
		if ok = visit(key[1 : len(key)-1]); ok {
			more, ok = p.goesOn('}')
		}
	}
	return ok
}

// elements passes a list; visit passes an element.
func (p *pass) elements(visit func() bool) bool {
	if p.next() != '[' {
		return false
	}
	more, ok := p.begins(']'), true
	for more && ok {
		if ok = visit(); ok {
			more, ok = p.goesOn(']')
		}
	}
	return ok
}

// decodedName is the name in a key. The common ones cost no memory.
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
