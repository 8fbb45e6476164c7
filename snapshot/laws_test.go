package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

// pastStory is a script that writes keys to keep and keys to remove, side by side in transactions
// and leases, with a compaction in between.
const pastStory = `
grant 77 3600
grant 78 3600
put /stay/a one
put /go/a one lease=77
put /stay/leased x lease=77
put /go/gone x
del /go/gone
put /stay/back first
del /stay/back
txn {
  put /go/t a
  put /stay/t b
  put /go/u c
}
compact 7
put /stay/a two
put /go/a two lease=78
put /stay/back second
del /stay/t
put /go/big size=30000
put /stay/big size=30000
txn {
  del /go/t
  put /stay/t again
}
put /go/last x
`

func write(t testing.TB, s *Snapshot, cfg WriteConfig, changes ...Change) (string, WriteResult) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "out.db")
	return path, must(Write(context.Background(), path, s, planned(t, s, changes...), cfg))(t)
}

// proved writes s twice and checks the output against a model of its content, entry by entry unless
// a compaction is set.
func proved(t testing.TB, s *Snapshot, cfg WriteConfig, changes ...Change) (string, WriteResult) {
	t.Helper()
	path, res := write(t, s, cfg, changes...)
	again, _ := write(t, s, cfg, changes...)
	require.Equal(t, sumOf(t, path), sumOf(t, again), "the same bytes each time")
	wellMade(t, path, res)
	out := open(t, path)
	scrubbed := func(key []byte) bool { return cfg.Scrub != nil && len(key) > 0 && cfg.Scrub(key) }

	want := modelOf(t, s)
	maps.DeleteFunc(want, func(key, _ string) bool { return scrubbed([]byte(key)) })
	for _, c := range changes {
		if !scrubbed(c.Key) {
			want = want.apply(c)
		}
	}
	require.Equal(t, want, modelOf(t, out))
	require.Len(t, want, res.Keys)

	gone, kept, left := 0, []entry{}, entriesOf(t, out)
	for _, e := range entriesOf(t, s) {
		var rec Record
		require.NoError(t, mvcc.ParseRecord([]byte(e.key), []byte(e.value), &rec))
		if scrubbed(rec.Key) {
			gone++
		} else {
			kept = append(kept, e)
		}
	}
	appended, rev := res.Appended, revision(t, s)+int64(res.Appended)
	if cfg.Scrub != nil { // the last record
		appended, rev = appended+1, rev+1
		require.Equal(t, entry{key: string(mvcc.AppendRevisionKey(nil, Revision{Main: rev}, false))}, left[len(left)-1])
	}
	require.Equal(t, []int64{rev, rev}, []int64{res.Revision, revision(t, out)})
	require.Equal(t, gone, res.Scrubbed)
	require.Len(t, left, len(kept)+appended-res.Compacted)
	if cfg.Compact == nil {
		require.True(t, slices.Equal(kept, left[:len(kept)]), "what stays is as it was")
	}
	transaction := s.db.TxID
	switch {
	case cfg.Compact != nil:
		transaction = 1
	case appended > 0 || len(cfg.Leases) > 0 || s.raw || s.FreeList() != nil:
		transaction++
	}
	require.Equal(t, transaction, out.db.TxID)
	sameBuckets(t, s, out, cfg)
	if cfg.Compact == nil && cfg.Scrub == nil {
		keptBelow(t, s, out)
	} else {
		require.Zero(t, out.Space().FreePages)
	}
	return path, res
}

// compact is proved for a compaction, and checks that a second compaction removes nothing.
func compact(t testing.TB, s *Snapshot, c Compaction, changes ...Change) (string, WriteResult) {
	t.Helper()
	cfg := WriteConfig{Compact: &c}
	path, res := proved(t, s, cfg, changes...)
	twice, more := write(t, open(t, path), cfg)
	require.Equal(t, sumOf(t, path), sumOf(t, twice))
	require.Zero(t, more.Compacted)
	require.Equal(t, []int64{res.Revision, int64(res.Keys)}, []int64{more.Revision, int64(more.Keys)})
	return path, res
}

