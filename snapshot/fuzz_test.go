package snapshot

import (
	"bytes"
	"context"
	"iter"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

// FuzzOpen changes small snapshots. Metas get a right checksum, so that the fuzzer reaches deeper
// code; digests are skipped. Every call returns an error that names the file, or an answer, and the
// output of Write equals its description.
func FuzzOpen(f *testing.F) {
	for _, release := range []string{"3.4", "3.5", "3.6", "3.7"} {
		b := must(os.ReadFile(filepath.Join("..", "testdata", "etcd", "etcd-"+release+".db")))(f)
		f.Add(b)
		f.Add(rebuilt(f, b, 1024, nil))
	}
	f.Add(rebuilt(f, fixture(f), 1024, withKeys(100)))
	f.Add(rebuilt(f, fixture(f), 1024, withLeases(100)))
	f.Add(noted(f, func(b *bbolt.Bucket) error { return b.Put([]byte("n"), []byte("note")) }))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 256<<10 {
			t.Skip()
		}
		b = append([]byte(nil), b...)
		for at := 0; at+bolt.HeaderSize+bolt.MetaSize <= len(b) && at <= bolt.MaxPageSize; at += bolt.MinPageSize {
			if m := b[at+bolt.HeaderSize:]; le.Uint32(m) == bolt.MetaMagic {
				put64(m[56:], bolt.MetaSum(m))
			}
		}
		file := must(os.CreateTemp(dir, "in"))(t)
		defer os.Remove(file.Name())
		must(file.Write(b))(t)
		require.NoError(t, file.Close())
		for _, err := range readWithoutDigest(t, file.Name()) {
			require.ErrorContains(t, err, file.Name())
			require.NotErrorIs(t, err, ErrChanged)
		}
		rewrite(t, file.Name())
		after := must(os.ReadFile(file.Name()))(t)
		require.True(t, bytes.Equal(b, after), "the input is untouched")
	})
}

// rewrite appends changes to the file, scrubs it and builds a file from its content, without the
// syncs of a real output, and checks the results.
func rewrite(t *testing.T, path string) {
	ctx := context.Background()
	s, err := Open(ctx, path, Config{SkipDigest: true})
	if err != nil {
		return
	}
	defer s.Close()
	old, err := s.Get(ctx, []byte("/k"))
	if err != nil || revision(t, s) > mvcc.MaxRevision-3 {
		return
	}
	want := modelOf(t, s)
	found := len(findings(t, s))
	c := put("/k", "new")
	c.Prior = modRevision(old)
	res, after, err := rewritten(t, path, s, seq(c, del("/absent")), WriteConfig{})
	accepted := err == nil
	if accepted {
		require.Equal(t, 1, res.Appended)
		want["/k"] = "new"
		require.Equal(t, want, modelOf(t, after))
		require.LessOrEqual(t, len(findings(t, after)), found+1)
	}
	delete(want, "/k")
	res, after, err = rewritten(t, path, s, seq(put("/new/by/this/test", "")),
		WriteConfig{Scrub: func(key []byte) bool { return string(key) == "/k" }})
	require.Equal(t, accepted, err == nil, "%v", err)
	if !accepted {
		return
	}
	want["/new/by/this/test"] = ""
	require.Equal(t, want, modelOf(t, after))
	require.Len(t, want, res.Keys)
	require.Empty(t, findings(t, after))
	require.Zero(t, after.Space().FreePages)
	buildFrom(t, path, after)
}

// rewritten returns the output of Write, or nil with the error of a faulty input.
func rewritten(
	t *testing.T, path string, s *Snapshot, changes iter.Seq2[Change, error], cfg WriteConfig,
) (WriteResult, *Snapshot, error) {
	out := must(os.CreateTemp(filepath.Dir(path), "out"))(t)
	defer os.Remove(out.Name())
	defer out.Close()
	d := Begin(out.Name(), opened{out}, s)
	d.changes, d.cfg = changes, cfg
	res, err := d.make(t.Context())
	if err != nil {
		require.ErrorContains(t, err, path, "the input is to blame")
		return res, nil, err
	}
	return res, open(t, out.Name()), nil
}

// buildFrom builds a file with the live records of s, whose numbers may be impossible for a server.
func buildFrom(t *testing.T, path string, s *Snapshot) {
	want := modelOf(t, s)
	rev := must(s.Revision(context.Background()))(t)
	res, after, err := rewritten(t, path, s, nil, WriteConfig{Build: &Content{
		Records: s.Live(t.Context(), nil), Revision: rev, Notes: map[string][]byte{"n": []byte("note")},
	}})
	require.NoError(t, err)
	require.Len(t, want, res.Keys)
	require.Equal(t, want, modelOf(t, after))
	require.Empty(t, findings(t, after))
}
