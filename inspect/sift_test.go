package inspect_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/snapshot"
)

// TestSift checks that a reader with a sift finds the same storages, objects and time, in every
// recorded snapshot.
func TestSift(t *testing.T) {
	paths, err := filepath.Glob("../testdata/*/*.db*")
	require.NoError(t, err)
	for _, path := range paths {
		s, err := snapshot.Open(t.Context(), path, snapshot.Config{})
		if err != nil {
			continue
		}
		all := inspect.NewReader(s, nil)
		types, err := all.Types(t.Context())
		if err != nil {
			require.NoError(t, s.Close())
			continue
		}
		for _, one := range types.All() {
			switch one.Name() {
			case "services", "customresourcedefinitions.apiextensions.k8s.io":
				sameObjects(t, path, all, one, nil)
			case "namespaces":
				sameObjects(t, path, all, one, []string{"default", "kubernetes"})
			}
		}
		require.NoError(t, s.Close())
	}
}

func sameObjects(t *testing.T, path string, all *inspect.Reader, one *inspect.Type, names []string) {
	t.Helper()
	s, err := snapshot.Open(t.Context(), path, snapshot.Config{SkipDigest: true})
	require.NoError(t, err)
	defer s.Close()
	r := inspect.NewReader(s, nil)
	inspect.Sift(t.Context(), r, []*inspect.Type{one}, names)
	for _, ask := range []func(r *inspect.Reader) (any, error){
		func(r *inspect.Reader) (any, error) { return inspect.NewestTime(t.Context(), r) },
		func(r *inspect.Reader) (any, error) { return r.Layouts(t.Context()) },
		func(r *inspect.Reader) (any, error) { return keysOf(t, r, one, inspect.Selection{Names: names}), nil },
		func(r *inspect.Reader) (any, error) {
			return keysOf(t, r, one, inspect.Selection{Names: []string{"x", "default"}}), nil
		},
		func(r *inspect.Reader) (any, error) {
			return inspect.Unparsed(t.Context(), r, one, inspect.Selection{})
		},
	} {
		want, err := ask(all)
		require.NoError(t, err)
		got, err := ask(r)
		require.NoError(t, err)
		require.Equal(t, want, got, "%s: %s", path, one.Name())
	}
}

func keysOf(t *testing.T, r *inspect.Reader, one *inspect.Type, in inspect.Selection) (keys []string) {
	t.Helper()
	for o, err := range r.Objects(t.Context(), one, in) {
		require.NoError(t, err)
		keys = append(keys, string(o.Key), string(o.Stored))
	}
	return keys
}
