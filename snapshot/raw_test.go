package snapshot

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
)

// rawOf returns the database file of a store after a few transactions and more, so that its two
// metas differ, with the file growth of a server.
func rawOf(t testing.TB, more int) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "raw.db")
	rebuildInto(t, path, fixture(t), 4096, withKeys(500))
	db := must(bbolt.Open(path, 0o600, &bbolt.Options{NoFreelistSync: true}))(t)
	for i := range more {
		require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
			return putRecord(tx.Bucket([]byte("key")), created(int64(8000+i), "/more", "x"))
		}))
	}
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		return putRecord(tx.Bucket([]byte("key")), created(9000, "/last", "in the newer meta alone"))
	}))
	require.NoError(t, db.Close())
	b := must(os.ReadFile(path))(t)
	return append(b, make([]byte, 64<<10)...)
}

// TestRawDatabaseFile reads and writes a member/snap/db: no digest, slack after the high-water
// mark, metas of two different transactions, one possibly torn by a crash.
func TestRawDatabaseFile(t *testing.T) {
	for more := range 2 { // the newer meta is the first or the second
		t.Run(fmt.Sprint(more), func(t *testing.T) { testRaw(t, rawOf(t, more)) })
	}
}

func testRaw(t *testing.T, raw []byte) {
	older := 0
	first := must(bolt.ParseMeta(raw))(t)
	second := must(bolt.ParseMeta(raw[4096:]))(t)
	require.NotEqual(t, first.Root, second.Root)
	if second.TxID < first.TxID {
		older = 4096
	}
	torn := func(at int) []byte {
		b := append([]byte(nil), raw...)
		b[at+bolt.HeaderSize+20] ^= 1
		return b
	}
	tests := []struct {
		name    string
		b       []byte
		last    bool // the file has the newer transaction
		warning string
	}{
		{"whole", raw, true, "behind the high-water mark"},
		{"older meta torn", torn(older), true, "the other one is used"},
		{"newer meta torn", torn(4096 - older), false, "the other one is used"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := copyOf(t, tt.b)
			s := open(t, in)
			require.Contains(t, strings.Join(s.Warnings(), "\n"), "no digest")
			require.Contains(t, strings.Join(s.Warnings(), "\n"), tt.warning)
			require.Equal(t, tt.last, modelOf(t, s)["/last"] != "")
			d := must(s.Digest(context.Background()))(t)
			require.False(t, d.Present)
			require.Empty(t, findings(t, s))

			path, _ := proved(t, s, WriteConfig{})
			require.False(t, open(t, path).raw)
			sameAsRestored(t, path, nil)
			proved(t, s, WriteConfig{}, mixed(t, s, nil)...)
		})
	}
}

// TestStoredFreeList checks a database file with a stored free list, written by a program without
// etcd's options.
func TestStoredFreeList(t *testing.T) {
	path := filepath.Join(t.TempDir(), "raw.db")
	rebuildInto(t, path, fixture(t), 4096, nil)
	db := must(bbolt.Open(path, 0o600, nil))(t)
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("cluster")).Put([]byte("k"),
			[]byte("v"))
	}))
	require.NoError(t, db.Close())
	untouched(t, path)
	s := open(t, path)
	require.NotEqual(t, uint64(bolt.NoFreelist), s.db.Freelist)
	proved(t, s, WriteConfig{})
	path, _ = proved(t, s, WriteConfig{}, mixed(t, s, nil)...)
	sameAsRestored(t, path, nil)
}

// TestMetasOfDifferentPageSizes checks that a second meta with another page size is damage: bbolt
// uses the page size of the first meta.
func TestMetasOfDifferentPageSizes(t *testing.T) {
	b := imageOf(fixture(t))
	m := mustMeta(b)
	m.PageSize, m.HighWater, m.Root, m.TxID = 1024, m.HighWater*4, m.Root*4, m.TxID+9
	m.Put(b[4096:8192], 1)
	binary.LittleEndian.PutUint64(b[m.Root*1024:], m.Root)
	_, err := Open(context.Background(), copyOf(t, withDigest(b)), Config{})
	require.ErrorIs(t, err, ErrDamaged)
	require.ErrorContains(t, err, "meta page 1")
}
