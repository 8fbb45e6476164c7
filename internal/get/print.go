package get

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/compare"
	"github.com/etcdshift/etcdshift/internal/jsonpath"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/transform"
)

// Print prints the objects of r that are asked for.
func Print(ctx context.Context, r *inspect.Reader, asked []Asked, o Options) error {
	g, err := newFinder(ctx, r, asked, o)
	if err != nil {
		return err
	}
	if g.Now.IsZero() && g.isTable() {
		if g.Now, err = inspect.NewestTime(ctx, r); err != nil {
			return err
		}
	}
	p := &printer{finder: g}
	if g.Deleted && (g.isTable() || g.Format == "json" || g.Format == "yaml") {
		if err := p.clock.Read(ctx, r); err != nil {
			return err
		}
	}
	g.Begin()
	if err := g.learn(); err != nil {
		return err
	}
	if err := p.print(); err != nil {
		return err
	}
	return g.verdict()
}

// printer prints the objects of a finder.
type printer struct {
	*finder
	clock  compare.Clock // of the deletions
	hidden bool          // something in a printed object was redacted
	spare  sync.Pool     // of *[]byte, for texts
}

// single reports whether one object is asked for: a name stands for one object in one namespace
// and logical cluster.
func (p *printer) single() bool {
	return len(p.asked) == 1 && len(p.asked[0].Names) == 1 && (p.Namespace != "" || !p.asked[0].Type.Namespaced) &&
		(!p.AnyCluster || !p.layouts.Flavour().KCP())
}

func (p *printer) print() error {
	switch p.Format {
	case "name":
		return p.printNames()
	case "json", "yaml":
		return p.printDocument()
	case "raw":
		return p.printRaw()
	case "jsonpath", "jsonpath-as-json", "go-template":
		return p.printTemplate()
	case "custom-columns":
		return p.printCustomColumns()
	}
	return p.printTables()
}

// contents runs fn on every readable object, redacted, and without managedFields unless
// --show-managed-fields was given. Before, work runs on all processors; nil for none.
func (p *printer) contents(work func(o *gotten), fn func(o *gotten) error) error {
	return p.readable(func(o *gotten) {
		if p.prepare(o) && work != nil {
			work(o)
		}
	}, fn)
}

// prepare decodes and redacts an object, and reports whether it is readable and selected.
func (p *printer) prepare(o *gotten) bool {
	chosen := p.choose(o)
	if chosen {
		p.redact(o, p.ManagedFields)
	}
	return chosen
}

// readable runs fn on every readable object after work.
func (p *printer) readable(work func(o *gotten), fn func(o *gotten) error) error {
	return p.each(work, func(_ Asked, o *gotten) error {
		if o.Err != nil {
			return nil
		}
		p.hidden = p.hidden || o.hidden
		return fn(o)
	})
}

