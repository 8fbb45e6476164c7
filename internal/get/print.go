package get

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/etcdshift/etcdshift/internal/compare"
	"github.com/etcdshift/etcdshift/internal/jsonpath"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/transform"
)

func (g *finder) print() error {
	switch g.Format {
	case "name":
		return g.printNames()
	case "json", "yaml":
		return g.printDocument()
	case "raw":
		return g.printRaw()
	case "jsonpath", "jsonpath-as-json", "go-template":
		return g.printTemplate()
	case "custom-columns":
		return g.printCustomColumns()
	}
	return g.printTables()
}

func (g *finder) each(fn func(a Asked, o *gotten) error) error {
	for _, a := range g.asked {
		if err := stream.Each(g.objects(a), func(o *gotten) error { return fn(a, o) }); err != nil {
			return err
		}
	}
	return nil
}

// contents runs fn on every readable object, redacted, and without managedFields unless
// --show-managed-fields was given.
func (g *finder) contents(fn func(o *gotten, content map[string]any) error) error {
	return g.each(func(_ Asked, o *gotten) error {
		if o.Err != nil {
			return nil
		}
		if g.hide != nil {
			g.hidden = g.hide.Object(o.Key, o.Content) || g.hidden
		}
		if !g.ManagedFields {
			unstructured.RemoveNestedField(o.Content, "metadata", "managedFields")
		}
		return fn(o, o.Content)
	})
}

func (g *finder) printNames() error {
	return g.each(func(_ Asked, o *gotten) error {
		if o.Err != nil {
			return nil
		}
		kind := strings.ToLower(o.Type.Kind)
		if o.Type.Resource.Group != "" {
			kind += "." + o.Type.Resource.Group
		}
		_, err := fmt.Fprintln(g.Out, render.Printable(kind+"/"+o.Parsed.Name))
		return err
	})
}

// ListEnd is the tail of a v1 List of objects.
type ListEnd struct {
	Kind     string `json:"kind"`
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Deletions []deletedAt `json:"deletions,omitempty"` // of the items, in their order, with --deleted
}

// deletedAt is the time of a deletion.
type deletedAt struct {
	Revision int64            `json:"revision"`
	Time     *compare.Bracket `json:"time,omitempty"` // approximate time; absent if unknown
}

// printDocument prints one object, or a v1 List of several with the field "etcdshift".
func (g *finder) printDocument() error {
	if g.single() {
		return g.contents(func(_ *gotten, content map[string]any) error {
			return render.Object(g.Out, g.Format, content)
		})
	}
	head, err := g.Head()
	if err != nil {
		return err
	}
	list := render.NewObjects(g.Out, g.Format)
	if err := list.Begin(head, "items"); err != nil {
		return err
	}
	end := ListEnd{Kind: "List"}
	err = g.contents(func(o *gotten, content map[string]any) error {
		if g.Deleted {
			end.Deletions = append(end.Deletions, deletedAt{o.deletedAt, g.clock.At(o.deletedAt)})
		}
		return list.Add(content)
	})
	if err != nil {
		return err
	}
	return list.End(end)
}

// printTemplate runs a JSONPath or Go template over the object, or the List, in memory.
func (g *finder) printTemplate() error {
	run, err := render.NewTemplate(g.Format, g.Template)
	if err != nil {
		return transform.Usagef("--output: %v", err)
	}
	items := []any{}
	err = g.contents(func(_ *gotten, content map[string]any) error {
		if g.Format != "jsonpath-as-json" {
			content, _ = render.QuoteNames(content).(map[string]any)
		}
		items = append(items, content)
		return nil
	})
	if err != nil || g.single() && len(items) == 0 {
		return err
	}
	content := map[string]any{
		"apiVersion": "v1", "kind": "List", "items": items, "metadata": map[string]any{"resourceVersion": ""}}
	if g.single() {
		content = items[0].(map[string]any)
	}
	var out bytes.Buffer
	err = run(g.ctx, &out, content)
	if redactedMark().Match(out.Bytes()) || errors.As(err, new(base64.CorruptInputError)) {
		g.sayHidden()
	}
	if _, writeErr := g.Out.Write(out.Bytes()); err == nil {
		return writeErr
	}
	if ctxErr := g.ctx.Err(); ctxErr != nil {
		return ctxErr
	}
	if errors.Is(err, jsonpath.ErrTooMuch) || errors.Is(err, render.ErrEndless) {
		return fmt.Errorf("--output: %w", err)
	}
	return transform.Usagef("--output: %v", err)
}

// printRaw prints the decrypted value of one object unchanged.
func (g *finder) printRaw() error {
	var values [][]byte
	err := g.each(func(_ Asked, o *gotten) error {
		switch {
		case o.Undecryptable != nil || o.Value == nil:
			return nil
		case g.hide != nil && g.hide.Value(o.Key, o.Value):
			return &RefusedError{fmt.Errorf("%s: its secrets need --show-secrets", render.Printable(string(o.Key)))}
		}
		if values = append(values, o.Value); len(values) > 1 {
			return transform.Usagef("-o raw prints one object; name it")
		}
		return nil
	})
	if err == nil && values != nil {
		_, err = g.Out.Write(values[0])
	}
	return err
}

func (g *finder) printCustomColumns() error {
	columns, err := render.ParseCustomColumns(g.Template)
	if err != nil {
		return transform.Usagef("--output: %v", err)
	}
	t := render.NewCustomTable(g.Out)
	if !g.NoHeaders {
		cell := func(header string) any { return render.Cell(header, len(columns.Headers)) }
		if err := t.Row(stream.Mapped(columns.Headers, cell)); err != nil {
			return err
		}
	}
	masked, mark := false, redactedMark()
	err = g.contents(func(o *gotten, content map[string]any) error {
		cells := columns.Cells(g.ctx, content)
		if err := g.checkCells(o, cells, func(i int) string { return columns.Headers[i] }); err != nil {
			return err
		}
		for i, cell := range cells {
			text := cell.(string)
			if g.hide != nil {
				text = g.hide.Text(text)
			}
			masked = masked || mark.MatchString(text)
			cells[i] = render.Cell(text, len(cells))
		}
		return t.Row(cells)
	})
	if err != nil {
		return err
	}
	if masked {
		g.sayHidden()
	}
	return t.Flush()
}

// redactedMark matches the replacement of a secret, also as escaped in JSON, HTML and JavaScript.
func redactedMark() *regexp.Regexp {
	return regexp.MustCompile(`(?:<|\\u003[cC]|&lt;)?redacted(?: [0-9]+ bytes)?(?:>|\\u003[eE]|&gt;)`)
}

// sayHidden explains how to show redacted values.
func (g *finder) sayHidden() {
	if g.hidden && !g.Quiet {
		fmt.Fprintln(g.Errs, "secret values are redacted; --show-secrets shows them")
	}
}
