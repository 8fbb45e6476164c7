package inspect

import (
	"bytes"
	"math/rand"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/snapshot"
)

// TestChecked checks that NewChecked finds the same values unreadable as NewObject, in every
// recorded snapshot, sound and damaged.
func TestChecked(t *testing.T) {
	paths, err := filepath.Glob("../testdata/*/*.db*")
	require.NoError(t, err)
	rng, quick, unread := rand.New(rand.NewSource(1)), 0, 0
	same := func(kind *Type, e Entry, value []byte) {
		e.Value, e.value, e.check = value, nil, nil
		want, got := NewObject(kind, &e), NewChecked(kind, &e)
		require.Equal(t, want.Err, got.Err, "%s %x", e.Key, value)
		switch {
		case want.Err != nil:
			unread++
		case got.Content == nil:
			quick++
		}
	}
	for _, path := range paths {
		s, err := snapshot.Open(t.Context(), path, snapshot.Config{SkipDigest: true})
		if err != nil {
			continue
		}
		r := NewReader(s, nil)
		types, err := r.Types(t.Context())
		if err != nil {
			require.NoError(t, s.Close())
			continue
		}
		for _, kind := range types.All() {
			for e, err := range r.Entries(t.Context(), kind, Selection{}) {
				if err != nil {
					break
				}
				same(kind, *e, e.Value)
				for range 4 {
					bad := bytes.Clone(e.Value)
					bad[rng.Intn(len(bad))] = []byte("\"}],:0e\\\x00\xff")[rng.Intn(10)]
					same(kind, *e, bad)
					same(kind, *e, bad[:rng.Intn(len(bad))])
				}
			}
		}
		require.NoError(t, s.Close())
	}
	t.Logf("%d not decoded, %d unreadable", quick, unread)
	require.Greater(t, quick, 1000)
	require.Greater(t, unread, 1000)
}
