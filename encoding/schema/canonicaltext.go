package schema

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math/bits"
	"strconv"
	"strings"
	"unicode/utf8"
)

// canonical passes over JSON text as long as encoding/json would write it so: compact, names in
// order and each once, strings and numbers in their only form. Its methods pass one value and
// report whether it is canonical; after false the position means nothing. They allocate nothing.
type canonical struct {
	text  []byte
	at    int
	depth int
}

// peek is the next byte, 0 at the end.
func (c *canonical) peek() byte {
	if c.at < len(c.text) {
		return c.text[c.at]
	}
	return 0
}

// peekPast is the byte after the next one, 0 at the end.
func (c *canonical) peekPast() byte {
	if c.at+1 < len(c.text) {
		return c.text[c.at+1]
	}
	return 0
}

// eat passes one byte if it is b.
func (c *canonical) eat(b byte) bool {
	if c.peek() != b {
		return false
	}
	c.at++
	return true
}

func (c *canonical) word(word string) bool {
	if !bytes.HasPrefix(c.text[c.at:], []byte(word)) {
		return false
	}
	c.at += len(word)
	return true
}

// members passes an object; member passes the value of the name, which is text with its escapes.
func (c *canonical) members(member func(name []byte) bool) bool {
	if c.depth++; c.depth > maxDepth || !c.eat('{') {
		return false
	}
	var before []byte
	for first := true; !c.eat('}'); first = false {
		if !first && !c.eat(',') {
			return false
		}
		start := c.at + 1
		if !c.anyString() {
			return false
		}
		name := c.text[start : c.at-1]
		if !first && !inOrder(before, name) || !c.eat(':') || !member(name) {
			return false
		}
		before = name
	}
	c.depth--
	return true
}

// inOrder says whether the name a sorts before b, both with their escapes. Names that differ first
// in an escape of four digits are in no order that it knows.
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

// firstByte is the first byte of escaped text once it is decoded, -1 for none.
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

// list passes a list; element passes one element.
func (c *canonical) list(element func() bool) bool {
	if c.depth++; c.depth > maxDepth || !c.eat('[') {
		return false
	}
	for first := true; !c.eat(']'); first = false {
		if !first && !c.eat(',') || !element() {
			return false
		}
	}
	c.depth--
	return true
}

// any passes any value.
func (c *canonical) any() bool {
	switch b := c.peek(); b {
	case '{':
		return c.members(func([]byte) bool { return c.any() })
	case '[':
		return c.list(c.any)
	case '"':
		return c.anyString()
	case 't':
		return c.word("true")
	case 'f':
		return c.word("false")
	case 'n':
		return c.word("null")
	}
	return c.number()
}

// plain says whether a byte stands for itself in a string: ASCII that no server escapes.
func plain(b byte) bool {
	return b >= ' ' && b < utf8.RuneSelf && b != '"' && b != '\\' && b != '<' && b != '>' && b != '&'
}

// str passes a string without escapes and returns its content.
func (c *canonical) str() ([]byte, bool) {
	content, ok := c.quoted()
	return content, ok && bytes.IndexByte(content, '\\') < 0
}

// quoted passes a string and returns what is between its quotes, with escapes.
func (c *canonical) quoted() ([]byte, bool) {
	start := c.at + 1
	if !c.anyString() {
		return nil, false
	}
	return c.text[start : c.at-1], true
}

// filled passes a string that is not empty.
func (c *canonical) filled() bool { return c.peekPast() != '"' && c.anyString() }

// anyString passes a string.
func (c *canonical) anyString() bool {
	if !c.eat('"') {
		return false
	}
	for {
		c.skipPlain()
		switch b := c.peek(); {
		case b == '"':
			c.at++
			return true
		case b == '\\':
			if !c.escape() {
				return false
			}
		case b < utf8.RuneSelf:
			return false
		default:
			r, n := utf8.DecodeRune(c.text[c.at:])
			if r == utf8.RuneError && n == 1 || r == '\u2028' || r == '\u2029' {
				return false
			}
			c.at += n
		}
	}
}

