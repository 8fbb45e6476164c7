package main

import (
	"fmt"
	"io"
	"unicode/utf8"
)

// harmless writes what a terminal may get: control characters but tabs and line ends, and what turns the direction of text, as \x1b and
// \u009b. Templates print names and values as they are. What is written is complete when end was called.
type harmless struct {
	w    io.Writer
	rest []byte // the beginning of a character, or a carriage return: what follows tells what it is
}

func (h *harmless) Write(p []byte) (int, error) {
	text := append(h.rest, p...)
	out := make([]byte, 0, len(text))
	for utf8.FullRune(text) && (text[0] != '\r' || len(text) > 1) {
		n := escapedTo(&out, text)
		text = text[n:]
	}
	h.rest = append([]byte(nil), text...)
	if _, err := h.w.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// end writes what is left.
func (h *harmless) end() error {
	var out []byte
	for text := h.rest; len(text) > 0; {
		text = text[escapedTo(&out, text):]
	}
	h.rest = nil
	_, err := h.w.Write(out)
	return err
}

// escapedTo appends the first character of text to out as a terminal may get it, and returns its length.
func escapedTo(out *[]byte, text []byte) int {
	c := text[0]
	if r, n := controlAt(text); n > 0 && c != 0x7f {
		*out = fmt.Appendf(*out, `\u%04x`, r)
		return n
	}
	_, n := utf8.DecodeRune(text)
	lineEnd := c == '\n' || c == '\r' && len(text) > 1 && text[1] == '\n'
	if c < ' ' && c != '\t' && !lineEnd || c == 0x7f || n == 1 && c >= 0x80 && c < 0xa0 {
		*out = fmt.Appendf(*out, `\x%02x`, c)
		return 1
	}
	*out = append(*out, text[:n]...)
	return n
}
