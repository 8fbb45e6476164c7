package main

import (
	"fmt"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"

	"github.com/etcdshift/etcdshift/inspect/jsonpath"
	"github.com/etcdshift/etcdshift/inspect/redact"
)

// customColumns are the headers and paths of -o custom-columns.
type customColumns struct {
	headers []string
	paths   []*jsonpath.Path
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
		return c, fmt.Errorf("headers: %d, but paths: %d", len(c.headers), len(paths))
	}
	for _, path := range paths {
		parsed, err := jsonpath.Parse(relaxed(path))
		if err != nil {
			return c, err
		}
		c.paths = append(c.paths, parsed)
	}
	return c, nil
}

// cells are the values that the paths find in an object.
func (g *getter) customCells(c customColumns, o *gotten, content map[string]any) ([]string, error) {
	var cells []string
	work := jsonpath.NewWork(g.c.Context, content)
	for i, path := range c.paths {
		cell, err := customCell(work, path, content)
		if cell, err = g.bounded(o, "column "+printable(c.headers[i]), cell, err); err != nil {
			return nil, err
		}
		cells = append(cells, cell)
	}
	return cells, nil
}

func customCell(work *jsonpath.Work, path *jsonpath.Path, content map[string]any) (string, error) {
	lists, err := path.Find(work, content)
	var texts []string
	for _, list := range lists {
		for _, v := range list {
			text := "<none>"
			if v != nil {
				if text, err = jsonpath.Plain(work, v); err != nil {
					return "", err
				}
			}
			texts = append(texts, text)
		}
	}
	if len(texts) == 0 {
		texts = []string{"<none>"}
	}
	return strings.Join(texts, ","), err
}

// printCustomColumns prints a row for each object, some at once.
func (g *getter) printCustomColumns() error {
	columns, err := readCustomColumns(g.options.template)
	if err != nil {
		return usagef(commandPath(g.c), "--output: %w", err)
	}
	out := printers.GetNewTabWriter(g.c.App.Writer)
	if !g.options.noHeaders {
		var headers []string
		for _, header := range columns.headers {
			headers = append(headers, tableCell(header))
		}
		fmt.Fprintln(out, strings.Join(headers, "\t"))
	}
	rows := 0
	err = g.each(func(o *gotten, content map[string]any) error {
		cells, err := g.customCells(columns, o, content)
		if err != nil {
			return err
		}
		for i, cell := range cells {
			if !g.options.secrets {
				cell = redact.Text(cell)
			}
			cells[i] = tableCell(cell)
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
