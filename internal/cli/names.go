package cli

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
)

// asked is one TYPE, TYPE/NAME or TYPE NAME... of a command line.
type asked struct {
	kinds []*inspect.Type   // that TYPE names, each resource once
	in    inspect.Selection // by --namespace, --cluster and NAME
}

// parseName reads TYPE or TYPE/NAME, with types that any of the snapshots has. A TYPE that names no
// type, or several, is a usage error.
func parseName(c *cli.Context, word string, find finder, readers ...*inspect.Reader) (a asked, err error) {
	named, err := objects.ParseWords([]string{word})
	if err != nil {
		return a, usagef(commandPath(c), "%w", err)
	}
	a.in = selectionOf(c)
	a.in.Names = named[0].Names
	a.kinds, err = resolve(c.Context, named[0].Type, find, readers)
	return a, err
}

// selectionOf is the namespace and the logical cluster to look in.
func selectionOf(c *cli.Context) inspect.Selection {
	in := inspect.Selection{Namespace: c.String("namespace"), Cluster: c.String("cluster")}
	if c.Bool("all-namespaces") {
		in.Namespace = ""
	}
	return in
}

// namesakes names the namespaces with an object of one of the types and the name; "" for none.
func namesakes(c *cli.Context, kinds []*inspect.Type, name string, readers ...*inspect.Reader) string {
	var spaces []string
	in := inspect.Selection{Names: []string{name}, Cluster: c.String("cluster")}
	for _, r := range readers {
		for _, kind := range kinds {
			for o, err := range r.Objects(c.Context, kind, in) {
				if err != nil {
					break // the run has its error already
				}
				if kind.Namespaced {
					spaces = append(spaces, o.Parsed.Namespace)
				}
			}
		}
	}
	return objects.Namesakes(spaces)
}

// allNamespacesFlag is -A of commands that look in all namespaces by default.
func allNamespacesFlag() cli.Flag {
	return &cli.BoolFlag{Name: "all-namespaces", Aliases: []string{"A"}, Usage: "look in all namespaces, whatever --namespace says"}
}

// finder finds the types of a snapshot.
type finder func(*inspect.Reader, context.Context) (*inspect.Types, error)

// resolve returns the types that TYPE names in any of the snapshots.
func resolve(ctx context.Context, kind string, find finder, readers []*inspect.Reader) (all []*inspect.Type, err error) {
	var wrong error
	var paths []string
	for _, r := range readers {
		paths = append(paths, r.Snapshot().Path())
		types, err := find(r, ctx)
		if err != nil {
			return nil, err
		}
		found, err := types.Resolve(kind)
		if err != nil {
			if wrong = err; !errors.Is(err, inspect.ErrUnknownType) {
				paths, all = paths[len(paths)-1:], nil
				break
			}
		}
		for _, t := range found {
			if !slices.ContainsFunc(all, func(o *inspect.Type) bool { return o.Resource == t.Resource }) {
				all = append(all, t)
			}
		}
	}
	if all == nil {
		return nil, &failure{status: exitUsage, err: &fileError{paths, wrong}}
	}
	return all, nil
}

// wants reports whether the object of a key is asked for.
func (a asked) wants(k keys.Key) bool {
	return a.in.Holds(k) && slices.ContainsFunc(a.kinds, func(t *inspect.Type) bool { return t.Resource == k.Resource })
}

// listed returns a copy of all that is never nil: JSON shows an empty list as one.
func listed[T any](all []T) []T { return append([]T{}, all...) }

// mapped returns the result of of for each element.
func mapped[T, U any](all []T, of func(T) U) []U {
	out := make([]U, 0, len(all))
	for _, one := range all {
		out = append(out, of(one))
	}
	return out
}

// converted yields the result of of for each element. It ends with the first error.
func converted[T, U any](all iter.Seq2[T, error], of func(T) U) iter.Seq2[U, error] {
	return stream.Of(func(yield func(U) error) error {
		return stream.Each(all, func(one T) error { return yield(of(one)) })
	})
}

// grouped yields each run of neighbours with the same key.
func grouped[T any, K comparable](all []T, key func(T) K) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		for len(all) > 0 {
			n := 1
			for n < len(all) && key(all[n]) == key(all[0]) {
				n++
			}
			if !yield(all[:n]) {
				return
			}
			all = all[n:]
		}
	}
}
