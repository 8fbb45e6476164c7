package get

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/columns"
	"github.com/etcdshift/etcdshift/internal/compare"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/stream"
)

func (p *printer) printTables() error {
	tables := 0
	for _, a := range p.asked {
		t := p.newTable(a.Type)
		var classes []*gotten // StorageClasses: only a whole list shows the default
		err := stream.Each(p.objects(a, t.show), func(o *gotten) error {
			if !t.begun {
				if tables++; tables > 1 && !p.NoHeaders {
					if _, err := io.WriteString(p.Out, "\n"); err != nil {
						return err
					}
				}
				t.begun = true
				p.sayLeftOut(t)
			}
			// the only error is the end of the context, which ends the objects too
			own := o.cells[len(t.before):][:len(t.shown.Columns)]
			_ = p.checkCells(o, own, func(i int) string { return t.shown.Columns[i].Name })
			if t.kind.Name() == "storageclasses.storage.k8s.io" {
				classes = append(classes, o)
				return nil
			}
			return t.Row(o.cells)
		})
		if err == nil {
			err = t.rowsOfClasses(classes)
		}
		if err == nil {
			err = t.Flush()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rowsOfClasses prints StorageClasses.
func (t *typeTable) rowsOfClasses(classes []*gotten) error {
	columns.OneDefault(classes, func(o *gotten) *any { return &o.cells[len(t.before)] }, func(o *gotten) time.Time {
		m, err := o.Meta()
		if err != nil {
			return time.Time{}
		}
		return m.CreationTimestamp
	})
	for _, o := range classes {
		if err := t.Row(o.cells); err != nil {
			return err
		}
	}
	return nil
}

func (p *printer) sayLeftOut(t *typeTable) {
	if n := t.shown.LeftOut; n > 0 {
		p.leftOut += n
		fmt.Fprintf(p.Errs, "%s: printer columns not shown: %d of %d; -o json shows all fields\n",
			render.Printable(t.kind.Name()), n, n+len(t.shown.Columns)-1) // Name is in every table
	}
}

// typeTable is the table of one type during printing.
type typeTable struct {
	*render.ObjectTable
	p             *printer
	kind          *inspect.Type
	shown         columns.Table
	before, after []column // the type's own columns are between
	hidden        []bool   // by column: only shown in wide tables
	begun         bool
}

// column is an additional column of a table; priority 1 is for wide tables.
type column struct {
	name     string
	priority int32
	cell     func(*gotten) any
}

func (p *printer) newTable(kind *inspect.Type) *typeTable {
	t := &typeTable{p: p, kind: kind, shown: columns.For(kind)}
	if p.layouts.Flavour().KCP() { // objects lie in logical clusters
		t.before = append(t.before, column{"Cluster", 0, func(o *gotten) any { return o.Parsed.Cluster }})
		t.after = append(t.after, column{"Identity", 1, func(o *gotten) any { return o.Parsed.Identity }})
	}
	if kind.Namespaced && p.Namespace == "" {
		t.before = append(t.before, column{"Namespace", 0, func(o *gotten) any { return o.Parsed.Namespace }})
	}
	if p.Deleted {
		t.after = append(t.after, column{"Deleted-Revision", 0, func(o *gotten) any {
			if o.deletedAt == 0 {
				return unknown
			}
			return o.deletedAt
		}},
			column{"Deleted-About", 0, func(o *gotten) any {
				return p.deletedAbout(o, func(b *compare.Bracket) time.Time { return b.About })
			}},
			column{"Not-Before", 1, func(o *gotten) any {
				return p.deletedAbout(o, func(b *compare.Bracket) time.Time { return b.NotBefore })
			}},
			column{"Not-After", 1, func(o *gotten) any {
				return p.deletedAbout(o, func(b *compare.Bracket) time.Time { return b.NotAfter })
			}})
	}
	if p.FreePages {
		t.after = append(t.after, column{"Found", 0, func(o *gotten) any {
			if o.freePage {
				return "free page"
			}
			return "history"
		}})
	}
	if p.Stored {
		t.after = append(t.after, storedColumns()...)
	}
	for _, key := range p.LabelColumns {
		name := key[strings.LastIndex(key, "/")+1:]
		t.after = append(t.after, column{name, 0, func(o *gotten) any { return labelsOf(o)[key] }})
	}
	if p.ShowLabels {
		t.after = append(t.after, column{"Labels", 0, func(o *gotten) any {
			return labels.FormatLabels(labelsOf(o))
		}})
	}
	define := func(c column) metav1.TableColumnDefinition {
		return metav1.TableColumnDefinition{Name: c.name, Type: "string", Priority: c.priority}
	}
	before, after := stream.Mapped(t.before, define), stream.Mapped(t.after, define)
	all := slices.Concat(before, render.Columns(t.shown.Columns), after)
	t.hidden = stream.Mapped(all, func(c metav1.TableColumnDefinition) bool {
		return c.Priority > 0 && p.Format != "wide"
	})
	t.ObjectTable = render.NewObjectTable(p.Out, all, printers.PrintOptions{
		NoHeaders: p.NoHeaders, Wide: p.Format == "wide", WithKind: len(p.asked) > 1 || p.ShowKind,
		Kind: schema.GroupKind{Group: kind.Resource.Group, Kind: kind.Kind},
	})
	return t
}

// deletedAbout formats a time of the bracket of a deletion.
func (p *printer) deletedAbout(o *gotten, of func(*compare.Bracket) time.Time) any {
	if at := p.clock.At(o.deletedAt); o.deletedAt > 0 && at != nil && !of(at).IsZero() {
		return of(at).Format(time.RFC3339)
	}
	return unknown
}

const unknown = "<unknown>" // a cell

func labelsOf(o *gotten) map[string]string {
	return (&unstructured.Unstructured{Object: o.Content}).GetLabels()
}

// show sets the cells of an object. Only the cells are needed.
func (t *typeTable) show(o *gotten) {
	if o.undecoded() && t.direct(o) {
		return
	}
	t.p.choose(o)
	t.finish(o)
	o.Content = nil
}

// direct sets the cells from the stored value if possible, in a tenth of the time.
func (t *typeTable) direct(o *gotten) bool {
	p := t.p
	if t.shown.StoredRow == nil || p.Where != nil || !p.Selector.Empty() || p.ShowLabels || p.LabelColumns != nil {
		return false
	}
	v, is := o.Protobuf()
	if !is {
		return false
	}
	own, sure := t.shown.StoredRow(v, p.Now)
	if sure {
		o.cells = t.cells(o, own)
	}
	return sure
}

// finish sets the cells of a decoded object.
func (t *typeTable) finish(o *gotten) {
	if o.unfit {
		return
	}
	own := make([]any, len(t.shown.Columns))
	if o.Content != nil {
		if !t.kind.Builtin && t.p.hide != nil { // a column may be one of what must not be shown
			t.p.hide.Object(o.Key, o.Content)
		}
		copy(own, t.shown.Row(o.Content, t.p.Now))
	} else {
		for i, c := range t.shown.Columns {
			if c.Name == "Name" {
				own[i] = o.Parsed.Name
				break
			}
		}
	}
	o.cells = t.cells(o, own)
}

// cells returns the type's own and the additional cells.
func (t *typeTable) cells(o *gotten, own []any) []any {
	of := func(c column) any { return c.cell(o) }
	cells := slices.Concat(stream.Mapped(t.before, of), own, stream.Mapped(t.after, of))
	for i, cell := range cells {
		switch text, isText := cell.(string); {
		case !isText:
		case t.hidden[i]:
			cells[i] = nil
		default:
			cells[i] = t.p.printableCell(text, len(cells))
		}
	}
	return cells
}

// checkCells marks the cells whose path finds too much, and names the first on stderr. Its only
// error is the end of the context.
func (p *printer) checkCells(o *gotten, cells []any, header func(i int) string) error {
	var failed []int
	for i, cell := range cells {
		if _, is := cell.(error); is {
			failed = append(failed, i)
		}
	}
	if failed == nil {
		return p.ctx.Err()
	}
	what := "column " + render.Cell(header(failed[0]), 1)
	if more := len(failed) - 1; more > 0 {
		p.unbounded += more
		what += " and " + phrase.Count(more, "more column")
	}
	mark, err := p.bounded(o, what, cells[failed[0]].(error))
	for _, i := range failed {
		cells[i] = mark
	}
	return err
}

// printableCell returns a cell for a terminal: the first line of a text, as with kubectl.
func (p *printer) printableCell(text string, columns int) string {
	if p.hide != nil {
		text = p.hide.Text(text)
	}
	if end := strings.IndexAny(text, "\f\n\r"); end >= 0 {
		text = text[:end] + "..."
	}
	return render.Cell(text, columns)
}

// storedColumns returns the columns of --stored; they are empty for compacted values.
func storedColumns() []column {
	of := func(name string, cell func(*gotten) any) column {
		return column{name, 0, func(o *gotten) any {
			if o.Stored == nil {
				return nil
			}
			return cell(o)
		}}
	}
	return []column{
		of("Stored-Version", func(o *gotten) any {
			v, err := o.ParseValue()
			if err != nil {
				return "<unknown>"
			}
			return v.GVK.GroupVersion().String()
		}),
		of("Rev", func(o *gotten) any { return o.ModRevision }),
		of("Size", func(o *gotten) any { return len(o.Stored) }),
		of("Encryption", func(o *gotten) any {
			if name, encrypted := encoding.Encryption(o.Stored); encrypted {
				return name
			}
			return "<none>"
		}),
	}
}
