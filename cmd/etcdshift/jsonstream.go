package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
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
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent(prefix, "  ")
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// printJSONLine prints a document on one line.
func printJSONLine(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
