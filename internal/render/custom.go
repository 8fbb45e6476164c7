package render

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"

	"github.com/etcdshift/etcdshift/internal/jsonpath"
)

// CustomColumns are the headers and paths of kubectl's -o custom-columns.
type CustomColumns struct {
	Headers []string
	paths   []*jsonpath.Path
}

// ParseCustomColumns parses "NAME:.metadata.name,NODE:.spec.nodeName", or two lines of words.
func ParseCustomColumns(spec string) (c CustomColumns, err error) {
	var paths []string
	if head, rest, isFile := strings.Cut(strings.TrimSpace(spec), "\n"); isFile {
		c.Headers, paths = strings.Fields(head), strings.Fields(rest)
	} else {
		for part := range strings.SplitSeq(spec, ",") {
			header, path, ok := strings.Cut(part, ":")
			if !ok || header == "" || path == "" {
				return c, fmt.Errorf("%q is not HEADER:PATH", part)
			}
			c.Headers, paths = append(c.Headers, header), append(paths, path)
		}
	}
	if len(c.Headers) != len(paths) {
		return c, fmt.Errorf("headers: %d, but paths: %d", len(c.Headers), len(paths))
	}
	for _, path := range paths {
		parsed, err := jsonpath.ParseRelaxed(path)
		if err != nil {
			return c, err
		}
		c.paths = append(c.paths, parsed)
	}
	return c, nil
}

// Cells returns the texts that the paths find in content, or errors that wrap jsonpath.ErrTooMuch.
func (c CustomColumns) Cells(ctx context.Context, content any) []any {
	cells := make([]any, len(c.paths))
	work := jsonpath.NewWork(ctx, content)
	for i, path := range c.paths {
		cell, err := customCell(work, path, content)
		cells[i] = cell
		if errors.Is(err, jsonpath.ErrTooMuch) {
			cells[i] = err
		}
	}
	return cells
}

// flusher is kubectl's tab writer.
type flusher interface {
	io.Writer
	Flush() error
}

// CustomTable prints rows of texts in kubectl's columns, chunk by chunk.
type CustomTable struct {
	out   flusher
	chunk chunk
}

// NewCustomTable returns a table on w.
func NewCustomTable(w io.Writer) *CustomTable { return &CustomTable{out: printers.GetNewTabWriter(w)} }

// Row adds a row, and prints those that have come together where they are enough.
func (t *CustomTable) Row(cells []string) error {
	bytes := 0
	for i, cell := range cells {
		cells[i] = Cell(cell, len(cells))
		bytes += len(cells[i])
	}
	fmt.Fprintln(t.out, strings.Join(cells, "\t"))
	if t.chunk.full(bytes) {
		return t.out.Flush()
	}
	return nil
}

// Flush prints the rows that have come together.
func (t *CustomTable) Flush() error { return t.out.Flush() }

func customCell(work *jsonpath.Work, path *jsonpath.Path, content any) (string, error) {
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
