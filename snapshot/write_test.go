package snapshot

import (
	"context"
	"hash/maphash"
	"iter"
	"path/filepath"
	"strconv"
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
		rec := must(s.Get(context.Background(), changes[i].Key))(t)
		changes[i].Prior = modRevision(rec)
	}
	return seq(changes...)
}

func modRevision(r *Record) int64 {
	if r == nil {
		return 0
	}
	return r.ModRevision
}

func write(t testing.TB, s *Snapshot, changes iter.Seq2[Change, error]) (string, WriteResult) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "out.db")
	res := must(Write(context.Background(), path, s, changes, WriteConfig{}))(t)
	return path, res
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
	before := filepath.Join(t.TempDir(), "before.db")
	etcdtest.Save(t, live, before)
	untouched(t, before)
	etcdtest.Run(t, live, "put /a four\ndel /t/1\nput /new fresh\nput /back again")
	must(live.Client.Put(context.Background(), "/leased", "kept", clientv3.WithIgnoreLease()))(t)
	etcdtest.Run(t, live, "put /big small")
	after := filepath.Join(t.TempDir(), "after.db")
	etcdtest.Save(t, live, after)

	s := open(t, before)
	leased := put("/leased", "kept")
	leased.Lease = 77
	path, res := write(t, s, planned(t, s, put("/a", "four"), del("/t/1"), put("/new", "fresh"), put("/back", "again"), leased, put("/big", "small")))
	require.Equal(t, 6, res.Appended)
	out, want := open(t, path), open(t, after)
	require.Equal(t, entriesOf(t, want), entriesOf(t, out))
	rev := must(want.Revision(context.Background()))(t)
	require.Equal(t, rev, res.Revision)
	sameAsRestored(t, path, live)
}

// sameAsRestored restores the snapshot, starts a real server on it and compares what that serves
// with our own reading, and, where a live server went through the same writes, its HashKV with that
// one's.
func sameAsRestored(t testing.TB, path string, live *etcdtest.Server) {
	t.Helper()
	ctx := context.Background()
	s := open(t, path)
	st := must(s.Status(ctx))(t)
	their := etcdtest.StatusOf(t, path)
	require.Equal(t, uint32(their.Hash), mustHash(t, s), "the hash of etcdutl snapshot status")
	server := etcdtest.Start(t, etcdtest.Restore(t, path))
	defer server.Stop()
	require.Equal(t, st.Revision, etcdtest.Revision(t, server))
	got := map[string]etcdtest.KV{}
	for _, kv := range etcdtest.Dump(t, server, 0) {
		got[string(kv.Key)] = kv
	}
	require.Len(t, got, st.Keys)
	for rec, err := range s.Live(ctx, nil) {
		require.NoError(t, err)
		kv := got[string(rec.Key)]
		require.Equal(t, string(rec.Value), string(kv.Value), "%s", rec.Key)
		require.Equal(t, []int64{rec.CreateRevision, rec.ModRevision, rec.Version, rec.Lease},
			[]int64{kv.CreateRevision, kv.ModRevision, kv.Version, kv.Lease}, "%s", rec.Key)
	}
	served, _, _ := etcdtest.HashKV(t, server, st.Revision)
	require.Equal(t, served, hashKV(t, s), "HashKV")
	if live != nil {
		ours, _, _ := etcdtest.HashKV(t, server, st.Revision)
		theirs, _, _ := etcdtest.HashKV(t, live, st.Revision)
		require.Equal(t, theirs, ours, "HashKV")
	}
}

func mustHash(t testing.TB, s *Snapshot) uint32 {
	t.Helper()
	st := must(s.Status(context.Background()))(t)
	sum := must(strconv.ParseUint(st.Hash, 16, 32))(t)
	return uint32(sum)
}

// TestZeroChanges: the output is the input, byte for byte.
func TestZeroChanges(t *testing.T) {
	in := filepath.Join("..", "testdata", "etcd", "etcd-3.6.db")
	untouched(t, in)
	s := open(t, in)
	path, res := write(t, s, seq())
	require.Equal(t, sumOf(t, in), sumOf(t, path))
	require.Zero(t, res.Appended)
	info := open(t, path)
	d := must(info.Digest(context.Background()))(t)
	require.True(t, d.Present)
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
