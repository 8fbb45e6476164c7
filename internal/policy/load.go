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

// Choice holds the policies of a command line.
type Choice struct {
	Files    []string
	Stored   bool     // also the policies of the snapshot
	Policies []string // names of policies; nil for all
}

// ErrNone is returned if no policy is given, or none with a requested name.
var ErrNone = errors.New("no policy is given")

// mostManifest bounds a manifest, in bytes.
const mostManifest = 64 << 20

// Load reads the chosen policies, with bindings and params of any kind. Files without a policy of
// kind are an error, unless Stored is set.
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

// Complete adds stored policies if chosen, and removes other policies.
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

// addStored adds the policies and bindings of a snapshot; manifests of the same kind and name
// replace stored objects.
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
