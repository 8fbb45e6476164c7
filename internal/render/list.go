package render

import (
	"bufio"
	"bytes"
	"io"
	"slices"

	"sigs.k8s.io/yaml"
)

// List prints a document with one list, element by element: a head, the list, a tail. JSON lines
// have the elements alone. End, or Flush, completes the output.
type List struct {
	w              *bufio.Writer
	format, indent string
	count          int
}

// NewList returns a List in the format json, jsonl or yaml.
func NewList(w io.Writer, format string) *List {
	return &List{w: bufio.NewWriterSize(w, 1<<16), format: format, indent: "  "}
}

// NewObjects returns a List that is indented as kubectl indents a List of objects.
func NewObjects(w io.Writer, format string) *List {
	l := NewList(w, format)
	l.indent = kubectl
	return l
}

// Begin prints the fields of head, which encodes as an object, and begins the named list.
func (l *List) Begin(head any, field string) (err error) {
	var text []byte
	switch l.format {
	case "jsonl":
	case "yaml":
		text, err = yaml.Marshal(head)
		text = append(text, field+":\n"...)
	default:
		text, err = encode(head, "", l.indent)
		text = append(bytes.TrimSuffix(text, []byte("\n}\n")), ",\n"+l.indent+`"`+field+`": [`...)
	}
	return write(l.w)(text, err)
}

// Add prints one element.
func (l *List) Add(v any) error {
	text, err := l.element(v)
	l.count++
	return write(l.w)(text, err)
}

func (l *List) element(v any) ([]byte, error) {
	switch l.format {
	case "jsonl":
		return encode(v, "", "")
	case "yaml":
		text, err := YAML(v)
		text = bytes.ReplaceAll(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"), []byte("\n  "))
		return slices.Concat([]byte("- "), text, []byte("\n")), err
	}
	text, err := encode(v, l.indent+l.indent, l.indent)
	lead := "\n" + l.indent + l.indent
	if l.count > 0 {
		lead = "," + lead
	}
	return append([]byte(lead), bytes.TrimSuffix(text, []byte("\n"))...), err
}

// End ends the list and prints the fields of tail, which encodes as an object.
func (l *List) End(tail any) (err error) {
	var text []byte
	switch {
	case l.format == "jsonl":
	case l.format == "yaml":
		text, err = yaml.Marshal(tail)
		if l.count == 0 {
			text = append([]byte("  []\n"), text...)
		}
	default:
		text, err = encode(tail, "", l.indent)
		end := "],"
		if l.count > 0 {
			end = "\n" + l.indent + end
		}
		text = append([]byte(end), bytes.TrimPrefix(text, []byte("{"))...)
	}
	if err := write(l.w)(text, err); err != nil {
		return err
	}
	return l.w.Flush()
}

// Flush prints the elements added so far.
func (l *List) Flush() error { return l.w.Flush() }
