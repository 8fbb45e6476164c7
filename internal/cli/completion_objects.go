package cli

import (
	"cmp"
	"context"
	"os"
	"strings"
	"time"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

const completionTime = time.Second // after this time a shell shows nothing instead of waiting

// completeObjects returns the types of a snapshot or, with a type, the names of its objects. It
// reads keys and the definitions of types, but no other values. Errors and compressed files (they
// would have to be expanded) give no words.
func completeObjects(ctx context.Context, file, kind string, in within) (words []string) {
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	s, err := snapshot.Open(ctx, typedPath(file), snapshot.Config{SkipDigest: true, MaxExpand: 1})
	if err != nil {
		return nil
	}
	defer s.Close()
	_ = s.Guard(func() error { // in case the file shrinks
		if kind == "" {
			if types, err := definedTypes(ctx, s); err == nil {
				words = typeNames(types)
			}
		} else if t := typeOf(ctx, s, kind); t != nil {
			words = objectNames(ctx, s, t, in)
		}
		return nil
	})
	return words
}

// typedPath returns the path that a shell makes of a typed word.
func typedPath(word string) string {
	if _, err := os.Stat(word); err == nil {
		return word
	}
	if rest, ok := strings.CutPrefix(word, "~/"); ok {
		word = "$HOME/" + rest
	}
	return os.ExpandEnv(strings.NewReplacer(`\`, "", `"`, "", "'", "").Replace(word))
}

// readerOfType returns a reader with the keys of one type.
func readerOfType(ctx context.Context, s *snapshot.Snapshot, t *inspect.Type) *inspect.Reader {
	r := inspect.NewReader(s, nil)
	inspect.Sift(ctx, r, []*inspect.Type{t}, nil)
	return r
}

// typeNames returns the types of a snapshot: built-in ones and those of definitions.
func typeNames(types *inspect.Types) (names []string) {
	for _, t := range types.All() {
		names = append(names, t.Name(), t.Resource.Resource)
	}
	return names
}

// typeOf returns the type of a word, nil for an unknown or ambiguous word.
func typeOf(ctx context.Context, s *snapshot.Snapshot, kind string) *inspect.Type {
	types, ok := inspect.BuiltinTypes(kind)
	if !ok {
		var err error
		if types, err = definedTypes(ctx, s); err != nil {
			return nil
		}
	}
	if found, err := types.Resolve(kind); err == nil && len(found) == 1 {
		return found[0]
	}
	return nil
}

// definedTypes returns the built-in types and those of CustomResourceDefinitions.
func definedTypes(ctx context.Context, s *snapshot.Snapshot) (*inspect.Types, error) {
	return readerOfType(ctx, s, &inspect.Type{Resource: keys.DefinitionType()}).Defined(ctx)
}

// objectNames returns the names of the objects of a type.
func objectNames(ctx context.Context, s *snapshot.Snapshot, t *inspect.Type, in within) (names []string) {
	selection := inspect.Selection{Namespace: cmp.Or(in.namespace, "default")}
	if in.all || !t.Namespaced {
		selection.Namespace = ""
	}
	for e, err := range readerOfType(ctx, s, t).Entries(ctx, t, selection) {
		if err != nil {
			return names
		}
		if key, err := e.ParseKey(); err == nil {
			names = append(names, key.Name)
		}
	}
	return names
}
