package snapshot

import (
	"context"
	"hash/maphash"
	"iter"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

// seq is a plan as Write takes it.
func seq(changes ...Change) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		for _, c := range changes {
			if !yield(c, nil) {
				return
			}
		}
	}
}

// planned fills in Prior as a planner does that has just read the key.
func planned(t testing.TB, s *Snapshot, changes ...Change) iter.Seq2[Change, error] {
	t.Helper()
	for i := range changes {
		changes[i].Prior = modRevision(get(t, s, string(changes[i].Key)))
	}
	return seq(changes...)
}

func modRevision(r *Record) int64 {
	if r == nil {
		return 0
	}
	return r.ModRevision
}

func put(key, value string) Change { return Change{Key: []byte(key), Value: []byte(value)} }
func del(key string) Change        { return Change{Key: []byte(key), Delete: true} }

// entry is a stored record as bytes.
type entry struct{ key, value string }

func entriesOf(t testing.TB, s *Snapshot) (out []entry) {
	t.Helper()
	require.NoError(t, s.entries(context.Background(), "key", func(k, v []byte) error {
		out = append(out, entry{string(k), string(v)})
		return nil
	}))
	return out
}

const story = `
grant 77 3600
put /a one
put /a two
put /gone x
del /gone
put /back first
del /back
put /leased v lease=77
put /big size=20000
txn {
  put /t/1 a
  put /t/2 b
}
compact 5
put /a three
`

// TestLikeALiveServer gives the same six writes to a real server and to Write and compares every
// record byte for byte.
func TestLikeALiveServer(t *testing.T) {
	live := etcdtest.Start(t, filepath.Join(t.TempDir(), "live"))
	etcdtest.Run(t, live, story)
	before := saved(t, live)
	etcdtest.Run(t, live, "put /a four\ndel /t/1\nput /new fresh\nput /back again")
	must(live.Client.Put(context.Background(), "/leased", "kept", clientv3.WithIgnoreLease()))(t)
	etcdtest.Run(t, live, "put /big small")
	after := saved(t, live)

	s := open(t, before)
	leased := put("/leased", "kept")
	leased.Lease = 77
	path, res := proved(t, s, WriteConfig{},
		put("/a", "four"), del("/t/1"), put("/new", "fresh"), put("/back", "again"), leased, put("/big", "small"))
	require.Equal(t, 6, res.Appended)
	out, want := open(t, path), open(t, after)
	require.Equal(t, entriesOf(t, want), entriesOf(t, out))
	require.Equal(t, revision(t, want), res.Revision)
	sameAsRestored(t, path, live)
}

// TestNewKeyInheritsNothing: a new key has numbers of its own, regardless of the change before it,
// of a tombstone with numbers, and of a key with the same hash.
func TestNewKeyInheritsNothing(t *testing.T) {
	tombstone := Record{Key: []byte("/gone"), CreateRevision: 2, Version: 7}
	s := open(t, copyOf(t, rebuilt(t, built(t, "put /a one\nput /a two\nput /gone x\ndel /gone\n"), 4096, func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("key")).Put(appendRevisionKey(nil, Revision{Main: 5}, true), tombstone.appendKeyValue(nil))
	})))
	x := must(s.index(t.Context()))(t)
	ordinal, found, err := x.find([]byte("/a"), &Record{})
	require.NoError(t, err)
	require.True(t, found)
	x.ordinals[uint32(maphash.Bytes(x.seed, []byte("/collides")))] = ordinal

	a := newAppender(x, nil)
	changed := put("/a", "three")
	changed.Prior = 3
	for i, want := range []struct {
		change          Change
		create, version int64
	}{
		{put("/gone", "again"), 6, 1},
		{put("/collides", "new"), 7, 1},
		{changed, 2, 3},
		{put("/new", "new"), 9, 1},
	} {
		rec, err := a.record(want.change)
		require.NoError(t, err, "%s", want.change.Key)
		require.Equal(t, []int64{want.create, int64(6 + i), want.version}, []int64{rec.CreateRevision, rec.ModRevision, rec.Version}, "%s", rec.Key)
	}
	require.Equal(t, 4, a.Keys)
}
