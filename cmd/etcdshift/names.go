package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

// asked is one TYPE, TYPE/NAME or TYPE NAME... of a command line.
type asked struct {
	word  string
	kinds []*inspect.Type // that TYPE names, each resource once
	names []string        // nil for all
}

// parseNames reads TYPE and TYPE/NAME words, with types that any of the snapshots has. A TYPE that
// names no type, or several, is a usage error.
func parseNames(c *cli.Context, words []string, find finder, readers ...*inspect.Reader) (all []asked, err error) {
	for _, word := range words {
		kind, name, named := strings.Cut(word, "/")
		if kind == "" || named && name == "" {
			return nil, usagef(commandPath(c), "%q is neither TYPE nor TYPE/NAME", word)
		}
		a := asked{word: word}
		if named {
			a.names = []string{name}
		}
		if a.kinds, err = resolve(c.Context, kind, find, readers); err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
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
		return nil, &failure{exitUsage, &fileError{paths, wrong}, `"etcdshift status" lists what the snapshot holds`}
	}
	return all, nil
}

func (a asked) wants(k keys.Key) bool {
	return (a.names == nil || slices.Contains(a.names, k.Name)) &&
		slices.ContainsFunc(a.kinds, func(t *inspect.Type) bool { return t.Resource == k.Resource })
}

// scope is the namespace and the logical cluster to look in; "" for all.
type scope struct{ namespace, cluster string }

func scopeOf(c *cli.Context) scope { return scope{c.String("namespace"), c.String("cluster")} }

func (s scope) has(k keys.Key) bool {
	return (s.namespace == "" || s.namespace == k.Namespace) && (s.cluster == "" || s.cluster == k.Cluster)
}

// String follows "not found".
func (s scope) String() (text string) {
	if s.namespace != "" {
		text += fmt.Sprintf(", in namespace %q", s.namespace)
	}
	if s.cluster != "" {
		text += fmt.Sprintf(", in cluster %q", s.cluster)
	}
	return text
}

type located struct {
	key    string
	parsed keys.Key
}

// keysOf yields the keys of the chosen objects: the live ones, with deleted also the deleted ones.
func (a asked) keysOf(ctx context.Context, r *inspect.Reader, in scope, deleted bool) iter.Seq2[located, error] {
	return func(yield func(located, error) bool) {
		layouts, err := r.Layouts(ctx)
		if err != nil {
			yield(located{}, err)
			return
		}
		for _, dir := range slices.Concat(mapped(a.kinds, func(t *inspect.Type) [][]byte { return layouts.Dirs(t.Resource) })...) {
			found := []iter.Seq2[[]byte, error]{
				converted(r.Snapshot().Live(ctx, dir), func(rec *snapshot.Record) []byte { return rec.Key }),
				converted(r.Snapshot().Deleted(ctx, dir), func(d *snapshot.Deletion) []byte { return d.Key }),
			}
			if !deleted {
				found = found[:1]
			}
			for _, all := range found {
				for key, err := range all {
					if err != nil {
						yield(located{}, err)
						return
					}
					parsed, _, err := layouts.Parse(key)
					if err == nil && a.wants(parsed) && in.has(parsed) && !yield(located{string(key), parsed}, nil) {
						return
					}
				}
			}
		}
	}
}
