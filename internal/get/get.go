// Package get finds objects in a snapshot and prints them, searches them for a text, and exports
// them as manifests for "kubectl apply".
//
// Invariants:
//
//   - Objects are printed while they are read; only templates, raw values and sorted lists wait for
//     all of them.
//   - The key of an unreadable value is printed to Options.Errs, and the run ends with an error.
//     The format "name" reads no values.
//   - Without Options.Secrets no credential is printed, searched or compared.
//   - Export removes only fields that a server or controller sets again, and owner references: with
//     another uid the garbage collector would delete the object.
package get

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/internal/redact"
	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/keys"
)

// Options choose objects and the output format.
type Options struct {
	Out, Errs io.Writer // of data, and of messages

	Namespace, Cluster string // "" for all
	AnyCluster         bool   // no logical cluster of kcp was named
	Selector           objects.Selector
	Where              *objects.Condition // nil for none
	Expression         string             // of Where
	SortBy             string             // a JSONPath; "" for the order of the keys

	Begin func() // Begin is called after the index of the snapshot is read, before the first output.

	// Only for Print.
	Format, Template string              // of -o FORMAT=TEMPLATE
	LabelColumns     []string            // label keys
	Now              time.Time           // reference time of ages; zero for the newest time in the snapshot
	Head             func() (any, error) // the head of a document of several objects

	Quiet, Secrets, Deleted, IgnoreNotFound, ManagedFields bool
	NoHeaders, ShowKind, ShowLabels, Stored, FreePages     bool
}

// Asked is a type and the names of its objects; nil for all.
type Asked struct {
	Type  *inspect.Type
	Names []string
}

// RefusedError is returned for objects that need Options.Secrets, if nothing else failed.
type RefusedError struct{ error }

// finder finds objects, and counts results.
type finder struct {
	Options
	asked   []Asked
	ctx     context.Context
	reader  *inspect.Reader
	layouts keys.Layouts // of reader

	hide          *redact.Shared // redacts the objects; nil if values are shown or not printed
	shown, unread int
	unasked       int    // objects without a result of Where
	absent        string // a field of Where that the first of them lacks; "" for another reason
	kept          int    // objects that were not exported
	unbounded     int    // number of paths that found too much
	leftOut       int    // printer columns missing in tables
	freePages     int    // objects from free pages
	valueless     int    // deleted objects without a value, even in free pages
	met           map[[2]string]bool
}

// newFinder returns a finder of objects in r.
func newFinder(ctx context.Context, r *inspect.Reader, asked []Asked, o Options) (*finder, error) {
	layouts, err := r.Layouts(ctx)
	return &finder{Options: o, asked: asked, ctx: ctx, reader: r, layouts: layouts, met: map[[2]string]bool{}}, err
}

// isTable reports whether the format is a table.
func (o *Options) isTable() bool { return o.Format == "table" || o.Format == "wide" }

// unparsed returns errors about keys in no layout: they cannot be shown.
func (g *finder) unparsed() (errs []error) {
	if len(g.layouts.Storages()) == 0 {
		return []error{errors.New("no storage prefix found; name it with --prefix")}
	}
	for _, a := range g.asked {
		if g.Deleted || len(a.Names) > 0 {
			continue
		}
		n, err := inspect.Unparsed(g.ctx, g.reader, a.Type, g.selection(a))
		if err != nil {
			return append(errs, err)
		}
		if n > 0 {
			dir := g.layouts.Dirs(a.Type.Resource)[0]
			const text = "%s below %s in no layout; \"etcdshift keys\" lists what there is"
			errs = append(errs, fmt.Errorf(text, phrase.Count(n, "key"), dir))
		}
	}
	return errs
}

