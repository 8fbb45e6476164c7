package cli

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/compare"
	"github.com/etcdshift/etcdshift/internal/jsonpath"
	"github.com/etcdshift/etcdshift/internal/redact"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
)

// getter finds objects and prints them.
type getter struct {
	c       *cli.Context
	opened  *opened
	reader  *inspect.Reader
	layouts keys.Layouts // of reader
	options getOptions
	asked   []asking
	single  bool // one object is asked for by name

	hide          *redact.Shared // what redacts the objects; nil where their values are not hidden, or not printed
	shown, unread int
	unasked       int           // objects without a result of --where
	absent        string        // a field of --where that the first of them lacks; "" for another reason
	hidden        bool          // something in a printed object was redacted
	kept          int           // objects that were not exported
	large         int           // exported objects that only a server-side apply takes
	unbounded     int           // paths that found too much in an object
	leftOut       int           // printer columns that tables do not show
	clock         compare.Clock // of the deletions in tables
	met           map[[2]string]bool
}

// gotten is an object to show.
type gotten struct {
	*inspect.Object
	deletedAt int64            // revision, where it is deleted
	unfit     bool             // the selectors do not choose it
	unasked   *finding.Finding // why --where has no result for it; nil for none
	cells     []any            // of a table
}

// learn reads what must be hidden. Tables of built-in types have no texts but those of Events.
func (g *getter) learn() (err error) {
	texts := func(a asking) bool { return !a.kind.Builtin || a.kind.Kind == "Event" }
	more := g.asksValues() || g.options.showLabels || g.options.labelColumns != nil
	switch {
	case g.options.secrets, g.options.format == "name" && !g.asksValues():
	case g.options.format == "table" && !more && !slices.ContainsFunc(g.asked, texts):
		g.hide = redact.NewShared()
	default:
		g.hide, err = g.reader.Secrets(g.c.Context)
	}
	return err
}

// asksValues reports whether values of fields choose objects.
func (g *getter) asksValues() bool {
	return g.options.where != nil || !g.options.selector.Fields.Empty()
}

// objects yields the chosen objects of one type. An unreadable one has its Err.
func (g *getter) objects(a asking) iter.Seq2[*gotten, error] {
	return g.chosen(a, converted(g.sorted(a), func(o *gotten) *gotten {
		o.unfit = !g.fits(o)
		return o
	}))
}

// chosen leaves out what the selectors do not choose, and counts and reports the rest.
func (g *getter) chosen(a asking, all iter.Seq2[*gotten, error]) iter.Seq2[*gotten, error] {
	return stream.Of(func(yield func(*gotten) error) error {
		return stream.Each(all, func(o *gotten) error {
			if o.unasked != nil {
				g.unasked++
				if g.absent == "" {
					g.absent = absentField(g.options.expression, o.unasked.Reason)
				}
				fmt.Fprintf(g.c.App.ErrWriter, "%s: --where: %s\n", render.Printable(string(o.Key)), render.Printable(o.unasked.Reason))
			}
			if err := g.c.Context.Err(); err != nil || o.unfit {
				return err
			}
			g.met[[2]string{a.kind.Name(), o.Parsed.Name}] = true
			if o.Err != nil {
				g.sayUnread(o, o.Err)
			} else {
				g.shown++
			}
			return yield(o)
		})
	})
}

// sayUnread prints the file, the key and the reason of an unreadable value.
func (g *getter) sayUnread(o *gotten, err error) {
	g.unread++
	fmt.Fprintf(g.c.App.ErrWriter, "%s: %s: %s\n", render.Printable(g.opened.Snapshot().Path()), render.Printable(string(o.Key)), render.Printable(err.Error()))
}

// selection is the namespace, the logical cluster and the names of the objects of a type.
func (g *getter) selection(a asking) inspect.Selection {
	in := inspect.Selection{Names: a.names, Cluster: g.options.cluster}
	if a.kind.Namespaced {
		in.Namespace = g.options.namespace
	}
	return in
}

// selected yields the chosen objects of a type, in the order of their keys.
func (g *getter) selected(a asking) iter.Seq2[*gotten, error] {
	ctx, in := g.c.Context, g.selection(a)
	if g.options.deleted {
		return converted(g.reader.DeletedObjects(ctx, a.kind, in), func(d *inspect.DeletedObject) *gotten {
			return &gotten{Object: d.Object, deletedAt: d.Revision}
		})
	}
	return converted(g.reader.Objects(ctx, a.kind, in), func(o *inspect.Object) *gotten {
		o.AsServed()
		return &gotten{Object: o}
	})
}

