package get

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/jsonpath"
	"github.com/etcdshift/etcdshift/internal/redact"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/transform"
)

// gotten is an object to show.
type gotten struct {
	*inspect.Object
	deletedAt int64            // revision of its deletion; 0 if unknown
	freePage  bool             // its value is from a free page, or has been lost
	unfit     bool             // not selected
	unasked   *finding.Finding // why --where has no result; nil otherwise
	cells     []any            // of a table
	text      []byte           // of a document
	dying     bool             // of a manifest: the object was in deletion
	large     bool             // of a manifest: too large for a client-side apply
	hidden    bool             // something was redacted
	err       error            // of the text
}

// learn reads the secrets to hide. In tables of built-in types, only Events have texts.
func (g *finder) learn() (err error) {
	texts := func(a Asked) bool { return !a.Type.Builtin || a.Type.Kind == "Event" }
	more := g.asksValues() || g.ShowLabels || g.LabelColumns != nil
	switch {
	case g.Secrets, g.Format == "name" && !g.asksValues():
	case g.Format == "table" && !more && !slices.ContainsFunc(g.asked, texts):
		g.hide = redact.NewShared()
	default:
		g.hide, err = g.reader.Secrets(g.ctx)
	}
	return err
}

// asksValues reports whether values of fields choose objects.
func (g *finder) asksValues() bool {
	return g.Where != nil || !g.Selector.Fields.Empty()
}

// objects yields the chosen objects of one type after work, which runs on all processors. Without
// work an object is not decoded. An unreadable object has its Err.
func (g *finder) objects(a Asked, work func(o *gotten)) iter.Seq2[*gotten, error] {
	return g.chosen(a, g.ahead(g.sorted(a), work))
}

func (g *finder) ahead(all iter.Seq2[*gotten, error], work func(o *gotten)) iter.Seq2[*gotten, error] {
	item := func(o *gotten) (gotten, int) { return *o, len(o.Value) }
	return stream.Ahead(g.reader.Snapshot().Guard, all, item, func(o *gotten) {
		if g.ctx.Err() == nil { // chosen asks the context too
			work(o)
		}
	})
}

// each calls fn with the chosen objects of all types that are asked for, after work.
func (g *finder) each(work func(o *gotten), fn func(a Asked, o *gotten) error) error {
	for _, a := range g.asked {
		if err := stream.Each(g.objects(a, work), func(o *gotten) error { return fn(a, o) }); err != nil {
			return err
		}
	}
	return nil
}

// choose decodes an object, and reports whether the object is readable and selected.
func (g *finder) choose(o *gotten) bool {
	g.decode(o)
	o.unfit = !g.fits(o)
	return o.Err == nil && !o.unfit
}

// decode decodes an object, without managedFields if neither the output nor a choice can need them.
func (g *finder) decode(o *gotten) {
	if !o.undecoded() {
		return
	}
	read := inspect.NewUnmanaged
	if g.ManagedFields || g.asksValues() || g.SortBy != "" {
		read = inspect.NewObject
	}
	o.Object = read(o.Type, o.Entry)
	o.AsServed()
}

func (o *gotten) undecoded() bool { return o.Content == nil && o.Err == nil }

// redact redacts a decoded object. Unwanted managedFields, which have only names, are removed
// before: less is searched.
func (g *finder) redact(o *gotten, managedFields bool) {
	if !managedFields {
		unstructured.RemoveNestedField(o.Content, "metadata", "managedFields")
	}
	o.hidden = g.hide != nil && g.hide.Object(o.Key, o.Content)
}

// chosen removes unselected objects, and counts and reports the others.
func (g *finder) chosen(a Asked, all iter.Seq2[*gotten, error]) iter.Seq2[*gotten, error] {
	return stream.Of(func(yield func(*gotten) error) error {
		return stream.Each(all, func(o *gotten) error {
			if o.unasked != nil {
				g.unasked++
				if g.absent == "" {
					g.absent = absentField(g.Expression, o.unasked.Reason)
				}
				fmt.Fprintf(g.Errs, "%s: --where: %s\n",
					render.Printable(string(o.Key)), render.Printable(o.unasked.Reason))
			}
			if err := g.ctx.Err(); err != nil || o.unfit {
				return err
			}
			if o.freePage && errors.Is(o.Err, inspect.ErrCompactedAway) {
				g.valueless++
				return nil
			}
			if o.freePage {
				g.freePages++
			}
			g.met[[2]string{a.Type.Name(), o.Parsed.Name}] = true
			err := o.Err
			if err == nil {
				g.shown++
				err = g.checkServed(o)
			}
			if err != nil {
				g.sayUnread(o, err)
			}
			return yield(o)
		})
	})
}

