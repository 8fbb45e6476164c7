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

const completionTime = time.Second // then a shell shows nothing, and does not wait

// completeObjects returns the types of a snapshot, or, where a type is given, the names of its
// objects. It reads keys, and the definitions of types, but no other value. An error means that
// there is nothing to offer, and so does a compressed file, which would have to be expanded.
func completeObjects(ctx context.Context, file, kind string, in within) (words []string) {
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	s, err := snapshot.Open(ctx, typedPath(file), snapshot.Config{SkipDigest: true, MaxExpand: 1})
	if err != nil {
		return nil
	}
	defer s.Close()
	_ = s.Guard(func() error { // a file that shrinks
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

// typedPath is the path that a shell makes of a word, which it completes as it was typed.
func typedPath(word string) string {
	if _, err := os.Stat(word); err == nil {
		return word
	}
	if rest, ok := strings.CutPrefix(word, "~/"); ok {
		word = "$HOME/" + rest
	}
	return os.ExpandEnv(strings.NewReplacer(`\`, "", `"`, "", "'", "").Replace(word))
}

// sifting returns a reader that has read the keys of one type.
func sifting(ctx context.Context, s *snapshot.Snapshot, t *inspect.Type) *inspect.Reader {
	r := inspect.NewReader(s, nil)
	inspect.Sift(ctx, r, []*inspect.Type{t}, nil)
	return r
}

// typeNames are the types of a snapshot: those of kube-apiserver, and those of definitions.
func typeNames(types *inspect.Types) (names []string) {
	for _, t := range types.All() {
		names = append(names, t.Name(), t.Resource.Resource)
	}
	return names
}

// typeOf is the type that a word names, nil where it names none, or several.
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

// definedTypes are the built-in types and those of CustomResourceDefinitions.
func definedTypes(ctx context.Context, s *snapshot.Snapshot) (*inspect.Types, error) {
	return sifting(ctx, s, &inspect.Type{Resource: keys.DefinitionType()}).Defined(ctx)
}

// objectNames are the names of the objects of a type.
func objectNames(ctx context.Context, s *snapshot.Snapshot, t *inspect.Type, in within) (names []string) {
	selection := inspect.Selection{Namespace: cmp.Or(in.namespace, "default")}
	if in.all || !t.Namespaced {
		selection.Namespace = ""
	}
	for e, err := range sifting(ctx, s, t).Entries(ctx, t, selection) {
		if err != nil {
			return names
		}
		if key, err := e.ParseKey(); err == nil {
			names = append(names, key.Name)
		}
	}
	return names
}
