package cli

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

func (g *getter) printer() func() error {
	switch g.options.format {
	case "name":
		return g.printNames
	case "json", "yaml":
		return g.printDocument
	case "raw":
		return g.printRaw
	case "jsonpath", "jsonpath-as-json", "go-template":
		return g.printTemplate
	case "custom-columns":
		return g.printCustomColumns
	}
	return g.printTables
}

func (g *getter) each(fn func(a asking, o *gotten) error) error {
	for _, a := range g.asked {
		if err := stream.Each(g.objects(a), func(o *gotten) error { return fn(a, o) }); err != nil {
			return err
		}
	}
	return nil
}

// contents runs fn on every object that can be read, redacted, and without managedFields unless
// --show-managed-fields was given.
func (g *getter) contents(fn func(o *gotten, content map[string]any) error) error {
	return g.each(func(_ asking, o *gotten) error {
		if o.Err != nil {
			return nil
		}
		if g.hide != nil {
			g.hidden = g.hide.Object(o.Key, o.Content) || g.hidden
		}
		if !g.options.managedFields {
			unstructured.RemoveNestedField(o.Content, "metadata", "managedFields")
		}
		return fn(o, o.Content)
	})
}

func (g *getter) printNames() error {
	return g.each(func(_ asking, o *gotten) error {
		if o.Err != nil {
			return nil
		}
		kind := strings.ToLower(o.Type.Kind)
		if o.Type.Resource.Group != "" {
			kind += "." + o.Type.Resource.Group
		}
		_, err := fmt.Fprintln(g.c.App.Writer, render.Printable(kind+"/"+o.Parsed.Name))
		return err
	})
}

// objectList is the head of a List of objects; "etcdshift" names the input, as in all JSON answers.
type objectList struct {
	APIVersion string `json:"apiVersion"`
	Etcdshift  struct {
		APIVersion string         `json:"apiVersion"`
		Input      inputInfo      `json:"input"`
		Tool       transform.Tool `json:"tool"`
		At         *stateAt       `json:"at,omitempty"` // the state that --at asked for
	} `json:"etcdshift"`
}

// objectListEnd is the tail of the List.
type objectListEnd struct {
	Kind     string `json:"kind"`
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Deletions []deletedAt `json:"deletions,omitempty"` // of the items, in their order, with --deleted
}

// deletedAt tells when an object was deleted.
type deletedAt struct {
	Revision int64            `json:"revision"`
	Time     *compare.Bracket `json:"time,omitempty"` // about when; absent where nothing is known
}

// printDocument prints one object, or a v1 List of several with the field "etcdshift".
func (g *getter) printDocument() error {
	if g.single {
		return g.contents(func(_ *gotten, content map[string]any) error {
			return render.Object(g.c.App.Writer, g.options.format, content)
		})
	}
	in, err := g.opened.input(g.c.Context)
	if err != nil {
		return err
	}
	head := objectList{APIVersion: "v1"}
	head.Etcdshift.APIVersion, head.Etcdshift.Input, head.Etcdshift.Tool, head.Etcdshift.At = apiVersion, in, tool(), g.opened.at
	list := render.NewObjects(g.c.App.Writer, g.options.format)
	if err := list.Begin(head, "items"); err != nil {
		return err
	}
	end := objectListEnd{Kind: "List"}
	err = g.contents(func(o *gotten, content map[string]any) error {
		if g.options.deleted {
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
func (g *getter) printTemplate() error {
	run, err := render.NewTemplate(g.options.format, g.options.template)
	if err != nil {
		return usagef(commandPath(g.c), "--output: %w", err)
	}
	items := []any{}
	err = g.contents(func(_ *gotten, content map[string]any) error {
		if g.options.format != "jsonpath-as-json" {
			content, _ = render.QuoteNames(content).(map[string]any)
		}
		items = append(items, content)
		return nil
	})
	if err != nil || g.single && len(items) == 0 {
		return err
	}
	content := map[string]any{"apiVersion": "v1", "kind": "List", "items": items, "metadata": map[string]any{"resourceVersion": ""}}
	if g.single {
		content = items[0].(map[string]any)
	}
	var out bytes.Buffer
	err = run(g.c.Context, &out, content)
	if redactedMark().Match(out.Bytes()) || errors.As(err, new(base64.CorruptInputError)) {
		g.sayHidden()
	}
	if _, writeErr := g.c.App.Writer.Write(out.Bytes()); err == nil {
		return writeErr
	}
	if ctxErr := g.c.Context.Err(); ctxErr != nil {
		return ctxErr
	}
	if errors.Is(err, jsonpath.ErrTooMuch) || errors.Is(err, render.ErrEndless) {
		return fmt.Errorf("--output: %w", err)
	}
	return usagef(commandPath(g.c), "--output: %w", err)
}

// printRaw prints the decrypted value of one object, byte for byte.
func (g *getter) printRaw() error {
	var values [][]byte
	err := g.each(func(_ asking, o *gotten) error {
		switch {
		case o.Undecryptable != nil || o.Value == nil:
			return nil
		case g.hide != nil && g.hide.Value(o.Key, o.Value):
			return &failure{status: exitRefused, err: fmt.Errorf("%s: its secrets need --show-secrets", render.Printable(string(o.Key)))}
		}
		if values = append(values, o.Value); len(values) > 1 {
			return usagef(commandPath(g.c), "-o raw prints one object; name it")
		}
		return nil
	})
	if err == nil && values != nil {
		_, err = g.c.App.Writer.Write(values[0])
	}
	return err
}

func (g *getter) printCustomColumns() error {
	columns, err := render.ParseCustomColumns(g.options.template)
	if err != nil {
		return usagef(commandPath(g.c), "--output: %w", err)
	}
	t := render.NewCustomTable(g.c.App.Writer)
	if !g.options.noHeaders {
		cell := func(header string) any { return render.Cell(header, len(columns.Headers)) }
		if err := t.Row(mapped(columns.Headers, cell)); err != nil {
			return err
		}
	}
	masked, mark := false, redactedMark()
	err = g.contents(func(o *gotten, content map[string]any) error {
		cells := columns.Cells(g.c.Context, content)
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

// redactedMark matches the text that stands for a secret, also as JSON, HTML and JavaScript escape
// it.
func redactedMark() *regexp.Regexp {
	return regexp.MustCompile(`(?:<|\\u003[cC]|&lt;)?redacted(?: [0-9]+ bytes)?(?:>|\\u003[eE]|&gt;)`)
}

// sayHidden says how to see what a template or a column printed as redacted, or did not decode.
func (g *getter) sayHidden() {
	if g.hidden && !g.options.quiet {
		fmt.Fprintln(g.c.App.ErrWriter, "secret values are redacted; --show-secrets shows them")
	}
}