// checkServed returns an error for an object that is shown, although no API server decodes it.
func (g *finder) checkServed(o *gotten) error {
	switch g.Format {
	case "", "name", "raw": // not decoded here
		return nil
	}
	return o.CheckServed()
}

// sayUnread prints the file, the key and the reason of an unreadable value.
func (g *finder) sayUnread(o *gotten, err error) {
	g.unread++
	path := render.Printable(g.reader.Snapshot().Path())
	fmt.Fprintf(g.Errs, "%s: %s: %s\n", path, render.Printable(string(o.Key)), render.Printable(err.Error()))
}

// selection returns the namespace, the logical cluster and the names of the objects of a type.
func (g *finder) selection(a Asked) inspect.Selection {
	in := inspect.Selection{Names: a.Names, Cluster: g.Cluster}
	if a.Type.Namespaced {
		in.Namespace = g.Namespace
	}
	return in
}

// selected yields the chosen objects of a type, in the order of their keys. Only deleted objects
// are decoded.
func (g *finder) selected(a Asked) iter.Seq2[*gotten, error] {
	ctx, in := g.ctx, g.selection(a)
	if g.Deleted {
		return stream.Map(g.reader.DeletedObjects(ctx, a.Type, in), func(d *inspect.DeletedObject) *gotten {
			return &gotten{Object: d.Object, deletedAt: d.Revision, freePage: d.FreePage}
		})
	}
	return stream.Map(g.reader.Entries(ctx, a.Type, in), func(e *inspect.Entry) *gotten {
		return &gotten{Object: inspect.Undecoded(a.Type, e)}
	})
}

// absentField returns the path in the expression where of the field that reason names as missing.
func absentField(where, reason string) string {
	_, field, found := strings.Cut(reason, "no such key: ")
	if !found {
		return ""
	}
	return regexp.MustCompile(`\bobject(\.\w+)*\.` + regexp.QuoteMeta(field) + `\b`).FindString(where)
}

// fits reports whether the selectors and --where choose an object. Unreadable objects are always
// chosen, and objects without a result of --where never: see chosen. Both are evaluated on redacted
// values, because the choice would reveal secrets. Concurrent calls are allowed.
func (g *finder) fits(o *gotten) bool {
	if o.Content == nil {
		return true
	}
	of := *o.Object
	if g.hide != nil && g.asksValues() {
		of.Content = runtime.DeepCopyJSON(of.Content)
		g.hide.Object(o.Key, of.Content)
	}
	if is := g.Selector.Fits(of.Content); !is || g.Where == nil {
		return is
	}
	chosen, cannot := g.Where.Chooses(g.ctx, &of)
	o.unasked = cannot
	return chosen
}

// sortBy returns the path of --sort-by, "" for the order of the keys.
func (g *finder) sortBy(kind *inspect.Type) string {
	by := g.SortBy
	if by == "" && kind.Kind == "FlowSchema" && g.isTable() {
		by = ".spec.matchingPrecedence" // a server sorts table rows by it, but not lists of objects
	}
	return by
}

// sorted is selected in the order of --sort-by. It keeps the sort values, not the objects.
func (g *finder) sorted(a Asked) iter.Seq2[*gotten, error] {
	by := g.sortBy(a.Type)
	if by == "" {
		return g.selected(a)
	}
	return stream.Of(func(yield func(*gotten) error) error {
		path, err := jsonpath.ParseRelaxed(by)
		if err != nil {
			return transform.Usagef("--sort-by: %v", err)
		}
		type ranked struct {
			value any
			o     *gotten
		}
		var all []ranked
		for item, err := range g.ahead(g.selected(a), g.decode) {
			if err != nil {
				return err
			}
			o := &gotten{Object: item.Object, deletedAt: item.deletedAt, freePage: item.freePage}
			value, _, err := path.First(jsonpath.NewWork(g.ctx, o.Content), o.Content)
			if _, err = g.bounded(o, "--sort-by", err); err != nil {
				return err
			}
			if !g.Deleted { // decoded again for printing
				o.Object = inspect.Undecoded(o.Type, o.Entry)
			}
			all = append(all, ranked{value, o})
		}
		slices.SortStableFunc(all, func(a, b ranked) int { return compareValues(a.value, b.value) })
		for _, r := range all {
			if err := yield(r.o); err != nil {
				return err
			}
		}
		return nil
	})
}

// bounded returns a mark if a path found too much, with a line on stderr. Other errors of the path
// count as nothing found. The returned error is the error of the context.
func (g *finder) bounded(o *gotten, what string, err error) (string, error) {
	if ctxErr := g.ctx.Err(); ctxErr != nil || !errors.Is(err, jsonpath.ErrTooMuch) {
		return "", ctxErr
	}
	g.unbounded++
	fmt.Fprintf(g.Errs, "%s: %s: %v\n", render.Printable(string(o.Key)), what, err)
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
