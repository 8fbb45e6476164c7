package snapshot

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzOpen mutates small snapshots. Metas are given a right checksum again, so that more than they are reached; digests are
// skipped. Everything this package does ends in an error that names the file, or in an answer; and what it then writes is what it
// says.
func FuzzOpen(f *testing.F) {
	for _, release := range []string{"3.4", "3.5", "3.6", "3.7"} {
		b, err := os.ReadFile(filepath.Join("..", "testdata", "etcd", "etcd-"+release+".db"))
		require.NoError(f, err)
		f.Add(b)
		f.Add(rebuilt(f, b, 1024, nil))
	}
	f.Add(rebuilt(f, fixture(f), 1024, withKeys(100)))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 256<<10 {
			t.Skip()
		}
		b = append([]byte(nil), b...)
		for at := 0; at+pageHeaderSize+metaSize <= len(b) && at <= maxPageSize; at += minPageSize {
			if m := b[at+pageHeaderSize:]; le.Uint32(m) == metaMagic {
				put64(m[56:], metaSum(m))
			}
		}
		file, err := os.CreateTemp(dir, "in")
		require.NoError(t, err)
		defer os.Remove(file.Name())
		_, err = file.Write(b)
		require.NoError(t, err)
		require.NoError(t, file.Close())
		for _, err := range readAll(t, file.Name()) {
			require.ErrorContains(t, err, file.Name())
			require.NotErrorIs(t, err, ErrChanged)
		}
		rewrite(t, file.Name())
		after, err := os.ReadFile(file.Name())
		require.NoError(t, err)
		require.True(t, bytes.Equal(b, after), "the input is untouched")
	})
}

// rewrite writes on top of the file, without the syncs of a real output, and compares what comes of it.
func rewrite(t *testing.T, path string) {
	ctx := context.Background()
	s, err := Open(ctx, path, Config{SkipDigest: true})
	if err != nil {
		return
	}
	defer s.Close()
	old, err := s.Get(ctx, []byte("/k"))
	if err != nil {
		return
	}
	want := modelOf(t, s)
	found := len(findings(t, s))
	out, err := os.CreateTemp(filepath.Dir(path), "out")
	require.NoError(t, err)
	defer os.Remove(out.Name())
	defer out.Close()
	c := put("/k", "new")
	c.Prior = modRevision(old)
	res, err := writeTo(ctx, output{file: out, path: out.Name()}, s, seq(c, del("/absent")), WriteConfig{})
	if err != nil {
		require.ErrorContains(t, err, path, "the input is to blame")
		return
	}
	require.Equal(t, 1, res.Appended)
	after := open(t, out.Name())
	want["/k"] = "new"
	require.Equal(t, want, modelOf(t, after))
	require.LessOrEqual(t, len(findings(t, after)), found+1)
}
