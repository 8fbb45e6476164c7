package snapshot

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

// historyOf returns the records of one key: "revision" of a Put, "revision t" of a tombstone.
func historyOf(t testing.TB, s *Snapshot, key string) (out []string) {
	t.Helper()
	for rec, err := range s.History(context.Background(), []byte(key)) {
		require.NoError(t, err)
		require.Equal(t, key, string(rec.Key))
		at := rec.Revision.String()
		if rec.Tombstone {
			at += " t"
		}
		out = append(out, at)
	}
	return out
}

func get(t testing.TB, s *Snapshot, key string) *Record {
	t.Helper()
	rec := must(s.Get(context.Background(), []byte(key)))(t)
	return rec
}

func revision(t testing.TB, s *Snapshot) int64 {
	t.Helper()
	rev := must(s.Revision(context.Background()))(t)
	return rev
}

// TestHistory checks tombstones, re-creations and transactions of several operations, written by a
// server.
func TestHistory(t *testing.T) {
	s := open(t, copyOf(t, built(t, `
grant 77 3600
put /a one
put /a two
del /a
put /a three lease=77
txn {
  put /t/1 x
  del /a
  put /t/2 y
}
txn {
  put /t/1 again
  put /a four
}
put /gone x
del /gone`)))
	require.Equal(t, []string{"2.0", "3.0", "4.0 t", "5.0", "6.1 t", "7.1"}, historyOf(t, s, "/a"))
	require.Equal(t, []string{"6.0", "7.0"}, historyOf(t, s, "/t/1"))
	require.Equal(t, []string{"6.2"}, historyOf(t, s, "/t/2"))
	require.Equal(t, []string{"8.0", "9.0 t"}, historyOf(t, s, "/gone"))
	require.Empty(t, historyOf(t, s, "/never"))
	require.Nil(t, get(t, s, "/gone"))
	require.Nil(t, get(t, s, "/never"))
	a := get(t, s, "/a")
	require.Equal(t, []int64{7, 7, 1, 0}, []int64{a.CreateRevision, a.ModRevision, a.Version, a.Lease})
	require.Equal(t, model{"/a": "four", "/t/1": "again", "/t/2": "y"}, modelOf(t, s))
	require.Equal(t, int64(9), revision(t, s))
	st := must(s.Status(context.Background()))(t)
	require.Equal(t, []int{11, 3, 3, 1}, []int{st.Records, st.Tombstones, st.Keys, st.Leases})
	require.Empty(t, findings(t, s))
	path, res := write(t, s, WriteConfig{}, put("/t/2", "z"), put("/gone", "back"), del("/a"))
	require.Equal(t, int64(12), res.Revision)
	out := open(t, path)
	require.Equal(t, []string{"8.0", "9.0 t", "11.0"}, historyOf(t, out, "/gone"))
	require.Equal(t, int64(1), get(t, out, "/gone").Version)
	require.Equal(t, int64(2), get(t, out, "/t/2").Version)
	sameAsRestored(t, path, nil)
}

// compacted puts compact revisions into the meta bucket, as a server does.
func compacted(finished, scheduled int64) func(tx *bbolt.Tx) error {
	return func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte("meta"))
		if err := b.Put([]byte("finishedCompactRev"), mvcc.AppendRevisionKey(nil, Revision{Main: finished},
			false)); err != nil {
			return err
		}
		return b.Put([]byte("scheduledCompactRev"), mvcc.AppendRevisionKey(nil, Revision{Main: scheduled}, false))
	}
}

const long = `
put /a 2
put /b 3
put /a 4
del /b
put /b 6
put /c 7
del /c
put /a 9
put /d 10`

// TestInterruptedCompaction checks a server stopped during a compaction at 8, after none, some or
// all of the removals. A restore finishes the compaction; the live records never change, and the
// file keeps the revisions that the finishing server serves.
func TestInterruptedCompaction(t *testing.T) {
	b := built(t, long)
	want := modelOf(t, open(t, copyOf(t, b)))
	goes := []Record{
		{Revision: Revision{Main: 2}}, {Revision: Revision{Main: 3}}, {Revision: Revision{Main: 5}, Tombstone: true},
		{Revision: Revision{Main: 7}},
	}
	for gone := range len(goes) + 1 {
		in := copyOf(t, rebuilt(t, b, 4096, func(tx *bbolt.Tx) error {
			for _, rec := range goes[:gone] {
				if err := tx.Bucket([]byte("key")).Delete(mvcc.AppendRevisionKey(nil, rec.Revision,
					rec.Tombstone)); err != nil {
					return err
				}
			}
			return compacted(1, 8)(tx)
		}))
		s := open(t, in)
		require.Equal(t, want, modelOf(t, s))
		require.Empty(t, findings(t, s), "%d gone", gone)
		st := must(s.Status(context.Background()))(t)
		require.Equal(t, []int64{10, 1, 8}, []int64{st.Revision, st.CompactRevision, st.ScheduledCompact})
		servedAt(t, s, etcdtest.Start(t, etcdtest.Restore(t, in)))
		path, res := proved(t, s, WriteConfig{}, put("/a", "new"), del("/b"), put("/c", "back"))
		require.Equal(t, int64(13), res.Revision)
		require.Equal(t, int64(4), get(t, open(t, path), "/a").Version)
		require.Equal(t, int64(1), get(t, open(t, path), "/c").Version)
		sameAsRestored(t, path, nil)
	}
}

