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

// canonicalString consumes a string.
func (p *Scanner) canonicalString() bool {
	p.At++
	for {
		p.At += plainLength(p.Text[p.At:])
		switch b := p.Next(); {
		case b == '"':
			p.At++
			return true
		case b == '\\':
			n := canonicalEscape(p.Text[p.At:])
			if n == 0 {
				return false
			}
			p.At += n
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

// plainLength counts the plain bytes at the start of a text, eight at a time.
func plainLength(text []byte) int {
	zero := func(word uint64) uint64 { return (word - ones) & ^word } // the high bit of the first zero byte
	n := 0
	for ; len(text)-n >= 8; n += 8 {
		word := binary.LittleEndian.Uint64(text[n:])
		odd := word | (word-ones*' ')&^word | zero(word^ones*'"') | zero(word^ones*'\\') |
			zero(word^ones*'<') | zero(word^ones*'>') | zero(word^ones*'&')
		if odd &= highs; odd != 0 {
			return n + bits.TrailingZeros64(odd)/8
		}
	}
	for n < len(text) && plain(text[n]) {
		n++
	}
	return n
}

// canonicalEscape consumes one of the escapes of encoding/json.
func canonicalEscape(text []byte) int {
	text = text[:min(len(text), len(`\u0000`))]
	if len(text) < 2 {
		return 0
	}
	switch text[1] {
	case '"', '\\', 'n', 'r', 't', 'b', 'f':
		return 2
	}
	switch string(text) {
	case `\u003c`, `\u003e`, `\u0026`, `\u2028`, `\u2029`:
		return 6
	case `\u0008`, `\u0009`, `\u000a`, `\u000c`, `\u000d`: // these have a shorter form
		return 0
	}
	control := len(text) == len(`\u0000`) && string(text[:4]) == `\u00` && (text[4] == '0' || text[4] == '1')
	if !control || bytes.IndexByte([]byte("0123456789abcdef"), text[5]) < 0 {
		return 0
	}
	return 6
}

// Integer consumes a whole number that fits an int64 and returns its text.
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

// canonicalNumber consumes a number.
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
