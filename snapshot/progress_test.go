package snapshot

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestProgress: each pass adds its part, one that reads few leaves less; a later one than was
// expected adds nothing. A closed file has the last answer.
func TestProgress(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "in.db")
	_, err := Build(ctx, path, Content{Revision: 5000, Records: func(yield func(*Record, error) bool) {
		for i := range int64(4000) {
			rec := &Record{Key: fmt.Appendf(nil, "/registry/%d/%04d", i/100, i), Value: make([]byte, 1000), Revision: Revision{Main: i + 2}, CreateRevision: i + 2, ModRevision: i + 2, Version: 1}
			if !yield(rec, nil) {
				return
			}
		}
	}}, nil)
	require.NoError(t, err)
	s := must(Open(ctx, path, Config{}))(t)
	must(s.Digest(ctx))(t)
	require.Zero(t, s.Progress(1, 3))
	must(s.Keys(ctx))(t)
	require.Equal(t, 0.25, s.Progress(1, 3))
	require.Equal(t, 1.0, s.Progress(0, 0))
	for range s.Live(ctx, []byte("/registry/1/")) {
	}
	few := s.Progress(1, 3)
	require.Greater(t, few, 0.25)
	require.Less(t, few, 0.3)
	for want := few; want < 1; want = s.Progress(1, 3) {
		for range s.Live(ctx, nil) {
			require.GreaterOrEqual(t, s.Progress(1, 3), want)
		}
	}
	d := begin(t, filepath.Join(t.TempDir(), "out"), s)
	require.Zero(t, d.Progress())
	must(d.Write(ctx, seq(put("/new", "x")), WriteConfig{}))(t)
	require.Equal(t, 1.0, d.Progress())
	require.NoError(t, s.Close())
	require.Equal(t, 1.0, s.Progress(1, 3))
	require.Equal(t, 1.0, d.Progress())
}

// TestProgressOfDigest: without a digest to wait for, the records alone count.
func TestProgressOfDigest(t *testing.T) {
	for _, cfg := range []Config{{}, {SkipDigest: true}} {
		s := must(Open(t.Context(), copyOf(t, fixture(t)), cfg))(t)
		must(s.Keys(t.Context()))(t)
		must(s.Digest(t.Context()))(t)
		require.Equal(t, 1.0, s.Progress(0, 0))
		require.NoError(t, s.Close())
	}
}
