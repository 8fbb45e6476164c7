package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/input"
)

// Choice is which policies a command line names.
type Choice struct {
	Files    []string
	Stored   bool     // those of the snapshot too
	Policies []string // of them, by name; nil for all
}

// ErrNone is returned where no policy is named, or none of a name is given.
var ErrNone = errors.New("no policy is given")

// mostManifest bounds the bytes of a manifest.
const mostManifest = 64 << 20

// Load reads the chosen policies, with bindings and params of any kind. Files without a policy of
// kind are an error, unless stored ones are asked for too.
func (c Choice) Load(ctx context.Context, kind string) (*Set, error) {
	set := &Set{}
	var wrong []error // of all files
	for _, path := range c.Files {
		text, _, err := input.ReadFile(ctx, path, mostManifest)
		if err != nil {
			wrong = append(wrong, err)
		} else if err := set.Read(text); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", path, err))
		}
	}
	if wrong != nil {
		return nil, errors.Join(wrong...)
	}
	if given := map[string]int{Mutating: len(set.Mutating), Validating: len(set.Validating)}; given[kind] == 0 &&
		len(c.Files) > 0 && !c.Stored {
		return nil, fmt.Errorf("%w: there is no %s in %s", ErrNone, kind, strings.Join(c.Files, ", "))
	}
	return set, nil
}

// Complete adds the stored policies where they are chosen, and leaves out those that are not.
func (c Choice) Complete(ctx context.Context, set *Set, from Source) error {
	if c.Stored {
		if err := set.addStored(ctx, from); err != nil {
			return err
		}
	}
	if len(c.Policies) > 0 {
		if missing := set.Choose(c.Policies); len(missing) > 0 {
			return fmt.Errorf("%w: there is no policy %q", ErrNone, missing)
		}
	}
	return nil
}

// addStored adds the policies and bindings of a snapshot; manifests of the same kind and name take
// their place.
func (s *Set) addStored(ctx context.Context, from Source) error {
	types, err := from.Types(ctx)
	if err != nil {
		return err
	}
	given := s.members()
	for _, gr := range Resources() {
		t := types.Of(gr)
		if t == nil {
			continue
		}
		for e, err := range from.Entries(ctx, t, inspect.Selection{}) {
			if err != nil {
				return err
			}
			o := inspect.NewObject(t, e)
			if o.Err != nil {
				return fmt.Errorf("%s: %w", e.Key, o.Err)
			}
			if slices.ContainsFunc(given, func(m member) bool { return m.kind == t.Kind && m.name == o.Parsed.Name }) {
				continue
			}
			if err := s.Add(&unstructured.Unstructured{Object: o.Content}, false); err != nil {
				return fmt.Errorf("%s: %w", e.Key, err)
			}
		}
	}
	return nil
}
