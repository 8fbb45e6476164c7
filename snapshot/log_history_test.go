package snapshot

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

// withHistory writes a data directory with the history of its log.
func withHistory(t testing.TB, dir string, base *Snapshot) (*Snapshot, WriteResult, error) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.db")
	res, err := Write(context.Background(), out, open(t, dir), seq(), WriteConfig{LogHistory: &LogHistory{Base: base}})
	if err != nil {
		require.NoFileExists(t, out)
		return nil, res, err
	}
	return open(t, out), res, nil
}

// TestRecordedHistory compares the history of a recorded log with all events of a watch.
func TestRecordedHistory(t *testing.T) {
	dir := etcdtest.RecordedMember(t, "kube37")
	etcdtest.Keep(t, dir)
	s, res, err := withHistory(t, dir, nil)
	require.NoError(t, err)
	truth := eventsOf(t, "kube37.truth.jsonl.gz")
	n := 0
	for rec, err := range s.Records(t.Context()) {
		require.NoError(t, err)
		want, known := truth[rec.Revision]
		require.True(t, known, "record %s", rec.Revision)
		want.requireEqual(t, rec)
		n++
	}
	require.Equal(t, len(truth), n)
	old := open(t, dir)
	st, before := must(s.Status(t.Context()))(t), must(old.Status(t.Context()))(t)
	require.Equal(t, n, st.Records)
	require.Equal(t, before.Records+res.Restored, st.Records)
	require.Zero(t, st.CompactRevision)
	require.Equal(t, before.Revision, st.Revision)
	require.Equal(t, before.Keys, st.Keys)
	require.Empty(t, findings(t, s))

	// compacting it again gives the database's HashKV
	out := filepath.Join(t.TempDir(), "compacted.db")
	keepRevisions := before.Revision - before.CompactRevision
	must(Write(t.Context(), out, s, seq(), WriteConfig{Compact: &Compaction{Keep: keepRevisions}}))(t)
	require.Equal(t, before.HashKV, must(open(t, out).Status(t.Context()))(t).HashKV)

	// a server on the file answers for each revision
	server := etcdtest.Start(t, etcdtest.Restore(t, s.Path()))
	for rev := int64(2); rev <= st.Revision; rev += 37 {
		require.Equal(t, etcdtest.Dump(t, server, rev), liveAt(t, s, "", rev))
	}
}

// TestHistoryFromBase begins with an earlier snapshot of the member.
func TestHistoryFromBase(t *testing.T) {
	o := newRandom(t, 5, 13, 150)
	base := open(t, saved(t, o.server))
	for range 200 {
		o.step()
	}
	o.server.Stop()
	whole, _, err := withHistory(t, o.dir, nil)
	require.NoError(t, err)
	s, _, err := withHistory(t, o.dir, base)
	require.NoError(t, err)
	oldest, newest, err := s.Kept(t.Context())
	require.NoError(t, err)
	first, _, err := base.Kept(t.Context())
	require.NoError(t, err)
	require.Equal(t, []int64{first, o.model.rev}, []int64{oldest, newest})
	for rev := oldest; rev <= newest; rev++ {
		require.Equal(t, liveAt(t, whole, "", rev), liveAt(t, s, "", rev), "revision %d", rev)
	}
	for name, other := range map[string][]byte{
		"another cluster": fixture(t), "another run": built(t, "put a 1\nput b 2\nput c 3"),
	} {
		_, _, err := withHistory(t, o.dir, open(t, copyOf(t, other)))
		require.ErrorIs(t, err, ErrLogHistory, name)
	}
}

// TestHistoryOfARestoredMember needs the file from which the member was restored, with and without
// a bumped revision.
func TestHistoryOfARestoredMember(t *testing.T) {
	for _, bump := range []uint64{0, 1000} {
		t.Run(fmt.Sprint(bump), func(t *testing.T) {
			origin := copyOf(t, built(t, "put a 1\nput b 2\ncompact 2\nput a 3\ndel b\nput c 4"))
			dir := etcdtest.Restore(t, origin, etcdtest.BumpRevision(bump))
			if bump == 0 {
				dir = etcdtest.Restore(t, origin)
			}
			server := etcdtest.Start(t, dir)
			etcdtest.Run(t, server, "put a 5\nput a 6\ndel c\nput d 7")
			last := etcdtest.Revision(t, server)
			etcdtest.Run(t, server, fmt.Sprintf("compact %d\nput e 8", last))
			server.Stop()
			base := open(t, origin)
			s, res, err := withHistory(t, dir, base)
			require.NoError(t, err)
			inferred, _, err := withHistory(t, dir, nil)
			require.NoError(t, err)
			all := map[Revision]string{}
			for rec, err := range s.Records(t.Context()) {
				require.NoError(t, err)
				all[rec.Revision] = fmt.Sprint(rec)
			}
			for rec, err := range inferred.Records(t.Context()) {
				require.NoError(t, err)
				require.Equal(t, all[rec.Revision], fmt.Sprint(rec))
			}
			require.NotZero(t, res.Restored)
			var values []string
			for rec, err := range s.History(t.Context(), []byte("a")) {
				require.NoError(t, err)
				values = append(values, string(rec.Value))
			}
			require.Equal(t, []string{"1", "3", "5", "6"}, values)
		})
	}
}

// TestHistoryIsProven changes a value, a revision or a key of the database: the log then does not
// prove its history.
func TestHistoryIsProven(t *testing.T) {
	last := func(b *bbolt.Bucket) (k, v []byte) {
		k, v = b.Cursor().Last()
		return bytes.Clone(k), bytes.Clone(v)
	}
	for want, change := range map[string]func(b *bbolt.Bucket) error{
		"differ in record 2635.10": func(b *bbolt.Bucket) error {
			k, v := last(b)
			v[len(v)-1] ^= 1
			return b.Put(k, v)
		},
		"is in the log and not in the database": func(b *bbolt.Bucket) error {
			k, _ := last(b)
			return b.Delete(k)
		},
		"is in the database and not in the log": func(b *bbolt.Bucket) error {
			rec := Record{Revision: Revision{Main: 2636}, Key: []byte("/x"), CreateRevision: 2636, ModRevision: 2636,
				Version: 1}
			el := new(mvcc.Encoder).Element(&rec)
			return b.Put(el.Key, el.Value)
		},
		"keys at revision": func(b *bbolt.Bucket) error { // a live record below the compaction
			k, _ := b.Cursor().First()
			return b.Delete(k)
		},
	} {
		dir := etcdtest.RecordedMember(t, "kube37")
		db := must(bbolt.Open(filepath.Join(dir, "member", "snap", "db"), 0o600, nil))(t)
		require.NoError(t, db.Update(func(tx *bbolt.Tx) error { return change(tx.Bucket([]byte("key"))) }))
		require.NoError(t, db.Close())
		_, _, err := withHistory(t, dir, nil)
		require.ErrorIs(t, err, ErrLogHistory)
		require.ErrorContains(t, err, want)
		if want == "keys at revision" { // a record from before the entries of the next log
			continue
		}
		_, _, err = withHistory(t, etcdtest.CutLog(t, dir, 1200), nil) // inferred
		require.ErrorIs(t, err, ErrLogHistory, want)
	}
}
