package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"
)

// jsonStream prints one JSON document whose list may be longer than memory: what stands before the list, its elements one by
// one, and what stands after it.
type jsonStream struct {
	w   *bufio.Writer
	any bool
}

func newJSONStream(w io.Writer) *jsonStream { return &jsonStream{w: bufio.NewWriter(w)} }

// begin prints the fields of head, which is an object, and begins the list in the named field.
func (s *jsonStream) begin(head any, list string) error {
	text, err := indented(head, "")
	if err != nil {
		return err
	}
	s.w.Write(bytes.TrimSuffix(text, []byte("\n}")))
	s.w.WriteString(",\n  \"" + list + "\": [")
	return nil
}

// element prints one element of the list.
func (s *jsonStream) element(v any) error {
	text, err := indented(v, "    ")
	if err != nil {
		return err
	}
	if s.any {
		s.w.WriteByte(',')
	}
	s.any = true
	s.w.WriteString("\n    ")
	_, err = s.w.Write(text)
	return err
}

// end ends the list and prints the fields of tail, which is an object.
func (s *jsonStream) end(tail any) error {
	text, err := indented(tail, "")
	if err != nil {
		return err
	}
	if s.any {
		s.w.WriteString("\n  ")
	}
	s.w.WriteString("],")
	s.w.Write(bytes.TrimPrefix(text, []byte("{")))
	s.w.WriteByte('\n')
	return s.w.Flush() // its error is the first of any of the above
}

// indented is v as printJSON prints it, without the line's end; lines after the first begin with prefix.
func indented(v any, prefix string) ([]byte, error) {
	text, err := encodeJSON(v, prefix, "  ")
	return bytes.TrimSuffix(text, []byte("\n")), err
}

// printJSONLine prints a document on one line.
func printJSONLine(w io.Writer, v any) error {
	text, err := encodeJSON(v, "", "")
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// encodeJSON is v as every JSON is printed: one line, or indented, with the line's end, and nothing in it that moves a cursor. What is
// nested too deep to be indented is on one line.
func encodeJSON(v any, prefix, indent string) ([]byte, error) {
	var line, out bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	if prefix == "" && indent == "" || tooDeep(line.Bytes(), prefix, indent) {
		return escapeControls(line.Bytes()), nil
	}
	if err := json.Indent(&out, line.Bytes(), prefix, indent); err != nil {
		return nil, err
	}
	return escapeControls(out.Bytes()), nil
}

// deepest is how many levels are indented, and freeBlanks how many bytes of indentation are nothing to speak of.
const (
	deepest    = 200
	freeBlanks = 1 << 20
)

// tooDeep tells whether indentation would make JSON more than sixteen times as long, or deeper than anyone reads: 60 KB nested 10,000 deep
// would become 400 MB.
func tooDeep(line []byte, prefix, indent string) bool {
	depth, blanks, inText := 0, 0, false
	for i := 0; i < len(line); i++ {
		switch b := line[i]; {
		case inText && b == '\\':
			i++
			continue
		case b == '"':
			inText = !inText
			continue
		case inText:
			continue
		case b == '{', b == '[':
			depth++
		case b == '}', b == ']':
			depth--
		case b != ',':
			continue
		}
		if blanks += len(prefix) + depth*len(indent); depth >= deepest || blanks > freeBlanks+16*len(line) {
			return true
		}
	}
	return false
}

// escapeControls writes those characters of JSON that a terminal obeys and that JSON takes as they are as \u009b: DEL, the control
// characters of Latin-1, line separators, and what turns the direction of text. In JSON they are nowhere but in strings.
func escapeControls(text []byte) []byte {
	var out []byte
	done := 0
	for i := 0; i < len(text); {
		r, n := controlAt(text[i:])
		if n > 0 {
			out = fmt.Appendf(append(out, text[done:i]...), `\u%04x`, r)
			done = i + n
		}
		i += max(n, 1)
	}
	if done == 0 {
		return text
	}
	return append(out, text[done:]...)
}

// hasControls tells whether there is anything that escapeControls escapes.
func hasControls(text []byte) bool {
	for i := range text {
		if _, n := controlAt(text[i:]); n > 0 {
			return true
		}
	}
	return false
}

// controlAt is the character that escapeControls escapes with which text begins, and its length in bytes, 0 where there is none. Its
// first bytes are told apart by hand: documents are long, and such characters rare.
func controlAt(text []byte) (rune, int) {
	switch {
	case text[0] == 0x7f:
		return 0x7f, 1
	case text[0] != 0xc2 && text[0] != 0xd8 && text[0] != 0xe2:
		return 0, 0
	}
	r, n := utf8.DecodeRune(text)
	switch {
	case r >= 0x80 && r <= 0x9f, r >= 0x2028 && r <= 0x202e, r == 0x61c, r == 0x200e, r == 0x200f, r >= 0x2066 && r <= 0x2069:
		return r, n
	}
	return 0, 0
}
