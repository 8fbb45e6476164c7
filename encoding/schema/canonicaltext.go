package schema

import (
	"bytes"
	"time"
	"unicode/utf8"

	"github.com/etcdshift/etcdshift/encoding"
)

// canonical scans canonical JSON text.
type canonical struct{ encoding.Scanner }

func canonicalOf(text []byte) canonical {
	return canonical{encoding.Scanner{Text: text, Canonical: true, MaxDepth: maxDepth}}
}

// ended reports whether the position is at the end of the text.
func (c *canonical) ended() bool { return c.At == len(c.Text) }

// peekPast returns the byte after the next byte, or 0 at the end.
func (c *canonical) peekPast() byte {
	if c.At+1 < len(c.Text) {
		return c.Text[c.At+1]
	}
	return 0
}

// plain reports whether a byte is written as itself in a string: ASCII without an escape.
func plain(b byte) bool {
	return b >= ' ' && b < utf8.RuneSelf && b != '"' && b != '\\' && b != '<' && b != '>' && b != '&'
}

// str consumes a string without escapes and returns its content.
func (c *canonical) str() ([]byte, bool) {
	content, ok := c.quoted()
	return content, ok && bytes.IndexByte(content, '\\') < 0
}

// quoted consumes a string and returns the text between its quotes, with escapes.
func (c *canonical) quoted() ([]byte, bool) {
	start := c.At + 1
	if !c.Str() {
		return nil, false
	}
	return c.Text[start : c.At-1], true
}

// filled consumes a non-empty string.
func (c *canonical) filled() bool { return c.peekPast() != '"' && c.Str() }

// time consumes a time in the form of metav1.Time: whole seconds of UTC, from the year 1000 on.
func (c *canonical) time() bool {
	text, ok := c.str()
	return ok && isTime(text)
}

// isCanonicalTime reports whether text is a time in the form of metav1.Time: whole seconds of UTC.
func isCanonicalTime(text string) bool {
	t, err := time.Parse(time.RFC3339, text)
	return err == nil && !t.IsZero() && t.UTC().Format(time.RFC3339) == text
}

// isTime reports whether text is such a time, from the year 1000 on.
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