// skipPlain goes to the next byte that is not plain, eight bytes at a time.
func (c *canonical) skipPlain() {
	const ones = 0x0101010101010101
	zero := func(word uint64) uint64 { return (word - ones) & ^word } // the high bit of the first byte that is 0
	for len(c.text)-c.at >= 8 {
		word := binary.LittleEndian.Uint64(c.text[c.at:])
		odd := word | (word-ones*' ')&^word | zero(word^ones*'"') | zero(word^ones*'\\') | zero(word^ones*'<') | zero(word^ones*'>') | zero(word^ones*'&')
		if odd &= ones << 7; odd != 0 {
			c.at += bits.TrailingZeros64(odd) / 8
			return
		}
		c.at += 8
	}
	for c.at < len(c.text) && plain(c.text[c.at]) {
		c.at++
	}
}

// escape passes one of the escapes that encoding/json writes.
func (c *canonical) escape() bool {
	switch c.peekPast() {
	case '"', '\\', 'n', 'r', 't', 'b', 'f':
		c.at += 2
		return true
	case 'u':
	default:
		return false
	}
	const digits = "0123456789abcdef"
	text := c.text[c.at:min(len(c.text), c.at+len(`\u0000`))]
	c.at += len(text)
	switch string(text) {
	case `\u003c`, `\u003e`, `\u0026`, `\u2028`, `\u2029`:
		return true
	case `\u0008`, `\u0009`, `\u000a`, `\u000c`, `\u000d`: // which have a shorter form
		return false
	}
	return len(text) == len(`\u0000`) && string(text[:4]) == `\u00` && (text[4] == '0' || text[4] == '1') && strings.IndexByte(digits, text[5]) >= 0
}

// integer passes a whole number that fits an int64 and returns its text.
func (c *canonical) integer() ([]byte, bool) {
	start := c.at
	negative := c.eat('-')
	first := c.at
	for b := c.peek(); b >= '0' && b <= '9'; b = c.peek() {
		c.at++
	}
	digits := c.text[first:c.at]
	const most = "9223372036854775807" // of -9223372036854775808 it is not sure
	ok := len(digits) > 0 && (digits[0] != '0' || len(digits) == 1 && !negative)
	return c.text[start:c.at], ok && (len(digits) < len(most) || len(digits) == len(most) && string(digits) <= most)
}

// number passes a number.
func (c *canonical) number() bool {
	start := c.at
	_, whole := c.integer()
	if b := c.peek(); b != '.' && b != 'e' && b != 'E' {
		return whole
	}
	for bytes.IndexByte([]byte("0123456789.eE+-"), c.peek()) >= 0 {
		c.at++
	}
	text := c.text[start:c.at]
	n, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return false
	}
	again, err := json.Marshal(n)
	return err == nil && bytes.Equal(text, again)
}

// time passes whole seconds of UTC as metav1.Time writes them, from the year 1000 on.
func (c *canonical) time() bool {
	text, ok := c.str()
	return ok && isTime(text)
}

// isTime accepts such times.
func isTime(text []byte) bool {
	if len(text) != len("2006-01-02T15:04:05Z") || text[0] == '0' {
		return false
	}
	for i, form := range []byte("0000-00-00T00:00:00Z") {
		if b := text[i]; form == '0' && (b < '0' || b > '9') || form != '0' && b != form {
			return false
		}
	}
	two := func(at int) int { return int(text[at]-'0')*10 + int(text[at+1]-'0') }
	month, day := two(5), two(8)
	if month < 1 || month > 12 || day < 1 || two(11) > 23 || two(14) > 59 || two(17) > 59 {
		return false
	}
	return day <= 28 || isCanonicalTime(string(text))
}
