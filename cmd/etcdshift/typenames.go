package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/keys"
)

// asked is what TYPE or TYPE/NAME on a command line asks for.
type asked struct {
	resources []schema.GroupResource
	name      string // "" for all
}

// resolve finds the types that TYPE or TYPE/NAME names in any of the snapshots: a CustomResourceDefinition may be in one alone.
// A name that is no type's, or several types', is a usage error.
func resolve(c *cli.Context, word string, readers ...*inspect.Reader) (asked, error) {
	return resolveBy(c, word, (*inspect.Reader).Types, readers...)
}

// resolveEver is resolve, of types too that only deleted records tell of.
func resolveEver(c *cli.Context, word string, readers ...*inspect.Reader) (asked, error) {
	return resolveBy(c, word, (*inspect.Reader).TypesEver, readers...)
}

// finder finds the types of a snapshot.
type finder func(*inspect.Reader, context.Context) (*inspect.Types, error)

func resolveBy(c *cli.Context, word string, find finder, readers ...*inspect.Reader) (asked, error) {
	kind, name, named := strings.Cut(word, "/")
	if kind == "" || named && name == "" {
		return asked{}, usagef(commandPath(c), "%q is neither TYPE nor TYPE/NAME", word)
	}
	out := asked{name: name}
	var unknown error
	var paths []string
	for _, r := range readers {
		paths = append(paths, r.Snapshot().Path())
		types, err := find(r, c.Context)
		if err != nil {
			return asked{}, err
		}
		found, err := types.Resolve(kind)
		if errors.Is(err, inspect.ErrUnknownType) {
			unknown = err
			continue
		}
		if err != nil {
			return asked{}, usagef(commandPath(c), "%s: %w", r.Snapshot().Path(), err)
		}
		for _, t := range found {
			if !slices.Contains(out.resources, t.Resource) {
				out.resources = append(out.resources, t.Resource)
			}
		}
	}
	if out.resources == nil {
		return asked{}, usagef(commandPath(c), "%w", &fileError{paths, unknown})
	}
	return out, nil
}

func (a asked) wants(k keys.Key) bool {
	return slices.Contains(a.resources, k.Resource) && (a.name == "" || a.name == k.Name)
}

// wantedOf says which objects the words behind the files, --namespace and --cluster ask for; nil for all keys.
func wantedOf(c *cli.Context, words []string, readers ...*inspect.Reader) (func(keys.Key) bool, error) {
	namespace, cluster := c.String("namespace"), c.String("cluster")
	if len(words) == 0 && namespace == "" && cluster == "" {
		return nil, nil
	}
	var all []asked
	for _, word := range words {
		a, err := resolve(c, word, readers...)
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return func(k keys.Key) bool {
		if namespace != "" && k.Namespace != namespace || cluster != "" && k.Cluster != cluster {
			return false
		}
		return all == nil || slices.ContainsFunc(all, func(a asked) bool { return a.wants(k) })
	}, nil
}
