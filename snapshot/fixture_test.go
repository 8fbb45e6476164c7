package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

// gunzip unpacks a recorded snapshot of testdata into a temporary folder.
func gunzip(t testing.TB, name string) string {
	t.Helper()
	return etcdtest.Unpack(t, filepath.Join("..", "testdata", name+".gz"))
}

// untouched fails the test if the test changes bytes, size or modification time of the file at
// path.
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

// copyOf writes b as a file that the test must not change.
func copyOf(t testing.TB, b []byte) string {
	t.Helper()
	path := victim(t, b)
	untouched(t, path)
	return path
}

// victim writes b as a file with an old modification time, so that a change is visible.
func victim(t testing.TB, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "in.db")
	require.NoError(t, os.WriteFile(path, b, 0o600))
	old := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	require.NoError(t, os.Chtimes(path, old, old))
	return path
}

// must returns a function that returns v, or fails the test with err: must(os.ReadFile(path))(t).
func must[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}

// fixture returns a recorded snapshot of a real server: the newest and smallest of testdata/etcd.
func fixture(t testing.TB) []byte {
	t.Helper()
	b := must(os.ReadFile(filepath.Join("..", "testdata", "etcd", "etcd-3.7.db")))(t)
	return b
}

// built returns the snapshot of a real server after the script.
func built(t testing.TB, script string) []byte {
	t.Helper()
	b := must(os.ReadFile(etcdtest.Build(t, script)))(t)
	return b
}

// imageOf returns a snapshot without its digest; withDigest is the inverse.
func imageOf(b []byte) []byte { return b[: len(b)-sha256.Size : len(b)-sha256.Size] }

func withDigest(image []byte) []byte {
	sum := sha256.Sum256(image)
	return append(image[:len(image):len(image)], sum[:]...)
}

// rebuilt copies the buckets of snapshot b with bbolt, opened like etcd, into a file of another
// page size, applies edit, and returns the file in the form sent by a server.
func rebuilt(t testing.TB, b []byte, pageSize int, edit func(tx *bbolt.Tx) error) []byte {
	t.Helper()
	dir := t.TempDir()
	raw := filepath.Join(dir, "raw.db")
	rebuildInto(t, raw, b, pageSize, edit)
	db := must(bbolt.Open(raw, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Minute}))(t)
	defer db.Close()
	var image bytes.Buffer
	require.NoError(t, db.View(func(tx *bbolt.Tx) error {
		_, err := tx.WriteTo(&image)
		return err
	}))
	return withDigest(image.Bytes())
}

// rebuildInto is rebuilt with a database file as its result, like member/snap/db.
func rebuildInto(t testing.TB, raw string, b []byte, pageSize int, edit func(tx *bbolt.Tx) error) {
	t.Helper()
	in := filepath.Join(t.TempDir(), "in.db")
	require.NoError(t, os.WriteFile(in, b, 0o600))
	src := must(bbolt.Open(in, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Minute}))(t)
	defer src.Close()
	dst, err := bbolt.Open(raw, 0o600, &bbolt.Options{PageSize: pageSize, NoFreelistSync: true, NoSync: true,
		Timeout: time.Minute})
	require.NoError(t, err)
	defer dst.Close()
	require.NoError(t, src.View(func(from *bbolt.Tx) error {
		return dst.Update(func(to *bbolt.Tx) error {
			return from.ForEach(func(name []byte, b *bbolt.Bucket) error { return copyBucket(to, name, b) })
		})
	}))
	if edit != nil {
		require.NoError(t, dst.Update(edit))
	}
}

func copyBucket(to *bbolt.Tx, name []byte, from *bbolt.Bucket) error {
	b, err := to.CreateBucket(name)
	if err != nil {
		return err
	}
	b.FillPercent = 0.9
	return from.ForEach(b.Put)
}

// sound fails the test unless bbolt's own check passes on a copy of the file.
func sound(t testing.TB, path string) {
	t.Helper()
	require.NoError(t, boltCheck(t, path))
}

// model is the content of a store: the live value of each key.
type model map[string]string

func modelOf(t testing.TB, s *Snapshot) model {
	t.Helper()
	m := model{}
	for rec, err := range s.Live(context.Background(), nil) {
		require.NoError(t, err)
		m[string(rec.Key)] = string(rec.Value)
	}
	return m
}

func (m model) apply(changes ...Change) model {
	out := model{}
	for k, v := range m {
		out[k] = v
	}
	for _, c := range changes {
		if c.Delete {
			delete(out, string(c.Key))
		} else {
			out[string(c.Key)] = string(c.Value)
		}
	}
	return out
}

// keptBelow fails the test unless out has the pages of in from the third to the high-water mark,
// byte for byte.
func keptBelow(t testing.TB, in, out *Snapshot) {
	t.Helper()
	from := 2 * in.db.PageSize
	require.True(t, bytes.Equal(in.db.Image[from:], out.db.Image[from:len(in.db.Image)]),
		"an old page is not what it was")
}
