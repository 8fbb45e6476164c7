package main

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"

	"github.com/etcdshift/etcdshift/inspect/redact"
	"github.com/etcdshift/etcdshift/internal/jsonpath"
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

// customRow is the line of an object: the values that the paths find, with tabs between.
func (g *getter) customRow(c customColumns, o *gotten, content map[string]any) (string, error) {
	cells := make([]any, len(c.paths))
	work := jsonpath.NewWork(g.c.Context, content)
	for i, path := range c.paths {
		cell, err := customCell(work, path, content)
		cells[i] = cell
		if errors.Is(err, jsonpath.ErrTooMuch) {
			cells[i] = err
		}
	}
	if err := g.checkCells(o, cells, func(i int) string { return c.headers[i] }); err != nil {
		return "", err
	}
	var texts []string
	for _, cell := range cells {
		text := cell.(string)
		if !g.options.secrets {
			text = redact.Text(text)
		}
		texts = append(texts, cellOf(text, len(cells)))
	}
	return strings.Join(texts, "\t"), nil
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
			headers = append(headers, cellOf(header, len(columns.headers)))
		}
		fmt.Fprintln(out, strings.Join(headers, "\t"))
	}
	var together chunk
	err = g.each(func(o *gotten, content map[string]any) error {
		row, err := g.customRow(columns, o, content)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, row)
		if together.full(len(row)) {
			return out.Flush()
		}
		return nil
	})
	if err != nil {
		return err
	}
	return out.Flush()
}
