package wal

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	etcd "go.etcd.io/etcd/server/v3/storage/wal"
)

// FuzzScan reads a log of arbitrary bytes. The error, if any, is one of damage and names the
// folder; without an error, all entries follow each other and can be read again; no file changes.
func FuzzScan(f *testing.F) {
	etcd.SegmentSizeBytes = 16 << 10
	dir := written(f, rand.New(rand.NewPCG(1, 2)), 8, 20)
	files, err := filepath.Glob(filepath.Join(dir, "*.wal"))
	require.NoError(f, err)
	whole, err := os.ReadFile(files[0])
	require.NoError(f, err)
	f.Add(whole[:8<<10])
	f.Add(whole[:500])
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		path := filepath.Join(dir, "0000000000000000-0000000000000000.wal")
		require.NoError(t, os.WriteFile(path, data, 0o600))
		untouched(t, dir)
		l, err := Scan(t.Context(), dir, 0)
		if err != nil {
			require.True(t, errors.Is(err, ErrDamaged), "%v", err)
			require.ErrorContains(t, err, dir)
			return
		}
		n := max(l.First, 1)
		for e, err := range l.Entries(t.Context(), 0) {
			require.NoError(t, err)
			require.Equal(t, n, e.Index)
			again, err := l.Read(e.At)
			require.NoError(t, err)
			require.Equal(t, e.Data, again.Data)
			_, request, err := e.Request()
			if err == nil {
				_, _ = request.Fields()
				_ = e.Keys(func([]byte) {})
			}
			n++
		}
		require.Equal(t, l.Last+1, max(n, l.Last+1))
	})
}
