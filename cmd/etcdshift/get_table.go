package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/inspect/redact"
	"github.com/etcdshift/etcdshift/internal/columns"
	"github.com/etcdshift/etcdshift/internal/render"
)

// printTables prints a table for each type.
func (g *getter) printTables() error {
	kcp, err := g.kcp()
	if err != nil {
		return err
	}
	tables := 0
	for _, a := range g.asked {
		t := g.newTable(a.kind, kcp)
		for o, err := range g.objects(g.c.Context, a) {
			if err != nil {
				return err
			}
			if !t.begun {
				if tables++; tables > 1 {
					if _, err := io.WriteString(g.c.App.Writer, "\n"); err != nil {
						return err
					}
				}
				t.begun = true
				g.sayLeftOut(t)
			}
			if err := t.Row(t.cells(o)); err != nil {
				return err
			}
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// sayLeftOut says how many columns a table does not show.
func (g *getter) sayLeftOut(t *typeTable) {
	if n := t.shown.LeftOut; n > 0 {
		g.leftOut += n
		fmt.Fprintf(g.c.App.ErrWriter, "%s: printer columns not shown: %d of %d; -o json shows all fields\n",
			render.Printable(t.kind.Name()), n, n+len(t.shown.Columns)-1) // Name is of every table
	}
}

// kcp tells whether the snapshot is one of kcp's, whose objects lie in logical clusters.
func (g *getter) kcp() (bool, error) {
	layouts, err := g.reader.Layouts(g.c.Context)
	return layouts.Flavour().KCP(), err
}

// typeTable is the table of one type while it is printed.
type typeTable struct {
	*render.ObjectTable
	g     *getter
	kind  *inspect.Type
	shown columns.Table
	lead  []string // the columns before the type's: cluster, namespace
	begun bool
}

func (g *getter) newTable(kind *inspect.Type, kcp bool) *typeTable {
	t := &typeTable{g: g, kind: kind, shown: columns.For(kind)}
	if kcp {
		t.lead = append(t.lead, "Cluster")
	}
	if kind.Namespaced && g.options.namespace == "" {
		t.lead = append(t.lead, "Namespace")
	}
	var all []metav1.TableColumnDefinition
	add := func(priority int32, names ...string) {
		for _, name := range names {
			all = append(all, metav1.TableColumnDefinition{Name: name, Type: "string", Priority: priority})
		}
	}
	add(0, t.lead...)
	all = append(all, render.Columns(t.shown.Columns)...)
	if kcp {
		add(1, "Identity")
	}
	if g.options.deleted {
		add(0, "Deleted-At")
	}
	if g.options.stored {
		add(0, "Stored-Version", "Rev", "Size", "Encryption")
	}
	if g.options.labelled {
		add(0, "Labels")
	}
	t.ObjectTable = render.NewObjectTable(g.c.App.Writer, all, printers.PrintOptions{
		NoHeaders: g.options.noHeaders, Wide: g.options.format == "wide", WithKind: len(g.asked) > 1,
		Kind: schema.GroupKind{Group: kind.Resource.Group, Kind: kind.Kind},
	})
	return t
}

func (t *typeTable) cells(o *gotten) []any {
	var cells []any
	for _, name := range t.lead {
		if name == "Cluster" {
			cells = append(cells, o.Place.Cluster)
		} else {
			cells = append(cells, o.Place.Namespace)
		}
	}
	own := make([]any, len(t.shown.Columns))
	if o.Content != nil {
		content := o.Content
		if !t.kind.Builtin && !t.g.options.secrets { // a column may be one of what must not be shown
			redact.Object(o.Key, content)
		}
		copy(own, t.shown.Row(content, t.g.options.now))
		// the end of the context, its only error, ends the objects too
		_ = t.g.checkCells(o, own, func(i int) string { return t.shown.Columns[i].Name })
	} else if name := slices.IndexFunc(t.shown.Columns, func(c metav1.TableColumnDefinition) bool { return c.Name == "Name" }); name >= 0 {
		own[name] = o.Place.Name
	}
	cells = append(cells, own...)
	if t.g.hasIdentity(t) {
		cells = append(cells, o.Place.Identity)
	}
	if t.g.options.deleted {
		cells = append(cells, o.deletedAt)
	}
	if t.g.options.stored {
		cells = append(cells, storedCells(o)...)
	}
	if t.g.options.labelled {
		cells = append(cells, labels.FormatLabels((&unstructured.Unstructured{Object: o.Content}).GetLabels()))
	}
	for i := range cells {
		cells[i] = t.g.printableCell(cells[i], len(cells))
	}
	return cells
}

// checkCells marks the cells whose path finds too much, and names the first of them on stderr. Its
// only error is the end of the context.
func (g *getter) checkCells(o *gotten, cells []any, header func(i int) string) error {
	var failed []int
	for i, cell := range cells {
		if _, is := cell.(error); is {
			failed = append(failed, i)
		}
	}
	if failed == nil {
		return g.c.Context.Err()
	}
	what := "column " + render.Cell(header(failed[0]), 1)
	if more := len(failed) - 1; more > 0 {
		g.unbounded += more
		what += " and " + render.Plural(more, "more column")
	}
	mark, err := g.bounded(o, what, "", cells[failed[0]].(error))
	for _, i := range failed {
		cells[i] = mark
	}
	return err
}

func (g *getter) hasIdentity(t *typeTable) bool { return slices.Contains(t.lead, "Cluster") }

// printableCell is a cell as a terminal may get it. The first line of a text stands for all, as with kubectl.
func (g *getter) printableCell(cell any, columns int) any {
	text, isText := cell.(string)
	if !isText {
		return cell
	}
	if !g.options.secrets {
		text = redact.Text(text)
	}
	if end := strings.IndexAny(text, "\f\n\r"); end >= 0 {
		text = text[:end] + "..."
	}
	return render.Cell(text, columns)
}

// storedCells are those of --stored: apiVersion as stored, revision, bytes as stored, and provider and key.
func storedCells(o *gotten) []any {
	if o.Stored == nil { // deleted, and compacted away
		return []any{nil, nil, nil, nil}
	}
	version := "<unknown>"
	if v, err := encoding.Parse(o.Value); err == nil && o.Sealed == nil {
		version, _ = v.GVK.ToAPIVersionAndKind()
	}
	name, encrypted := encoding.Encryption(o.Stored)
	if !encrypted {
		name = "<none>"
	}
	return []any{version, o.ModRevision, len(o.Stored), name}
}
