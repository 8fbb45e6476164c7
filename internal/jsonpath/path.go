package jsonpath

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	parser "k8s.io/client-go/util/jsonpath"

	"github.com/etcdshift/etcdshift/encoding"
)

// Path is a parsed template.
type Path struct{ nodes []parser.Node }

// Parse parses a template such as "{.metadata.name}".
func Parse(template string) (*Path, error) {
	parsed, err := parser.Parse("jsonpath", template)
	if err != nil {
		return nil, err
	}
	return &Path{parsed.Root.Nodes}, nil
}

// ParseRelaxed parses a path like kubectl: with or without braces and the first dot.
func ParseRelaxed(path string) (*Path, error) {
	path = strings.TrimSuffix(strings.TrimPrefix(path, "{"), "}")
	return Parse("{." + strings.TrimPrefix(path, ".") + "}")
}

// noValue replaces null and missing elements in a range.
type noValue struct{}

// String returns the text of kubectl.
func (noValue) String() string { return "<no value>" }

// Find returns the values found by each part of the template. A text finds itself.
func (p *Path) Find(w *Work, content any) ([][]any, error) {
	w.begin()
	r := &run{work: w, nodes: p.nodes, end: -1}
	return r.from(content, 0)
}

// First returns the first value found by the template, false for none.
func (p *Path) First(w *Work, content any) (value any, found bool, err error) {
	lists, err := p.Find(w, content)
	if err != nil || len(lists) == 0 || len(lists[0]) == 0 {
		return nil, false, err
	}
	return lists[0][0], true, nil
}

// Print prints like kubectl: maps and lists as JSON, blanks between the values of a part.
func (p *Path) Print(out io.Writer, w *Work, content any) error {
	lists, err := p.Find(w, content)
	for _, values := range lists {
		for i, value := range values {
			text, err := Text(w, value)
			if err != nil {
				return err
			}
			if i < len(values)-1 {
				text += " "
			}
			if _, err := io.WriteString(out, text); err != nil {
				return err
			}
		}
	}
	return err
}

// Text formats one value in the format of [Path.Print].
func Text(w *Work, value any) (string, error) {
	switch value := value.(type) {
	case nil:
		return "null", nil
	case map[string]any, []any:
		if err := w.print(encoding.Weigh(value)); err != nil {
			return "", err
		}
		text, err := json.Marshal(value)
		return string(text), err
	}
	return Plain(w, value)
}

// Plain formats a value like custom columns: in the format of fmt.
func Plain(w *Work, value any) (string, error) {
	if err := w.print(encoding.Weigh(value)); err != nil {
		return "", err
	}
	return fmt.Sprint(value), nil
}

// ErrTooMuch is returned for a path that finds or prints too much.
var ErrTooMuch = errors.New("the path finds too much")

// A path may find and print these amounts plus a multiple of the object's size, all paths together
// eight times as much.
const (
	freeValues = 1 << 17
	freeBytes  = 16 << 20
	paths      = 8
)

// Work bounds the values found and printed by paths in one object.
type Work struct {
	ctx           context.Context
	values, bytes allowance
	err           error // ended the path
}

// allowance holds the remaining amount for a path and for all paths.
type allowance struct {
	most, left, all int
	unit            string
}

// NewWork returns the bounds for paths in content. Paths stop when ctx ends.
func NewWork(ctx context.Context, content any) *Work {
	weight := encoding.Weigh(content)
	allow := func(most int, unit string) allowance { return allowance{most: most, all: paths * most, unit: unit} }
	return &Work{ctx: ctx, values: allow(freeValues+weight/4, "values"), bytes: allow(freeBytes+8*weight, "bytes")}
}

// begin renews the allowance of one path.
func (w *Work) begin() {
	w.values.left, w.bytes.left, w.err = w.values.most, w.bytes.most, nil
}

// find counts n values.
func (w *Work) find(n int) error {
	const often = 1 << 14
	before := w.values.left
	if err := w.values.take(n); err != nil {
		return w.stop(err)
	}
	if before/often != w.values.left/often {
		return w.stop(w.ctx.Err())
	}
	return nil
}

// print counts n bytes.
func (w *Work) print(n int) error {
	if err := w.bytes.take(n); err != nil {
		return w.stop(err)
	}
	return w.stop(w.ctx.Err())
}

func (w *Work) stop(err error) error {
	w.err = err
	return err
}

func (a *allowance) take(n int) error {
	a.left -= n
	a.all -= n
	switch {
	case a.left < 0:
		return fmt.Errorf("%w: more than %d %s", ErrTooMuch, a.most, a.unit)
	case a.all < 0:
		return fmt.Errorf("%w: with the paths before it more than %d %s", ErrTooMuch, paths*a.most, a.unit)
	}
	return nil
}
