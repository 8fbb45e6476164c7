package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect/redact"
	"github.com/etcdshift/etcdshift/snapshot"
)

// printer returns what prints in the chosen format.
func (g *getter) printer() func() error {
	if g.options.export {
		return g.printExport
	}
	switch g.options.format {
	case "name":
		return g.printNames
	case "json":
		return func() error { return g.printDocument(jsonForm) }
	case "yaml":
		return func() error { return g.printDocument(yamlForm) }
	case "raw":
		return g.printRaw
	case "jsonpath", "go-template":
		return g.printTemplate
	case "custom-columns":
		return g.printCustomColumns
	}
	return g.printTables
}

// each runs fn on every object that can be read, redacted.
func (g *getter) each(fn func(o *gotten, content map[string]any) error) error {
	for _, a := range g.asked {
		for o, err := range g.objects(g.c.Context, a) {
			if err != nil {
				return err
			}
			if o.Err != nil {
				continue
			}
			if err := fn(o, g.shownContent(o)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *getter) printNames() error {
	return g.each(func(o *gotten, _ map[string]any) error {
		kind := strings.ToLower(o.Type.Kind)
		if o.Type.Resource.Group != "" {
			kind += "." + o.Type.Resource.Group
		}
		_, err := fmt.Fprintln(g.c.App.Writer, printable(kind+"/"+o.Place.Name))
		return err
	})
}

// form is how a document is written: what stands before the items of a list, each item, and what follows.
type form struct {
	single func(content map[string]any) ([]byte, error)
	open   func(head []byte) string
	item   func(content map[string]any, first bool) ([]byte, error)
	close  func(none bool) string
	head   func(any) ([]byte, error)
}

// listHead is the field "etcdshift" of a list: what every JSON answer says of its input and of this program.
type listHead struct {
	APIVersion string    `json:"apiVersion"`
	Input      inputInfo `json:"input"`
	Tool       toolInfo  `json:"tool"`
}

var (
	jsonForm = form{
		single: func(content map[string]any) ([]byte, error) {
			text, err := indentedJSON(content, "")
			return append(text, '\n'), err
		},
		head: func(head any) ([]byte, error) { return indentedJSON(head, "    ") },
		open: func(head []byte) string {
			return "{\n    \"apiVersion\": \"v1\",\n    \"etcdshift\": " + string(head) + ",\n    \"items\": ["
		},
		item: func(content map[string]any, first bool) ([]byte, error) {
			text, err := indentedJSON(content, "        ")
			lead := ",\n        "
			if first {
				lead = "\n        "
			}
			return append([]byte(lead), text...), err
		},
		close: func(none bool) string {
			lead := "\n    "
			if none {
				lead = ""
			}
			return lead + "],\n    \"kind\": \"List\",\n    \"metadata\": {\n        \"resourceVersion\": \"\"\n    }\n}\n"
		},
	}
	yamlForm = form{
		single: func(content map[string]any) ([]byte, error) { return objectYAML(content) },
		head: func(head any) ([]byte, error) {
			text, err := yaml.Marshal(head)
			return indentLines(text, "  ", "  "), err
		},
		open: func(head []byte) string { return "apiVersion: v1\netcdshift:\n" + string(head) + "items:\n" },
		item: func(content map[string]any, _ bool) ([]byte, error) {
			text, err := objectYAML(content)
			return indentLines(text, "- ", "  "), err
		},
		close: func(none bool) string {
			lead := ""
			if none {
				lead = "  []\n"
			}
			return lead + "kind: List\nmetadata:\n  resourceVersion: \"\"\n"
		},
	}
)

// maxYAML bounds the objects that the YAML library prints, by encoding.Weigh less their text: it takes up to a hundred times that.
// Large real objects, CRDs of a megabyte, weigh half of it.
const maxYAML = 1 << 23

// objectYAML is an object in YAML. Where it is nested too deep to be indented, or has too many values for the YAML library, it is JSON on
// one line, and where it has characters that a terminal obeys it is in JSON, which is YAML and has escapes for them.
func objectYAML(content any) ([]byte, error) {
	text, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	if tooDeep(text, "  ", "  ") || encoding.Weigh(content)-len(text) > maxYAML {
		return append(escapeControls(text), '\n'), nil
	}
	if !hasControls(text) {
		if text, err := yaml.JSONToYAML(text); err != nil || !hasControls(text) {
			return text, err
		}
	}
	text, err = indentedJSON(content, "")
	return append(text, '\n'), err
}

func indentedJSON(value any, prefix string) ([]byte, error) {
	text, err := encodeJSON(value, prefix, "    ")
	return bytes.TrimSuffix(text, []byte("\n")), err
}

func indentLines(text []byte, first, rest string) []byte {
	var out bytes.Buffer
	lead := first
	for line := range bytes.Lines(text) {
		out.WriteString(lead)
		out.Write(line)
		lead = rest
	}
	return out.Bytes()
}

// printDocument prints one object as it is, or a v1 List of several, as kubectl does. The list has a field more, "etcdshift".
// Its items are printed one by one; kubectl's readers find them all the same.
func (g *getter) printDocument(f form) error {
	if g.single {
		return g.each(func(_ *gotten, content map[string]any) error {
			text, err := f.single(content)
			if err != nil {
				return err
			}
			_, err = g.c.App.Writer.Write(text)
			return err
		})
	}
	in, err := g.opened.input(g.c.Context)
	if err != nil && !errors.Is(err, snapshot.ErrDigest) {
		return err
	}
	head, err := f.head(listHead{apiVersion, in, tool()})
	if err != nil {
		return err
	}
	out := bufio.NewWriter(g.c.App.Writer)
	out.WriteString(f.open(head))
	n := 0
	err = g.each(func(_ *gotten, content map[string]any) error {
		text, err := f.item(content, n == 0)
		if err != nil {
			return err
		}
		n++
		_, err = out.Write(text)
		return err
	})
	if err != nil {
		return err
	}
	out.WriteString(f.close(n == 0))
	return out.Flush()
}

// printRaw prints the decrypted value of one object, byte for byte.
func (g *getter) printRaw() error {
	var values [][]byte
	for _, a := range g.asked {
		for o, err := range g.objects(g.c.Context, a) {
			switch {
			case err != nil:
				return err
			case o.Sealed != nil || o.Value == nil:
				continue
			case !g.options.secrets && redact.Value(o.Key, o.Value):
				return &failure{status: exitRefused, err: fmt.Errorf("%s: holds what is printed only with --show-secrets", printable(string(o.Key)))}
			}
			if values = append(values, o.Value); len(values) > 1 {
				return usagef(commandPath(g.c), "-o raw prints one object; name it")
			}
		}
	}
	if values == nil {
		return nil
	}
	_, err := g.c.App.Writer.Write(values[0])
	return err
}
