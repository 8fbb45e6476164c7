package snapshot

import (
	"context"
	"crypto/sha256"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

// gunzip unpacks a recorded snapshot of testdata into a folder of the test's own.
func gunzip(t testing.TB, name string) string {
	t.Helper()
	return etcdtest.Unpack(t, filepath.Join("..", "testdata", name+".gz"))
}

// untouched fails the test when the file at path is changed by it in bytes, size or modification
// time.
func untouched(t testing.TB, path string) {
	t.Helper()
	before := must(os.Stat(path))(t)
	sum := sumOf(t, path)
	t.Cleanup(func() {
		after := must(os.Stat(path))(t)
		require.Equal(t, before.Size(), after.Size())
		require.Equal(t, before.ModTime(), after.ModTime())
		require.Equal(t, before.Mode(), after.Mode())
		require.Equal(t, sum, sumOf(t, path))
	})
}

func sumOf(t testing.TB, path string) [32]byte {
	t.Helper()
	b := must(os.ReadFile(path))(t)
	return sha256.Sum256(b)
}

func open(t testing.TB, path string) *Snapshot {
	t.Helper()
	s := must(Open(context.Background(), path, Config{}))(t)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// copyOf writes b as a file that no test may change.
func copyOf(t testing.TB, b []byte) string {
	t.Helper()
	path := victim(t, b)
	untouched(t, path)
	return path
}

// victim writes b as a file that looks old, so that a changed modification time shows.
func victim(t testing.TB, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "in.db")
	require.NoError(t, os.WriteFile(path, b, 0o600))
	old := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	require.NoError(t, os.Chtimes(path, old, old))
	return path
}

// must returns the value of a call that fails the test with an error: must(os.ReadFile(path))(t).
func must[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}
