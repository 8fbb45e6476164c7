package encoding

import (
	"encoding/binary"
	"math/bits"
)

// Scanner scans JSON text once and checks the syntax like encoding/json, several times as fast.
// Each method consumes one element and reports whether the syntax is right. After false the
// position is undefined, and the caller must use encoding/json. Methods allocate no memory.
type Scanner struct {
	Text      []byte
	At        int  // the position
	Canonical bool // reject text that encoding/json would write differently: see canonical.go
	MaxDepth  int  // maximum nesting of brackets; 0 means 10,000, as in encoding/json
	Huge      bool // a number may be out of range

	depth int
	odd   bool // the last string has an escape, or is not ASCII
}

// ends reports whether only white space is left.
func (p *Scanner) ends() bool {
	p.Next()
	return p.At == len(p.Text)
}

// Next skips white space and returns the next byte, or 0 at the end.
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

// eat consumes the next byte if the byte is b.
func (p *Scanner) eat(b byte) bool {
	if p.At == len(p.Text) || p.Text[p.At] != b {
		return false
	}
	p.At++
	return true
}

// Value consumes a value that begins at the position.
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

// begins consumes the opening bracket of an object or a list. more reports whether an element
// follows.
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

// goesOn consumes the separator after an element. more reports whether another element follows.
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

// bracketed consumes an object or a list.
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

// name consumes the name of a field and the separator before the value. key includes its quotes.
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

// Str consumes a string.
func (p *Scanner) Str() bool {
	if p.Next() != '"' {
		return false
	}
	if p.Canonical {
		return p.canonicalString()
	}
	return p.str()
}

// plain consumes an ASCII string without escapes, and sets out to its content.
func (p *Scanner) plain(out *[]byte) bool {
	start := p.At + 1
	if !p.Str() {
		return false
	}
	*out = p.Text[start : p.At-1]
	return !p.odd
}

// decoded consumes a string and returns its content.
func (p *Scanner) decoded() (content string, ok bool) {
	start := p.At
	if !p.Str() {
		return "", false
	}
	content, err := unquote(p.Text[start:p.At])
	return content, err == nil
}

// Members consumes an object; visit consumes the value of a name. Names are ASCII without escapes;
// in canonical text names are sorted, and may have escapes.
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

// Elements consumes a list; visit consumes one element.
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

// Word consumes the given word.
func (p *Scanner) Word(word string) bool {
	if !hasPrefix(p.Text[p.At:], word) {
		return false
	}
	p.At += len(word)
	return true
}

// str consumes a string that need not be canonical.
func (p *Scanner) str() bool {
	p.At++
	p.odd = false
	var all uint64 // all bytes of the string combined with or
	for p.At < len(p.Text) {
		if rest := p.Text[p.At:]; len(rest) >= 8 {
			eight := binary.LittleEndian.Uint64(rest)
			n := plainBytes(eight)
			all |= eight << (64 - 8*n) // without the bytes after the first n
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
			n := escapeLength(p.Text[p.At:])
			if p.odd = true; n == 0 {
				return false
			}
			p.At += n
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

// plainBytes counts the bytes before the first quote, backslash or control character in eight
// bytes.
func plainBytes(eight uint64) int {
	quote, backslash := eight^'"'*ones, eight^'\\'*ones
	found := (eight-' '*ones)&^eight | (quote-ones)&^quote | (backslash-ones)&^backslash
	return bits.TrailingZeros64(found&highs) / 8
}

// escapeLength is the length of the escape at the start of a text, 0 for none that JSON knows.
func escapeLength(text []byte) int {
	if len(text) < 2 {
		return 0
	}
	switch text[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	}
	if text[1] != 'u' || len(text) < 6 {
		return 0
	}
	for _, b := range text[2:6] {
		if (b < '0' || b > '9') && (b < 'a' || b > 'f') && (b < 'A' || b > 'F') {
			return 0
		}
	}
	return 6
}

// number consumes a number.
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
		p.Huge = true
		if !p.eat('+') {
			p.eat('-')
		}
		return p.digits()
	}
	return true
}

// digits consumes at least one digit.
func (p *Scanner) digits() bool {
	start := p.At
	for p.At < len(p.Text) && p.Text[p.At] >= '0' && p.Text[p.At] <= '9' {
		p.At++
	}
	p.Huge = p.Huge || p.At-start > 300
	return p.At > start
}
