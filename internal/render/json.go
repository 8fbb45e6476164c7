package render

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/etcdshift/etcdshift/encoding"
)

// JSON prints v as an indented document.
func JSON(w io.Writer, v any) error { return write(w)(encode(v, "", "  ")) }

// inline returns v as JSON on one line, without a line end.
func inline(v any) string {
	text, err := encode(v, "", "")
	if err != nil {
		return "?"
	}
	return strings.TrimSuffix(string(text), "\n")
}

func write(w io.Writer) func([]byte, error) error {
	return func(text []byte, err error) error {
		if err == nil {
			_, err = w.Write(text)
		}
		return err
	}
}

// encode returns v as JSON with a line end and escaped control characters, on one line if indent is
// "" or v is nested too deep. Lines after the first begin with prefix.
func encode(v any, prefix, indent string) ([]byte, error) {
	if obj, is := v.(map[string]any); is && indent != "" {
		if text, ok := indentedContent(obj, prefix, indent); ok {
			return text, nil
		}
	}
	text, err := line(v)
	if err != nil || prefix == "" && indent == "" || tooDeep(text, prefix, indent) {
		return escapeControls(text), err
	}
	var out bytes.Buffer
	err = json.Indent(&out, text, prefix, indent)
	return escapeControls(out.Bytes()), err
}

// line returns v as JSON on one line, with a line end.
func line(v any) ([]byte, error) {
	var line bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return line.Bytes(), err
}

const (
	deepest    = 200     // indented levels
	freeBlanks = 1 << 20 // bytes of indentation that are always allowed
)

// tooDeep reports whether indented JSON would be sixteen times as long, or deeper than deepest: 60
// KB nested 10,000 deep would become 400 MB.
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

// maxYAML bounds objects for the YAML library, by encoding.Weigh without their text: the library
// needs a hundred times that. Large real objects, CRDs of a megabyte, weigh half of it.
const maxYAML = 1 << 23

// YAML returns v in YAML. An object nested too deep, or with too many values, is JSON on one line;
// an object with terminal control characters is indented JSON, which has escapes for them.
func YAML(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if tooDeep(text, "  ", "  ") || encoding.Weigh(v)-len(text) > maxYAML {
		return append(escapeControls(text), '\n'), nil
	}
	if !hasControls(text) {
		if text, err := yaml.JSONToYAML(text); err != nil || !hasControls(text) {
			return text, err
		}
	}
	return encode(v, "", kubectl)
}

// kubectl is the indentation of kubectl's JSON.
const kubectl = "    "

// Object prints one object like kubectl, in JSON or, if format is "yaml", in YAML.
func Object(w io.Writer, format string, v any) error {
	if format == "yaml" {
		return write(w)(YAML(v))
	}
	return write(w)(encode(v, "", kubectl))
}

// List prints a document with one list, element by element: a head, the list, a tail. JSON lines
// have only the elements. End, or Flush, completes the output.
type List struct {
	w              *bufio.Writer
	format, indent string
	count          int
}

// NewList returns a List in the format json, jsonl or yaml.
func NewList(w io.Writer, format string) *List {
	return &List{w: bufio.NewWriterSize(w, 1<<16), format: format, indent: "  "}
}

// NewObjects returns a List with the indentation of kubectl's List of objects.
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
func (l *List) Add(v any) error { return l.AddEncoded(l.Encode(v)) }

// AddEncoded prints the element of a call of Encode.
func (l *List) AddEncoded(text []byte, err error) error {
	if l.count++; err == nil && l.format != "yaml" && l.format != "jsonl" {
		lead := "\n" + l.indent + l.indent
		if l.count > 1 {
			lead = "," + lead
		}
		_, err = l.w.WriteString(lead)
	}
	return write(l.w)(text, err)
}

// Encode encodes an element. Concurrent calls are allowed.
func (l *List) Encode(v any) ([]byte, error) {
	switch l.format {
	case "jsonl":
		return encode(v, "", "")
	case "yaml":
		text, err := YAML(v)
		text = bytes.ReplaceAll(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"), []byte("\n  "))
		return slices.Concat([]byte("- "), text, []byte("\n")), err
	}
	text, err := encode(v, l.indent+l.indent, l.indent)
	return bytes.TrimSuffix(text, []byte("\n")), err
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