// printNames prints the names in the keys. Values are only read if they select objects.
func (p *printer) printNames() error {
	work := func(o *gotten) {
		if p.Where != nil || !p.Selector.Empty() {
			p.choose(o)
		}
	}
	return p.each(work, func(_ Asked, o *gotten) error {
		if o.Err != nil {
			return nil
		}
		kind := strings.ToLower(o.Type.Kind)
		if o.Type.Resource.Group != "" {
			kind += "." + o.Type.Resource.Group
		}
		_, err := fmt.Fprintln(p.Out, render.Printable(kind+"/"+o.Parsed.Name))
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
	Revision int64            `json:"revision"`           // 0 if unknown, only with --free-pages
	Time     *compare.Bracket `json:"time,omitempty"`     // approximate time; absent if unknown
	FreePage bool             `json:"freePage,omitempty"` // the state is from a free page, and perhaps not the last
}

// printDocument prints one object, or a v1 List of several with the field "etcdshift".
func (p *printer) printDocument() error {
	if p.single() {
		return p.contents(nil, func(o *gotten) error { return render.Object(p.Out, p.Format, o.Content) })
	}
	head, err := p.Head()
	if err != nil {
		return err
	}
	list := render.NewObjects(p.Out, p.Format)
	if err := list.Begin(head, "items"); err != nil {
		return err
	}
	end := ListEnd{Kind: "List"}
	encode := func(o *gotten) {
		if !p.write(o) && p.prepare(o) {
			o.text, o.err = list.Encode(o.Content)
			o.Content = nil
		}
	}
	err = p.readable(encode, func(o *gotten) error {
		if p.Deleted {
			at := deletedAt{Revision: o.deletedAt, FreePage: o.freePage}
			if at.Revision > 0 {
				at.Time = p.clock.At(at.Revision)
			}
			end.Deletions = append(end.Deletions, at)
		}
		text := o.text
		err := list.AddEncoded(text, o.err)
		p.spare.Put(&text)
		return err
	})
	if err != nil {
		return err
	}
	return list.End(end)
}

// write writes the JSON of an undecoded object, in a tenth of the time of prepare and Encode. It
// returns false if the output needs more: a choice by content, other formats, redacted secrets.
func (p *printer) write(o *gotten) bool {
	if p.Format != "json" || p.ManagedFields || p.Where != nil || !p.Selector.Empty() || !o.undecoded() {
		return false
	}
	const usual = 16 << 10 // bytes
	spare, _ := p.spare.Get().(*[]byte)
	if spare == nil {
		spare = new(make([]byte, 0, usual))
	}
	c := render.NewItem((*spare)[:0])
	sure := true
	if p.hide == nil {
		sure = o.Visit(c)
	} else {
		glance := p.hide.Glance(o.Key, c)
		sure = o.Visit(glance) && glance.Sure()
	}
	var written bool
	if o.text, written = c.Bytes(); sure && written {
		return true
	}
	*spare, o.text = o.text, nil
	p.spare.Put(spare)
	return false
}

// printTemplate runs a JSONPath or Go template over the object, or the List, in memory.
func (p *printer) printTemplate() error {
	run, err := render.NewTemplate(p.Format, p.Template)
	if err != nil {
		return transform.Usagef("--output: %v", err)
	}
	items := []any{}
	quote := func(o *gotten) {
		if p.Format != "jsonpath-as-json" {
			o.Content, _ = render.QuoteNames(o.Content).(map[string]any)
		}
	}
	err = p.contents(quote, func(o *gotten) error {
		items = append(items, o.Content)
		return nil
	})
	if err != nil || p.single() && len(items) == 0 {
		return err
	}
	content := map[string]any{
		"apiVersion": "v1", "kind": "List", "items": items, "metadata": map[string]any{"resourceVersion": ""}}
	if p.single() {
		content = items[0].(map[string]any)
	}
	var out bytes.Buffer
	err = run(p.ctx, &out, content)
	if redactedMark().Match(out.Bytes()) || errors.As(err, new(base64.CorruptInputError)) {
		p.sayHidden()
	}
	if _, writeErr := p.Out.Write(out.Bytes()); err == nil {
		return writeErr
	}
	if ctxErr := p.ctx.Err(); ctxErr != nil {
		return ctxErr
	}
	if errors.Is(err, jsonpath.ErrTooMuch) || errors.Is(err, render.ErrEndless) {
		return fmt.Errorf("--output: %w", err)
	}
	return transform.Usagef("--output: %v", err)
}

// printRaw prints the decrypted value of one object unchanged.
func (p *printer) printRaw() error {
	var values [][]byte
	err := p.each(func(o *gotten) { p.choose(o) }, func(_ Asked, o *gotten) error {
		switch {
		case o.Undecryptable != nil || o.Value == nil:
			return nil
		case p.hide != nil && p.hide.Value(o.Key, o.Value):
			return &RefusedError{fmt.Errorf("%s: its secrets need --show-secrets", render.Printable(string(o.Key)))}
		}
		if values = append(values, o.Value); len(values) > 1 {
			return transform.Usagef("-o raw prints one object; name it")
		}
		return nil
	})
	if err == nil && values != nil {
		_, err = p.Out.Write(values[0])
	}
	return err
}

func (p *printer) printCustomColumns() error {
	columns, err := render.ParseCustomColumns(p.Template)
	if err != nil {
		return transform.Usagef("--output: %v", err)
	}
	t := render.NewCustomTable(p.Out)
	if !p.NoHeaders {
		cell := func(header string) any { return render.Cell(header, len(columns.Headers)) }
		if err := t.Row(stream.Mapped(columns.Headers, cell)); err != nil {
			return err
		}
	}
	masked, mark := false, redactedMark()
	find := func(o *gotten) {
		o.cells = columns.Cells(p.ctx, o.Content)
		o.Content = nil
		for i, cell := range o.cells {
			if text, isText := cell.(string); isText && p.hide != nil {
				o.cells[i] = p.hide.Text(text)
			}
		}
	}
	err = p.contents(find, func(o *gotten) error {
		if err := p.checkCells(o, o.cells, func(i int) string { return columns.Headers[i] }); err != nil {
			return err
		}
		for i, cell := range o.cells {
			text := cell.(string)
			masked = masked || mark.MatchString(text)
			o.cells[i] = render.Cell(text, len(o.cells))
		}
		return t.Row(o.cells)
	})
	if err != nil {
		return err
	}
	if masked {
		p.sayHidden()
	}
	return t.Flush()
}

// redactedMark matches the replacement of a secret, also as escaped in JSON, HTML and JavaScript.
func redactedMark() *regexp.Regexp {
	return regexp.MustCompile(`(?:<|\\u003[cC]|&lt;)?redacted(?: [0-9]+ bytes)?(?:>|\\u003[eE]|&gt;)`)
}

// sayHidden explains how to show redacted values.
func (p *printer) sayHidden() {
	if p.hidden && !p.Quiet {
		fmt.Fprintln(p.Errs, "secret values are redacted; --show-secrets shows them")
	}
}
