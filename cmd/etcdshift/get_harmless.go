package main

import (
	"fmt"
	"io"
)

// harmless writes what a terminal may get: control characters but line feeds and tabs as \x1b and \u009b. Formats such as JSONPath
// print names and values as they are.
type harmless struct {
	w  io.Writer
	c2 bool // the last byte was 0xc2, with which a control character of Latin-1 begins in UTF-8
}

func (h *harmless) Write(p []byte) (int, error) {
	out := make([]byte, 0, len(p))
	for _, b := range p {
		begun := h.c2
		h.c2 = b == 0xc2
		switch {
		case begun && b >= 0x80 && b < 0xa0:
			out = fmt.Appendf(out, `\u%04x`, b)
			continue
		case begun:
			out = append(out, 0xc2)
		}
		switch {
		case h.c2: // written with what follows
		case b < ' ' && b != '\n' && b != '\t', b == 0x7f:
			out = fmt.Appendf(out, `\x%02x`, b)
		default:
			out = append(out, b)
		}
	}
	if _, err := h.w.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}