// wellMade fails the test unless the file at path is sound, also for bbolt, and equals its
// description res.
func wellMade(t testing.TB, path string, res WriteResult) {
	t.Helper()
	out := open(t, path)
	require.Empty(t, findings(t, out))
	require.Empty(t, out.Warnings())
	sound(t, path)
	info := must(os.Stat(path))(t)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	require.Equal(t, []any{info.Size(), fmt.Sprintf("%x", sumOf(t, path))}, []any{res.Bytes, res.SHA256})
	require.Len(t, must(os.ReadDir(filepath.Dir(path)))(t), 1)
}

// contents returns all entries of all buckets.
func contents(t testing.TB, s *Snapshot) map[string][]entry {
	t.Helper()
	all := map[string][]entry{}
	for _, b := range s.db.Buckets {
		all[b.Name] = []entry{{value: fmt.Sprint(b.Sequence)}}
		require.NoError(t, s.entries(context.Background(), b.Name, func(k, v []byte) error {
			all[b.Name] = append(all[b.Name], entry{string(k), string(v)})
			return nil
		}))
	}
	return all
}

// sameBuckets compares the buckets other than records, except for the changes of cfg.
func sameBuckets(t testing.TB, s, out *Snapshot, cfg WriteConfig) {
	t.Helper()
	was, now := contents(t, s), contents(t, out)
	differ := []string{"key"}
	if len(cfg.Leases) > 0 {
		differ = append(differ, mvcc.LeaseBucket)
		want := must(s.Leases(context.Background()))(t)
		for _, l := range cfg.Leases {
			want[l.ID] = l.TTL
		}
		require.Equal(t, want, must(out.Leases(context.Background()))(t))
	}
	if c := cfg.Compact; c != nil {
		differ = append(differ, mvcc.MetaBucket)
		if c.Disarm || c.RecordsOnly {
			differ = append(differ, "alarm")
		}
		if c.RecordsOnly {
			differ = append(differ, "auth", "authUsers", "authRoles", "members", "members_removed", "cluster")
		}
	}
	for _, name := range differ {
		delete(was, name)
		delete(now, name)
	}
	require.Equal(t, was, now)
}

// sameAsRestored restores the snapshot, starts a real server and compares the served data with our
// reading, and HashKV with that of a live server after the same writes, unless live is nil.
func sameAsRestored(t testing.TB, path string, live *etcdtest.Server) {
	t.Helper()
	s, st := open(t, path), status(t, path)
	require.Equal(t, fmt.Sprintf("%08x", etcdtest.StatusOf(t, path).Hash), st.Hash,
		"the hash of etcdutl snapshot status")
	server := etcdtest.Start(t, etcdtest.Restore(t, path))
	defer server.Stop()
	require.Equal(t, st.Revision, etcdtest.Revision(t, server))
	served := etcdtest.Dump(t, server, 0)
	require.Len(t, served, st.Keys)
	require.Equal(t, served, liveAt(t, s, "", st.Revision))
	hash, _, _ := etcdtest.HashKV(t, server, st.Revision)
	require.Equal(t, hash, hashKV(t, s), "HashKV")
	require.Equal(t, fmt.Sprint(hash), st.HashKV, "HashKV of the status")
	if live != nil {
		theirs, _, _ := etcdtest.HashKV(t, live, st.Revision)
		require.Equal(t, theirs, hash, "HashKV")
	}
}

func hashKV(t testing.TB, s *Snapshot) uint32 {
	t.Helper()
	return must(s.Restored(context.Background(), 0))(t).HashKV
}

// servedAt compares every revision kept in the file with the server's answer.
func servedAt(t testing.TB, s *Snapshot, server *etcdtest.Server) {
	t.Helper()
	oldest, newest, err := s.Kept(context.Background())
	require.NoError(t, err)
	for rev := oldest; rev <= newest; rev++ {
		require.Equal(t, etcdtest.Dump(t, server, rev), liveAt(t, s, "", rev), "revision %d", rev)
	}
	if oldest == 1 {
		return // for revision 0 a server returns the latest
	}
	_, err = server.Client.Get(context.Background(), "/", clientv3.WithRev(oldest-1))
	require.ErrorIs(t, err, rpctypes.ErrCompacted)
	_, err = s.GetAt(context.Background(), []byte("/"), oldest-1)
	require.ErrorIs(t, err, ErrCompacted)
}