// absentField is the path in an expression of the field that the reason why it has no result names.
func absentField(where, reason string) string {
	_, field, found := strings.Cut(reason, "no such key: ")
	if !found {
		return ""
	}
	return regexp.MustCompile(`\bobject(\.\w+)*\.` + regexp.QuoteMeta(field) + `\b`).FindString(where)
}

// fits reports whether the selectors and --where choose an object. They choose every unreadable
// one. An object without a result of --where is left out: see chosen. Both see redacted values, or
// the choice would tell them. It may run beside others.
func (g *getter) fits(o *gotten) bool {
	if o.Content == nil {
		return true
	}
	of := *o.Object
	if g.hide != nil && g.asksValues() {
		of.Content = runtime.DeepCopyJSON(of.Content)
		g.hide.Object(o.Key, of.Content)
	}
	if is := g.options.selector.Fits(of.Content); !is || g.options.where == nil {
		return is
	}
	chosen, cannot := g.options.where.Chooses(g.c.Context, &of)
	o.unasked = cannot
	return chosen
}

// sortBy is the path of --sort-by, "" for the order of the keys.
func (g *getter) sortBy(kind *inspect.Type) string {
	by := g.options.sortBy
	if by == "" && kind.Kind == "FlowSchema" && g.options.isTable() {
		by = ".spec.matchingPrecedence" // a server sorts the rows of its tables by it, and no lists of objects
	}
	return by
}

// sorted is selected in the order of --sort-by. It keeps the values to sort by, not the objects.
func (g *getter) sorted(a asking) iter.Seq2[*gotten, error] {
	by := g.sortBy(a.kind)
	if by == "" {
		return g.selected(a)
	}
	return stream.Of(func(yield func(*gotten) error) error {
		path, err := jsonpath.ParseRelaxed(by)
		if err != nil {
			return usagef(commandPath(g.c), "--sort-by: %w", err)
		}
		type ranked struct {
			value any
			o     *gotten
		}
		var all []ranked
		for o, err := range g.selected(a) {
			if err != nil {
				return err
			}
			value, _, err := path.First(jsonpath.NewWork(g.c.Context, o.Content), o.Content)
			if _, err = g.bounded(o, "--sort-by", err); err != nil {
				return err
			}
			if !g.options.deleted { // it is decoded again when it is printed
				o.Content = nil
			}
			all = append(all, ranked{value, o})
		}
		slices.SortStableFunc(all, func(a, b ranked) int { return compareValues(a.value, b.value) })
		for _, r := range all {
			o := r.o
			if o.Content == nil && o.Err == nil {
				o = &gotten{Object: inspect.NewObject(o.Type, o.Entry)}
				o.AsServed()
			}
			if err := yield(o); err != nil {
				return err
			}
		}
		return nil
	})
}

// bounded returns a mark if a path found too much, with a line on stderr. Other errors of the path
// count as nothing found. The returned error is that of the context.
func (g *getter) bounded(o *gotten, what string, err error) (string, error) {
	if ctxErr := g.c.Context.Err(); ctxErr != nil || !errors.Is(err, jsonpath.ErrTooMuch) {
		return "", ctxErr
	}
	g.unbounded++
	fmt.Fprintf(g.c.App.ErrWriter, "%s: %s: %v\n", render.Printable(string(o.Key)), what, err)
	return "<error>", nil
}

// compareValues orders numbers, quantities and text by their kind. Missing values come first.
func compareValues(a, b any) int {
	if a == nil || b == nil {
		return cmp.Compare(reflect.ValueOf(a).Kind(), reflect.ValueOf(b).Kind())
	}
	number := func(v any) (float64, bool) {
		switch n := v.(type) {
		case int64:
			return float64(n), true
		case float64:
			return n, true
		}
		return 0, false
	}
	if x, ok := number(a); ok {
		if y, ok := number(b); ok {
			return cmp.Compare(x, y)
		}
	}
	x, y := fmt.Sprint(a), fmt.Sprint(b)
	if p, err := resource.ParseQuantity(x); err == nil {
		if q, err := resource.ParseQuantity(y); err == nil {
			return p.Cmp(q)
		}
	}
	return strings.Compare(x, y)
}
