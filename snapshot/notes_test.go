package snapshot

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
)

// noted is a snapshot with a bucket for notes that edit was given.
func noted(t testing.TB, edit func(b *bbolt.Bucket) error) []byte {
	t.Helper()
	return rebuilt(t, fixture(t), 4096, func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket([]byte(noteBucket))
		if err != nil {
			return err
		}
		return edit(b)
	})
}

// TestHostileNotes: a bucket for notes with what no Build has put there is an error that names the
// file.
func TestHostileNotes(t *testing.T) {
	large := func(b *bbolt.Bucket) error { return b.Put([]byte("n"), []byte(strings.Repeat("x", 9000))) }
	whole := noted(t, large)
	s := open(t, copyOf(t, whole))
	leaf := s.db.Bucket(noteBucket).Leaves[0] * 4096
	damaged := func(edit func(p []byte)) []byte {
		b := append([]byte(nil), imageOf(whole)...)
		edit(b[leaf:])
		return withDigest(b)
	}
	for name, tt := range map[string]struct {
		b    []byte
		text string
	}{
		"huge": {noted(t, func(b *bbolt.Bucket) error { return b.Put([]byte("n"), make([]byte, maxNote+1)) }), `note "n" has 67108865 bytes`},
		"nested": {noted(t, func(b *bbolt.Bucket) error {
			_, err := b.CreateBucket([]byte("n"))
			return err
		}), "holds a bucket of its own"},
		"nested behind it": {noted(t, func(b *bbolt.Bucket) error {
			_, err := b.CreateBucket([]byte("z"))
			return errors.Join(err, b.Put([]byte("n"), nil))
		}), "holds a bucket of its own"},
		"page of another":  {damaged(func(p []byte) { put64(p, 3) }), "calls itself page 3"},
		"key of 4 GiB":     {damaged(func(p []byte) { put32(p[bolt.HeaderSize+8:], 1<<32-1) }), "ends beyond the page"},
		"65535 notes":      {damaged(func(p []byte) { put16(p[10:], 65535) }), "65535 elements do not fit"},
		"a branch":         {damaged(func(p []byte) { put16(p[8:], bolt.FlagBranch) }), "page"},
		"pages behind it":  {damaged(func(p []byte) { put32(p[12:], 1<<31) }), "overflow pages"},
		"notes that share": {damaged(func(p []byte) { put16(p[10:], 2); copy(p[bolt.HeaderSize+16:], p[bolt.HeaderSize:bolt.HeaderSize+16]) }), "element"},
	} {
		t.Run(name, func(t *testing.T) {
			in := copyOf(t, tt.b)
			s, err := Open(context.Background(), in, Config{})
			if err == nil {
				defer s.Close()
				bounded(t, func() { _, err = s.Note(context.Background(), "n") })
			}
			require.ErrorIs(t, err, ErrDamaged)
			require.ErrorContains(t, err, in)
			require.ErrorContains(t, err, tt.text)
		})
	}
}

// TestNotes: a note is a copy, an empty one is there, and what a server's file, or an appended one,
// has stays.
func TestNotes(t *testing.T) {
	ctx := context.Background()
	s := open(t, copyOf(t, fixture(t)))
	note := must(s.Note(ctx, "n"))(t)
	require.Nil(t, note)
	path, _ := build(t, Content{Revision: 7, Notes: map[string][]byte{"empty": nil, "n": []byte("note"), "nn": []byte("other")}})
	onTop, _ := write(t, open(t, path), WriteConfig{}, put("/a", "x"))
	scrubbed, _ := proved(t, open(t, onTop), WriteConfig{Scrub: without("/a")})
	for _, path := range []string{path, onTop, scrubbed} {
		f := must(Open(ctx, path, Config{}))(t)
		note := must(f.Note(ctx, "n"))(t)
		empty := must(f.Note(ctx, "empty"))(t)
		none := must(f.Note(ctx, "none"))(t)
		require.NoError(t, f.Close())
		require.Equal(t, []byte("note"), note, "it outlives the file")
		require.NotNil(t, empty)
		require.Empty(t, empty)
		require.Nil(t, none)
	}
}
