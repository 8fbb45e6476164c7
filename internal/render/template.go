package render

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"text/template"
	"text/template/parse"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/internal/jsonpath"
)

// Template prints the result of a template for content.
type Template func(ctx context.Context, out io.Writer, content map[string]any) error

// NewTemplate parses a template. A missing field is empty, as in kubectl.
func NewTemplate(format, text string) (Template, error) {
	if format == "go-template" {
		return newGoTemplate(text)
	}
	path, err := jsonpath.Parse(text)
	if err != nil {
		return nil, err
	}
	if format == "jsonpath-as-json" {
		return func(ctx context.Context, out io.Writer, content map[string]any) error {
			return printFound(ctx, out, path, content)
		}, nil
	}
	return func(ctx context.Context, out io.Writer, content map[string]any) error {
		return path.Print(out, jsonpath.NewWork(ctx, content), content)
	}, nil
}

// printFound prints the values of each part of a path as a list in JSON.
func printFound(ctx context.Context, out io.Writer, path *jsonpath.Path, content map[string]any) error {
	work := jsonpath.NewWork(ctx, content)
	lists, err := path.Find(work, content)
	for _, values := range lists {
		values = append([]any{}, values...)                    // [] instead of null
		if _, err := jsonpath.Text(work, values); err != nil { // bounds the size
			return err
		}
		if err := Object(out, "json", values); err != nil {
			return err
		}
	}
	return err
}

// newGoTemplate parses a Go template with kubectl's functions. Each block and loop begins with an
// empty text, so that each round of a loop writes and is bounded.
func newGoTemplate(text string) (Template, error) {
	t, err := template.New("output").Funcs(template.FuncMap{"exists": exists, "base64decode": decodeBase64}).Parse(text)
	if err != nil {
		return nil, err
	}
	for _, one := range t.Templates() {
		if one.Tree != nil {
			writeOften(one.Root)
		}
	}
	return func(ctx context.Context, out io.Writer, content map[string]any) error {
		within := newLimited(ctx, out, content)
		return t.Funcs(within.functions()).Execute(within, content)
	}, nil
}

// writeOften adds the empty text to the lists below a node.
func writeOften(node parse.Node) {
	switch node := node.(type) {
	case *parse.ListNode:
		if node == nil {
			return
		}
		for _, below := range node.Nodes {
			writeOften(below)
		}
		node.Nodes = append([]parse.Node{&parse.TextNode{NodeType: parse.NodeText, Pos: node.Pos}}, node.Nodes...)
	case *parse.IfNode:
		writeOften(&node.BranchNode)
	case *parse.RangeNode:
		writeOften(&node.BranchNode)
	case *parse.WithNode:
		writeOften(&node.BranchNode)
	case *parse.BranchNode:
		writeOften(node.List)
		writeOften(node.ElseList)
	}
}

// ErrEndless is returned for a template that loops or prints too much.
var ErrEndless = errors.New("the template does too much")

// limited bounds the output of a template.
type limited struct {
	ctx                 context.Context
	w                   io.Writer
	writes, bytes, made int // remaining amounts; made counts bytes made by functions
}

// newLimited allows reading each value many times, and printing all of them eight times.
func newLimited(ctx context.Context, w io.Writer, content map[string]any) *limited {
	weight := encoding.Weigh(content)
	return &limited{ctx: ctx, w: w, writes: 4<<20 + 4*weight, bytes: 16<<20 + 8*weight, made: 256<<20 + 8*weight}
}

func (l *limited) Write(p []byte) (int, error) {
	if err := l.ctx.Err(); err != nil {
		return 0, err
	}
	l.writes, l.bytes = l.writes-1, l.bytes-len(p)
	if l.writes < 0 || l.bytes < 0 {
		return 0, ErrEndless
	}
	return l.w.Write(p)
}

// functions returns bounded functions of text/template: print $x $x in a loop doubles $x each time.
func (l *limited) functions() template.FuncMap {
	bounded := func(call func(...any) string) any {
		return func(args ...any) (string, error) {
			if err := l.make(encoding.Weigh(args)); err != nil {
				return "", err
			}
			return call(args...), nil
		}
	}
	return template.FuncMap{
		"print": bounded(fmt.Sprint), "println": bounded(fmt.Sprintln),
		"html": bounded(template.HTMLEscaper), "js": bounded(template.JSEscaper),
		"urlquery": bounded(template.URLQueryEscaper),
		"printf": func(format string, args ...any) (string, error) {
			again := max(1, strings.Count(format, "%[")) // %[1]s%[1]s prints an argument twice
			if err := l.make(len(format) + again*encoding.Weigh(args)); err != nil {
				return "", err
			}
			return fmt.Sprintf(format, args...), nil
		},
	}
}

// make counts n bytes made by a function.
func (l *limited) make(n int) error {
	if l.made -= n; l.made < 0 {
		return ErrEndless
	}
	return l.ctx.Err()
}

// exists reports whether index would find a value in a Go template.
func exists(item any, indices ...any) bool {
	for _, index := range indices {
		if object, isObject := item.(map[string]any); isObject {
			key, isKey := index.(string)
			if !isKey {
				return false
			}
			item = object[key]
			continue
		}
		at, list := reflect.ValueOf(index), reflect.ValueOf(item)
		if k := list.Kind(); k != reflect.Slice && k != reflect.String || !at.CanInt() || at.Int() < 0 ||
			at.Int() >= int64(list.Len()) {
			return false
		}
		item = list.Index(int(at.Int())).Interface()
	}
	return item != nil
}

func decodeBase64(text string) (string, error) {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return "", fmt.Errorf("base64 decode failed: %w", err)
	}
	return string(data), nil
}

// CustomColumns holds the headers and paths of kubectl's -o custom-columns.
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