// TestCompactedBeyondTheLastRecord checks a last record before the compact revision: older servers
// removed the tombstone at the compact revision itself, and a scheduled compaction may not have
// run.
func TestCompactedBeyondTheLastRecord(t *testing.T) {
	for _, rev := range [][2]int64{{100, 100}, {100, 50}, {8, 200}} {
		in := copyOf(t, rebuilt(t, built(t, long), 4096, compacted(rev[0], rev[1])))
		s := open(t, in)
		most := max(rev[0], rev[1])
		require.Equal(t, most, revision(t, s))
		path, res := write(t, s, WriteConfig{}, put("/a", "new"), put("/e", "first"), del("/d"))
		require.Equal(t, most+3, res.Revision)
		out := open(t, path)
		require.Equal(t, []int64{2, most + 1, 4}, []int64{get(t, out, "/a").CreateRevision,
			get(t, out, "/a").ModRevision, get(t, out, "/a").Version})
		require.Equal(t, []int64{most + 2, most + 2, 1}, []int64{get(t, out, "/e").CreateRevision,
			get(t, out, "/e").ModRevision, get(t, out, "/e").Version})
		require.Empty(t, findings(t, out))
		sameAsRestored(t, path, nil)
	}
}

// TestBumpedRevision checks that etcdutl's --bump-revision leaves a record without a key, which
// stays in every later snapshot.
func TestBumpedRevision(t *testing.T) {
	const bump = 1000
	server := etcdtest.Start(t, etcdtest.Restore(t, etcdtest.Build(t, long), etcdtest.BumpRevision(bump)))
	etcdtest.Run(t, server, "put /after bump")
	s := sameSaved(t, server)
	require.Equal(t, int64(10+bump+1), revision(t, s))
	oldest, _, err := s.Kept(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(10+bump), oldest, "the revision that is marked compacted")
	servedAt(t, s, server)
	st := must(s.Status(context.Background()))(t)
	require.Equal(t, 1, st.EmptyRecords)
	require.Equal(t, model{"/a": "9", "/b": "6", "/d": "10", "/after": "bump"}, modelOf(t, s))
	require.Nil(t, get(t, s, ""))
	path, res := proved(t, s, WriteConfig{}, put("/after", "written"), del("/a"), put("/new", "x"))
	require.Equal(t, int64(10+bump+4), res.Revision)
	sameAsRestored(t, path, nil)
	s = sameSaved(t, etcdtest.Start(t, etcdtest.Restore(t, path, etcdtest.BumpRevision(bump))))
	require.Equal(t, int64(10+bump+4+bump), revision(t, s))
	require.Equal(t, model{"/after": "written", "/b": "6", "/d": "10", "/new": "x"}, modelOf(t, s))
}

// TestLeases checks that a change sets its lease and detaches any other, and that an unknown lease
// does no harm.
func TestLeases(t *testing.T) {
	s := open(t, copyOf(t, built(t, "grant 77 3600\ngrant 7000000000000000000 3600\nput /a x lease=77\nput /b x "+
		"lease=7000000000000000000\nput /c x lease=77")))
	kept, other := put("/a", "kept"), put("/c", "other")
	kept.Lease, other.Lease = 77, 7_000_000_000_000_000_000
	path, _ := write(t, s, WriteConfig{}, kept, put("/b", "detached"), other)
	out := open(t, path)
	require.Equal(t, []int64{77, 0, 7_000_000_000_000_000_000},
		[]int64{get(t, out, "/a").Lease, get(t, out, "/b").Lease, get(t, out, "/c").Lease})
	sameAsRestored(t, path, nil)
	server := etcdtest.Start(t, etcdtest.Restore(t, path))
	must(server.Client.Revoke(context.Background(), 77))(t)
	left := map[string]bool{}
	for _, kv := range etcdtest.Dump(t, server, 0) {
		left[string(kv.Key)] = true
	}
	require.Equal(t, map[string]bool{"/b": true, "/c": true}, left)
}

// TestConflicts checks that a change planned for another state of its key is an error, and that no
// output is left.
func TestConflicts(t *testing.T) {
	s := open(t, copyOf(t, built(t, "put /a x\nput /gone x\ndel /gone")))
	at := func(c Change, prior int64) Change { c.Prior = prior; return c }
	tests := map[string][]Change{
		"older":         {at(put("/a", "y"), 1)},
		"newer":         {at(put("/a", "y"), 3)},
		"absent":        {put("/a", "y")},
		"not there":     {at(put("/b", "y"), 2)},
		"deleted":       {at(put("/gone", "y"), 3)},
		"delete absent": {at(del("/b"), 2)},
		"twice":         {at(put("/a", "y"), 2), at(put("/a", "z"), 2)},
		"put twice new": {put("/b", "y"), put("/b", "z")},
	}
	for name, changes := range tests {
		t.Run(name, func(t *testing.T) { fails(t, s, seq(changes...), errConflict) })
	}
	fails(t, s, seq(put("", "x")), nil)
	path, res := write(t, s, WriteConfig{}, del("/gone"), del("/never"))
	require.Zero(t, res.Appended, "the deletion of what is not there stores nothing")
	require.Equal(t, sumOf(t, s.Path()), sumOf(t, path))
}
