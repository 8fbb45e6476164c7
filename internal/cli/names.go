package cli

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/get"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/keys"
)

// readAsked reads TYPE [NAME...] or TYPE/NAME..., with types from any of the snapshots. An unknown
// or ambiguous TYPE is a usage error.
func readAsked(c *cli.Context, words []string, find finder, readers ...*inspect.Reader) (out []get.Asked, err error) {
	named, err := objects.ParseWords(words)
	if err != nil {
		return nil, usagef(commandPath(c), "%w", err)
	}
	for _, word := range named {
		types, err := resolve(c.Context, word.Type, find, readers)
		if err != nil {
			return nil, err
		}
		for _, t := range types {
			if last := len(out) - 1; last >= 0 && out[last].Type == t {
				out[last].Names = append(out[last].Names, word.Names...)
			} else {
				out = append(out, get.Asked{Type: t, Names: word.Names})
			}
		}
	}
	return out, nil
}

// asks reports whether the object of a key is among the requested objects within in.
func asks(all []get.Asked, in inspect.Selection, k keys.Key) bool {
	return slices.ContainsFunc(all, func(a get.Asked) bool {
		in.Names = a.Names
		return a.Type.Resource == k.Resource && in.Holds(k)
	})
}

// selectionOf returns the selected namespace and logical cluster.
func selectionOf(c *cli.Context) inspect.Selection {
	in := inspect.Selection{Namespace: c.String("namespace"), Cluster: c.String("cluster")}
	if c.Bool("all-namespaces") {
		in.Namespace = ""
	}
	return in
}

// allNamespacesFlag returns -A for commands that search all namespaces by default.
func allNamespacesFlag() cli.Flag {
	return &cli.BoolFlag{Name: "all-namespaces", Aliases: []string{"A"},
		Usage: "look in all namespaces; overrides --namespace"}
}

// finder finds the types of a snapshot.
type finder func(*inspect.Reader, context.Context) (*inspect.Types, error)

// resolve returns the types named by TYPE in any of the snapshots.
func resolve(
	ctx context.Context, kind string, find finder, readers []*inspect.Reader,
) (all []*inspect.Type, err error) {
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

// listed returns a copy of all, never nil: JSON prints an empty list as [].
func listed[T any](all []T) []T { return append([]T{}, all...) }

// grouped yields each run of neighbors with the same key.
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