// sameSaved saves the server's content and compares the file, and its HashKV, with the server.
func sameSaved(t testing.TB, server *etcdtest.Server) *Snapshot {
	t.Helper()
	s := open(t, saved(t, server))
	require.Empty(t, findings(t, s))
	hash, rev, _ := etcdtest.HashKV(t, server, 0)
	require.Equal(t, revision(t, s), rev)
	require.Equal(t, hash, hashKV(t, s))
	return s
}

// saved returns the snapshot of a server, which the test must not change.
func saved(t testing.TB, server *etcdtest.Server) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "saved.db")
	etcdtest.Save(t, server, path)
	untouched(t, path)
	return path
}

// goesOn restores the file, with and without a raised revision, and lets a server write, compact
// and restart. leased is the key with lease 77, or "". see checks the server on the plain restore
// first.
func goesOn(t testing.TB, path string, leased string, see func(server *etcdtest.Server)) {
	t.Helper()
	sameAsRestored(t, path, nil)
	for _, bump := range []uint64{0, 1000} {
		var opts []etcdtest.RestoreOption
		if bump > 0 {
			opts = append(opts, etcdtest.BumpRevision(bump))
		}
		dir := etcdtest.Restore(t, path, opts...)
		server := etcdtest.Start(t, dir)
		require.GreaterOrEqual(t, etcdtest.Revision(t, server), revision(t, open(t, path)))
		if leased != "" {
			ttl := must(server.Client.TimeToLive(context.Background(), 77, clientv3.WithAttachedKeys()))(t)
			require.Equal(t, []any{int64(3600), [][]byte{[]byte(leased)}}, []any{ttl.GrantedTTL, ttl.Keys})
		}
		if bump == 0 {
			servedAt(t, open(t, path), server)
			if see != nil {
				see(server)
			}
		}
		lives(t, dir, server)
	}
}

// lives makes a server write, compact and restart.
func lives(t testing.TB, dataDir string, server *etcdtest.Server) {
	t.Helper()
	first := etcdtest.Revision(t, server)
	etcdtest.Run(t, server, "put /stay/a three\nput /go/a \"again\"\nput /new x\ndel /new\n")
	require.Equal(t, first+4, etcdtest.Revision(t, server))
	servedAt(t, sameSaved(t, server), server)
	etcdtest.Run(t, server, "compact "+strconv.FormatInt(first+2, 10))
	servedAt(t, sameSaved(t, server), server)
	etcdtest.Run(t, server, "put /stay/a four\ncompact")
	before := sameSaved(t, server)
	servedAt(t, before, server)
	server.Stop()
	again := etcdtest.Start(t, dataDir)
	require.Equal(t, modelOf(t, before), modelOf(t, sameSaved(t, again)))
	again.Stop()
}

// watched returns the events of a watch from rev to the last revision, for keys below /stay/ and
// /go/.
func watched(t testing.TB, server *etcdtest.Server, rev, last int64) (events []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	must(server.Client.Put(ctx, "/end", "x"))(t)
	for r := range server.Client.Watch(ctx, "\x00", clientv3.WithFromKey(), clientv3.WithRev(rev)) {
		require.NoError(t, r.Err())
		for _, ev := range r.Events {
			if string(ev.Kv.Key) == "/end" {
				return events
			}
			require.LessOrEqual(t, ev.Kv.ModRevision, last)
			events = append(events, fmt.Sprintf("%s %s %d", ev.Type, ev.Kv.Key, ev.Kv.ModRevision))
		}
	}
	t.Fatal("the watch ended")
	return nil
}

// recorded returns a recorded snapshot of testdata: of an etcd by its release, of a cluster by its
// path.
func recorded(t testing.TB, name string) string {
	t.Helper()
	if filepath.Dir(name) != "." {
		return gunzip(t, name)
	}
	return filepath.Join("..", "testdata", "etcd", "etcd-"+cmp.Or(name, "3.7")+".db")
}

func releases() []string { return []string{"3.4", "3.5", "3.6", "3.7"} }
