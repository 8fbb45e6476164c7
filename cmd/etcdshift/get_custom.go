package main

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/util/jsonpath"

	"github.com/etcdshift/etcdshift/inspect/redact"
)

// customColumns are the headers and paths of -o custom-columns.
type customColumns struct {
	headers []string
	paths   []*jsonpath.JSONPath
}

// readCustomColumns reads "NAME:.metadata.name,NODE:.spec.nodeName", or a file with a line of headers and one of paths.
func readCustomColumns(spec string) (c customColumns, err error) {
	var paths []string
	if head, rest, isFile := strings.Cut(strings.TrimSpace(spec), "\n"); isFile {
		c.headers, paths = strings.Fields(head), strings.Fields(rest)
	} else {
		for part := range strings.SplitSeq(spec, ",") {
			header, path, ok := strings.Cut(part, ":")
			if !ok || header == "" || path == "" {
				return c, fmt.Errorf("%q is not HEADER:PATH", part)
			}
			c.headers, paths = append(c.headers, header), append(paths, path)
		}
	}
	if len(c.headers) != len(paths) {
		return c, fmt.Errorf("%d headers, but %d paths", len(c.headers), len(paths))
	}
	for i, path := range paths {
		parsed := jsonpath.New(c.headers[i]).AllowMissingKeys(true)
		if err := parsed.Parse(relaxed(path)); err != nil {
			return c, err
		}
		c.paths = append(c.paths, parsed)
	}
	return c, nil
}

func (c customColumns) cells(content map[string]any) []string {
	var cells []string
	for _, path := range c.paths {
		results, err := path.FindResults(content)
		var texts []string
		if err == nil {
			for _, list := range results {
				for _, v := range list {
					texts = append(texts, customText(v))
				}
			}
		}
		if len(texts) == 0 {
			texts = []string{"<none>"}
		}
		cells = append(cells, strings.Join(texts, ","))
	}
	return cells
}

func customText(v reflect.Value) string {
	if !v.IsValid() || v.Kind() == reflect.Interface && v.IsNil() {
		return "<none>"
	}
	return fmt.Sprint(v.Interface())
}

// printCustomColumns prints a row for each object, some at once.
func (g *getter) printCustomColumns() error {
	columns, err := readCustomColumns(g.options.template)
	if err != nil {
		return usagef(commandPath(g.c), "--output: %w", err)
	}
	out := printers.GetNewTabWriter(g.c.App.Writer)
	if !g.options.noHeaders {
		fmt.Fprintln(out, strings.Join(columns.headers, "\t"))
	}
	rows := 0
	err = g.each(func(_ *gotten, content map[string]any) error {
		cells := columns.cells(content)
		for i, cell := range cells {
			if !g.options.secrets {
				cell = redact.Text(cell)
			}
			cells[i] = printable(cell)
		}
		fmt.Fprintln(out, strings.Join(cells, "\t"))
		if rows++; rows%chunk == 0 {
			return out.Flush()
		}
		return nil
	})
	if err != nil {
		return err
	}
	return out.Flush()
}
