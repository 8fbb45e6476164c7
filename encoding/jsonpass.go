package encoding

import (
	"encoding/binary"
	"math/bits"
)

// Scanner goes over JSON text once and checks its syntax as encoding/json does, several times as
// fast. Its methods pass one element and report whether its syntax is right; after false the
// position means nothing, and the caller asks encoding/json. They allocate nothing.
type Scanner struct {
	Text      []byte
	At        int  // the position
	Canonical bool // refuse what encoding/json would write otherwise: see canonical.go
	MaxDepth  int  // how deep brackets may nest; 0 is 10,000, as in encoding/json

	depth int
	odd   bool // the last string has an escape, or is not ASCII
	huge  bool // a number may be out of range

	unless     string // of an entry of managedFields that is read; "" to read all
	inMetadata bool
}

// fields appends the fields of an object, or the elements of a list, to out, which is empty. The
// position is at the bracket.
func (p *Scanner) fields(closing byte, out jsonObject) (_ jsonObject, ok bool) {
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

// ends reports whether only space is left.
func (p *Scanner) ends() bool {
	p.Next()
	return p.At == len(p.Text)
}

// Next skips white space and returns the byte behind it, 0 at the end.
func (p *Scanner) Next() byte {
	if p.At < len(p.Text) && (p.Text[p.At] > ' ' || p.Canonical) {
		return p.Text[p.At]
	}
	return p.skipSpace()
}

func (p *Scanner) skipSpace() byte {
	for ; p.At < len(p.Text); p.At++ {
		switch b := p.Text[p.At]; b {
		case ' ', '\t', '\r', '\n':
		default:
			return b
		}
	}
	return 0
}

// eat passes one byte if it is b.
func (p *Scanner) eat(b byte) bool {
	if p.At == len(p.Text) || p.Text[p.At] != b {
		return false
	}
	p.At++
	return true
}

// Value passes a value, which begins at the position.
func (p *Scanner) Value() bool {
	if p.At == len(p.Text) {
		return false
	}
	switch p.Text[p.At] {
	case '"':
		return p.Str()
	case '{':
		return p.bracketed('}')
	case '[':
		return p.bracketed(']')
	case 't':
		return p.Word("true")
	case 'f':
		return p.Word("false")
	case 'n':
		return p.Word("null")
	}
	return p.number()
}

// begins passes the bracket that opens an object or a list, and reports whether it has an element.
func (p *Scanner) begins(closing byte) (more, ok bool) {
	p.At++
	p.depth++
	if p.depth > maxDepth || p.MaxDepth > 0 && p.depth > p.MaxDepth {
		return false, false
	}
	p.Next()
	if !p.eat(closing) {
		return true, true
	}
	p.depth--
	return false, true
}

const maxDepth = 10_000

// goesOn passes what follows an element, and reports whether that is one more.
func (p *Scanner) goesOn(closing byte) (more, ok bool) {
	switch p.Next() {
	case closing:
		p.At++
		p.depth--
		return false, true
	case ',':
		p.At++
		p.Next()
		return true, true
	}
	return false, false
}

// bracketed passes an object or a list.
func (p *Scanner) bracketed(closing byte) bool {
	var before []byte
	more, ok := p.begins(closing)
	for more && ok {
		if closing == '}' {
			var key []byte
			key, ok = p.name()
			ok = ok && p.follows(&before, key)
		}
		if ok = ok && p.Value(); ok {
			more, ok = p.goesOn(closing)
		}
	}
	return ok
}

// name passes the name of a field and what separates it from the value. key has its quotes.
func (p *Scanner) name() (key []byte, ok bool) {
	start := p.At
	if !p.Str() {
		return nil, false
	}
	key = p.Text[start:p.At]
	if p.Next() != ':' {
		return nil, false
	}
	p.At++
	p.Next()
	return key, true
}

// Str passes a string.
func (p *Scanner) Str() bool {
	if p.Next() != '"' {
		return false
	}
	if p.Canonical {
		return p.canonicalString()
	}
	return p.str()
}

// plain passes a string of ASCII without escapes, and sets out to its content.
func (p *Scanner) plain(out *[]byte) bool {
	start := p.At + 1
	if !p.Str() {
		return false
	}
	*out = p.Text[start : p.At-1]
	return !p.odd
}

// decoded passes a string, and returns its content.
func (p *Scanner) decoded() (content string, ok bool) {
	start := p.At
	if !p.Str() {
		return "", false
	}
	content, err := unquote(p.Text[start:p.At])
	return content, err == nil
}

// Members passes an object; visit passes the value of a name. Names are ASCII without escapes; in
// canonical text they are in order, and have their escapes.
func (p *Scanner) Members(visit func(name []byte) bool) bool {
	if p.Next() != '{' {
		return false
	}
	var before []byte
	more, ok := p.begins('}')
	for more && ok {
		key, named := p.name()
		if !named || p.odd || !p.follows(&before, key) {
			return false
		}
		if ok = visit(key[1 : len(key)-1]); ok {
			more, ok = p.goesOn('}')
		}
	}
	return ok
}

// Elements passes a list; visit passes an element.
func (p *Scanner) Elements(visit func() bool) bool {
	if p.Next() != '[' {
		return false
	}
	more, ok := p.begins(']')
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

// Word passes a word.
func (p *Scanner) Word(word string) bool {
	if !hasPrefix(p.Text[p.At:], word) {
		return false
	}
	p.At += len(word)
	return true
}

// str passes a string that need not be canonical.
func (p *Scanner) str() bool {
	p.At++
	p.odd = false
	var all uint64 // bytes of the string, one on top of the other
	for p.At < len(p.Text) {
		if rest := p.Text[p.At:]; len(rest) >= 8 {
			eight := binary.LittleEndian.Uint64(rest)
			n := plainBytes(eight)
			all |= eight << (64 - 8*n) // without those behind them
			if p.At += n; n == 8 {
				continue
			}
		}
		switch b := p.Text[p.At]; {
		case b == '"':
			p.At++
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
			p.At++
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
func (p *Scanner) escape() bool {
	rest := p.Text[p.At+1:]
	if len(rest) == 0 {
		return false
	}
	switch rest[0] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		p.At += 2
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
	p.At += 6
	return true
}

// number passes a number.
func (p *Scanner) number() bool {
	if p.Canonical {
		return p.canonicalNumber()
	}
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
func (p *Scanner) digits() bool {
	start := p.At
	for p.At < len(p.Text) && p.Text[p.At] >= '0' && p.Text[p.At] <= '9' {
		p.At++
	}
	p.huge = p.huge || p.At-start > 300
	return p.At > start
}
