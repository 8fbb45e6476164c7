package encoding

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/bits"
	"strconv"
	"unicode/utf8"
)

// Canonical text is the output of encoding/json: compact, with sorted and unique names; strings and
// numbers have one form.

// follows reports whether a name may follow the previous name, and keeps the name.
func (p *Scanner) follows(before *[]byte, key []byte) bool {
	if !p.Canonical {
		return true
	}
	name := key[1 : len(key)-1]
	ok := *before == nil || inOrder(*before, name)
	*before = name
	return ok
}

// inOrder reports whether the name a sorts before b, both with their escapes. The result is false
// for names that differ first in an escape of four digits.
func inOrder(a, b []byte) bool {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		if a[i] == '\\' && i+1 < len(a) && i+1 < len(b) {
			if a[i+1] != b[i+1] {
				break
			}
			i++
		}
		i++
	}
	first, second := firstByte(a[i:]), firstByte(b[i:])
	return first < second && second != unordered
}

// unordered is the first byte of an escape that inOrder does not decode.
const unordered = 256

// firstByte returns the first decoded byte of escaped text, or -1 for empty text.
func firstByte(text []byte) int {
	switch {
	case len(text) == 0:
		return -1
	case text[0] != '\\':
		return int(text[0])
	}
	if i := bytes.IndexByte([]byte(`"\nrtbf`), text[1]); i >= 0 {
		return int("\"\\\n\r\t\b\f"[i])
	}
	return unordered
}

// canonicalString passes a string.
func (p *Scanner) canonicalString() bool {
	p.At++
	for {
		p.skipPlain()
		switch b := p.Next(); {
		case b == '"':
			p.At++
			return true
		case b == '\\':
			if !p.canonicalEscape() {
				return false
			}
		case b < utf8.RuneSelf:
			return false
		default:
			r, n := utf8.DecodeRune(p.Text[p.At:])
			if r == utf8.RuneError && n == 1 || r == '\u2028' || r == '\u2029' {
				return false
			}
			p.At += n
		}
	}
}

// skipPlain moves to the next byte that is not plain, eight bytes at a time.
func (p *Scanner) skipPlain() {
	zero := func(word uint64) uint64 { return (word - ones) & ^word } // the high bit of the first zero byte
	for len(p.Text)-p.At >= 8 {
		word := binary.LittleEndian.Uint64(p.Text[p.At:])
		odd := word | (word-ones*' ')&^word | zero(word^ones*'"') | zero(word^ones*'\\') |
			zero(word^ones*'<') | zero(word^ones*'>') | zero(word^ones*'&')
		if odd &= highs; odd != 0 {
			p.At += bits.TrailingZeros64(odd) / 8
			return
		}
		p.At += 8
	}
	for p.At < len(p.Text) && plain(p.Text[p.At]) {
		p.At++
	}
}

// canonicalEscape passes one of the escapes of encoding/json.
func (p *Scanner) canonicalEscape() bool {
	text := p.Text[p.At:min(len(p.Text), p.At+len(`\u0000`))]
	if len(text) < 2 {
		return false
	}
	switch text[1] {
	case '"', '\\', 'n', 'r', 't', 'b', 'f':
		p.At += 2
		return true
	case 'u':
	default:
		return false
	}
	p.At += len(text)
	switch string(text) {
	case `\u003c`, `\u003e`, `\u0026`, `\u2028`, `\u2029`:
		return true
	case `\u0008`, `\u0009`, `\u000a`, `\u000c`, `\u000d`: // these have a shorter form
		return false
	}
	control := len(text) == len(`\u0000`) && string(text[:4]) == `\u00` && (text[4] == '0' || text[4] == '1')
	return control && bytes.IndexByte([]byte("0123456789abcdef"), text[5]) >= 0
}

// Integer passes a whole number that fits an int64 and returns its text.
func (p *Scanner) Integer() ([]byte, bool) {
	start := p.At
	negative := p.eat('-')
	first := p.At
	for b := p.Next(); b >= '0' && b <= '9'; b = p.Next() {
		p.At++
	}
	digits := p.Text[first:p.At]
	const most = "9223372036854775807" // -9223372036854775808 also fits, but is rejected
	ok := len(digits) > 0 && (digits[0] != '0' || len(digits) == 1 && !negative)
	return p.Text[start:p.At], ok && (len(digits) < len(most) || len(digits) == len(most) && string(digits) <= most)
}

// canonicalNumber passes a number.
func (p *Scanner) canonicalNumber() bool {
	start := p.At
	_, whole := p.Integer()
	if b := p.Next(); b != '.' && b != 'e' && b != 'E' {
		return whole
	}
	for bytes.IndexByte([]byte("0123456789.eE+-"), p.Next()) >= 0 {
		p.At++
	}
	text := p.Text[start:p.At]
	n, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return false
	}
	again, err := json.Marshal(n)
	return err == nil && bytes.Equal(text, again)
}

// plain reports whether a byte is written as itself in a string: ASCII without an escape.
func plain(b byte) bool {
	return b >= ' ' && b < utf8.RuneSelf && b != '"' && b != '\\' && b != '<' && b != '>' && b != '&'
}