// verdict returns an error about everything that was not shown.
func (g *finder) verdict() error {
	g.sayFreePages()
	errs := g.unparsed()
	for _, a := range g.asked {
		for _, name := range a.Names {
			if !g.met[[2]string{a.Type.Name(), name}] && !g.IgnoreNotFound {
				errs = append(errs, fmt.Errorf("%s %q not found%s%s",
					a.Type.Name(), name, g.where(a.Type.Namespaced), g.namesakes(a, name)))
			}
		}
	}
	missing := func(n int, what, is string) {
		if n > 0 {
			errs = append(errs, fmt.Errorf("%s %s", phrase.Count(n, what), is))
		}
	}
	missing(g.unread, "value", "could not be read")
	missing(g.unasked, "object", "left out: --where has no result for them")
	missing(g.unbounded, "path", "found too much and shown as <error>")
	missing(g.leftOut, "printer column", "not shown")
	alone := errs == nil
	missing(g.kept, "object", "not exported: it takes --show-secrets")
	switch {
	case g.kept > 0 && alone:
		return &RefusedError{errs[0]}
	case g.absent != "":
		hint := fmt.Sprintf("ask for the field first: --where 'has(%s) && ...'", g.absent)
		return finding.WithHint(errors.Join(errs...), hint)
	case errs == nil && g.shown == 0 && g.valueless == 0 && !g.Quiet && !g.IgnoreNotFound:
		elsewhere, err := g.elsewhere()
		if err != nil {
			return err
		}
		fmt.Fprintf(g.Errs, "nothing found%s\n", elsewhere)
	}
	return errors.Join(errs...)
}

// sayFreePages prints how many objects are from free pages.
func (g *finder) sayFreePages() {
	if g.freePages > 0 && !g.Quiet {
		fmt.Fprintf(g.Errs, "%s found in free pages: a later state of each may be lost\n",
			phrase.Count(g.freePages, "object"))
	}
	if g.valueless > 0 {
		fmt.Fprintf(g.Errs, "%s not shown: free pages hold only the record of the deletion\n",
			phrase.Count(g.valueless, "object"))
	}
}

// namesakes names other namespaces with an object of the type and name; "" for none.
func (g *finder) namesakes(a Asked, name string) string {
	if g.Namespace == "" || g.Deleted {
		return ""
	}
	return Namesakes(g.ctx, []*inspect.Type{a.Type}, name, g.Cluster, g.reader)
}

// Namesakes names the namespaces with an object of one of the types and the name; "" for none.
func Namesakes(ctx context.Context, types []*inspect.Type, name, cluster string, readers ...*inspect.Reader) string {
	var spaces []string
	in := inspect.Selection{Names: []string{name}, Cluster: cluster}
	for _, r := range readers {
		for _, t := range types {
			for o, err := range r.Objects(ctx, t, in) {
				if err != nil {
					break // the run has its error already
				}
				if t.Namespaced {
					spaces = append(spaces, o.Parsed.Namespace)
				}
			}
		}
	}
	return objects.Namesakes(spaces)
}

// where names the searched namespace; "" for all namespaces.
func (g *finder) where(namespaced bool) string {
	if !namespaced || g.Namespace == "" {
		return ""
	}
	return fmt.Sprintf(" in namespace %q", g.Namespace)
}

// elsewhere names the searched namespace, and counts the objects in others. It also reports a
// logical cluster that the file does not contain.
func (g *finder) elsewhere() (string, error) {
	if g.Cluster != "" && !g.Deleted {
		if has, err := g.hasCluster(); err != nil || !has {
			return fmt.Sprintf(": no logical cluster %q in %s; \"etcdshift kcp list\" lists them", g.Cluster,
				render.Printable(g.reader.Snapshot().Path())), err
		}
	}
	others, namespaced := 0, false
	types, err := g.reader.Types(g.ctx) // with their Objects
	if err != nil {
		return "", err
	}
	for _, a := range g.asked {
		if t := types.Of(a.Type.Resource); t != nil {
			others += t.Objects
		}
		namespaced = namespaced || a.Type.Namespaced
	}
	text := g.where(namespaced)
	if text != "" && others > 0 && !g.Deleted {
		text += fmt.Sprintf("; with -A there is a choice of %s", phrase.Count(others, "object"))
	}
	return text, nil
}

func (g *finder) hasCluster() (bool, error) {
	for e, err := range g.reader.Raw(g.ctx, nil) {
		if err != nil {
			return false, err
		}
		if k, err := e.ParseKey(); err == nil && k.Cluster == g.Cluster {
			return true, nil
		}
	}
	return false, nil
}
