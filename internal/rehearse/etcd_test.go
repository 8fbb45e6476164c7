package rehearse

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot"
)

// story is a script with leases, deletions, recreated keys, transactions, an encrypted value and
// two large values.
const story = `
grant 77 3600
put /a one
put /a two lease=77
put /gone x
del /gone
put /back first
del /back
put /back second
put /encrypted "k8s:enc:aescbc:v1:key1:\x00\xff\x13"
put /large size=3000000
put /larger size=3000000
txn {
  put /t/1 x
  put /t/2 y lease=77
  del /a
}
put /last x
del /last
`

// recorded returns snapshots of real servers.
func recorded() []string {
	return []string{
		"calico/before.db.gz", "calico/after-cleanup.db.gz", "kubectl/all.db.gz", "kcp/root-before.db.gz",
		"kcp/cache-before.db.gz",
		"storage/before.db.gz", "etcd/etcd-3.4.db", "etcd/etcd-3.5.db", "etcd/etcd-3.6.db", "etcd/etcd-3.7.db",
		"hostile/v-cindex.db.gz", "hostile/v-lease-neg.db.gz", "hostile/v-memname.db.gz",
	}
}

// file returns the path of a recorded snapshot.
func file(t testing.TB, name string) string {
	path := filepath.Join("..", "..", "testdata", name)
	if strings.HasSuffix(name, ".gz") {
		return etcdtest.Unpack(t, path)
	}
	return path
}

func open(t testing.TB, path string) *snapshot.Snapshot {
	t.Helper()
	s, err := snapshot.Open(t.Context(), path, snapshot.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func compared(t testing.TB, server *etcdtest.Server, s *snapshot.Snapshot, bump int64) served {
	t.Helper()
	r, err := compareServed(t.Context(), server.Client, s, bump, mostDifferences)
	require.NoError(t, err)
	return r
}

// same checks that a server and the file agree, without a bump and with one.
func same(t testing.TB, path string) {
	t.Helper()
	for _, bump := range []int64{0, 1000} {
		s := open(t, path)
		var options []etcdtest.RestoreOption
		if bump > 0 {
			options = append(options, etcdtest.BumpRevision(uint64(bump)))
		}
		if !s.HasDigest() {
			options = append(options, etcdtest.SkipHashCheck)
		}
		server := etcdtest.Start(t, etcdtest.Restore(t, path, options...))
		r := compared(t, server, s, bump)
		require.True(t, r.same(), "bump %d: %+v", bump, r)
		keys, err := s.Keys(t.Context())
		require.NoError(t, err)
		require.Equal(t, keys, r.Keys)
		require.Equal(t, etcdtest.Revision(t, server), r.File.Revision)
		etcdtest.Run(t, server, "put /later x\ndel /later") // a later key, not part of the comparison
		require.True(t, compared(t, server, s, bump).same())
		server.Stop()
	}
}

func TestSameAsServed(t *testing.T) {
	for _, name := range recorded() {
		t.Run(name, func(t *testing.T) { same(t, file(t, name)) })
	}
	for name, script := range map[string]string{
		"empty":            "",
		"story":            story,
		"compacted":        story + "compact 9\nput /new x",
		"all compacted":    story + "compact",
		"nothing is left":  "put /a x\ndel /a",
		"nothing, compact": "put /a x\ndel /a\ncompact",
	} {
		t.Run(name, func(t *testing.T) { same(t, etcdtest.Build(t, script)) })
	}
}

// TestSameAsServedUnfinished checks a server that finishes the compaction of another server, and
// the second bump of a snapshot that was bumped and saved again.
func TestSameAsServedUnfinished(t *testing.T) {
	for _, at := range []int64{5, 9, 17} {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			dir := etcdtest.Restore(t, etcdtest.Build(t, story))
			etcdtest.Edit(t, dir, func(tx backend.UnsafeReadWriter) { mvcc.UnsafeSetScheduledCompact(tx, at) })
			s := open(t, filepath.Join(dir, "member", "snap", "db"))
			server := etcdtest.Start(t, copied(t, dir))
			r := compared(t, server, s, 0)
			require.True(t, r.same(), "%+v", r)
			require.Equal(t, at, r.File.CompactRevision)
		})
	}
	first := etcdtest.Start(t, etcdtest.Restore(t, etcdtest.Build(t, story), etcdtest.BumpRevision(50)))
	etcdtest.Run(t, first, "put /new x\nput /back third")
	path := filepath.Join(t.TempDir(), "bumped.db")
	etcdtest.Save(t, first, path)
	same(t, path)
}

// TestSameAsServedLeases checks that a lease expired in the meantime is no difference.
func TestSameAsServedLeases(t *testing.T) {
	path := etcdtest.Build(t, "grant 7 2\nput /short x lease=7\nput /stays x")
	s := open(t, path)
	server := etcdtest.Start(t, etcdtest.Restore(t, path))
	require.Eventually(t, func() bool { return len(etcdtest.Dump(t, server, 0)) == 1 }, time.Minute,
		50*time.Millisecond)
	require.True(t, compared(t, server, s, 0).same())
}

// TestChangedIsNamed changes one record after the restore.
func TestChangedIsNamed(t *testing.T) {
	path := etcdtest.Build(t, "grant 7 3600\nput /a one\nput /b two\nput /b three\nput /c four lease=7")
	for name, tt := range map[string]struct {
		edit func(kv *mvccpb.KeyValue) // of /b at revision 4
		want []difference
	}{
		"key": {func(kv *mvccpb.KeyValue) { kv.Key = []byte("/aa") }, []difference{
			{"/aa", "the server has it, the file has not"},
			{"/b", "another value (3 bytes, the file has 5), mod_revision 3 (the file has 4), version 1 (the " +
				"file has 2)"},
		}},
		"last key": {func(kv *mvccpb.KeyValue) { kv.Key = []byte("/z") }, []difference{
			{"/b", "another value (3 bytes, the file has 5), mod_revision 3 (the file has 4), version 1 (the " +
				"file has 2)"},
			{"/z", "the server has it, the file has not"},
		}},
		"value": {func(kv *mvccpb.KeyValue) { kv.Value = []byte("ThreE") },
			[]difference{{"/b", "another value (5 bytes, the file has 5)"}}},
		"version": {func(kv *mvccpb.KeyValue) { kv.Version = 9 },
			[]difference{{"/b", "version 9 (the file has 2)"}}},
		"create_revision": {func(kv *mvccpb.KeyValue) { kv.CreateRevision = 4 },
			[]difference{{"/b", "create_revision 4 (the file has 3)"}}},
		"mod_revision": {func(kv *mvccpb.KeyValue) { kv.ModRevision = 3 },
			[]difference{{"/b", "mod_revision 3 (the file has 4)"}}},
		"lease": {func(kv *mvccpb.KeyValue) { kv.Lease = 7 },
			[]difference{{"/b", "lease 7 (the file has 0)"}}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := etcdtest.Restore(t, path)
			etcdtest.Edit(t, dir, func(tx backend.UnsafeReadWriter) { edit(t, tx, 4, tt.edit) })
			r := compared(t, etcdtest.Start(t, dir), open(t, path), 0)
			require.False(t, r.same())
			require.Equal(t, tt.want, r.Differences)
			require.NotEqual(t, r.File.HashKV, r.Server.HashKV)
		})
	}
}

// TestChangedIsNamedMissing removes the last record and its revision, or all records.
func TestChangedIsNamedMissing(t *testing.T) {
	path := etcdtest.Build(t, "put /a one\nput /b two")
	for last, want := range map[int64][]difference{
		3: {{"/b", "the file has it, the server has not"}},
		2: {{"/a", "the file has it, the server has not"}, {"/b", "the file has it, the server has not"}},
	} {
		dir := etcdtest.Restore(t, path)
		etcdtest.Edit(t, dir, func(tx backend.UnsafeReadWriter) {
			for rev := last; rev <= 3; rev++ {
				tx.UnsafeDelete(schema.Key, revision(rev))
			}
		})
		r := compared(t, etcdtest.Start(t, dir), open(t, path), 0)
		require.Equal(t, want, r.Differences)
		require.Equal(t, []int64{3, last - 1}, []int64{r.File.Revision, r.Server.Revision})
	}
}

// TestChangedIsNamedHistory changes a superseded record, which only HashKV shows.
func TestChangedIsNamedHistory(t *testing.T) {
	path := etcdtest.Build(t, "put /a one\nput /a two")
	dir := etcdtest.Restore(t, path)
	etcdtest.Edit(t, dir, func(tx backend.UnsafeReadWriter) {
		edit(t, tx, 2, func(kv *mvccpb.KeyValue) { kv.Value = []byte("ONE") })
	})
	r := compared(t, etcdtest.Start(t, dir), open(t, path), 0)
	require.Empty(t, r.Differences)
	require.False(t, r.same())
}

func TestValuesStaySecret(t *testing.T) {
	s := open(t, etcdtest.Build(t, "put /a hunter2"))
	server := etcdtest.Start(t, etcdtest.Restore(t, etcdtest.Build(t, "put /a hunter3")))
	text, err := json.Marshal(compared(t, server, s, 0))
	require.NoError(t, err)
	require.NotContains(t, string(text), "hunter")
	require.Contains(t, string(text), `"Key":"/a"`)
}

// TestBoundedDifferences checks many pages, each sized by its values, with more differences than
// are kept.
func TestBoundedDifferences(t *testing.T) {
	var ours, theirs strings.Builder
	for i := range 2500 {
		fmt.Fprintf(&ours, "put /k/%05d size=%d\n", i, 100+i%7*2000)
		if i%2 == 0 {
			fmt.Fprintf(&theirs, "put /k/%05d x\n", i)
		} else {
			fmt.Fprintf(&theirs, "put /m/%05d x\n", i)
		}
	}
	s := open(t, etcdtest.Build(t, ours.String()))
	server := etcdtest.Start(t, etcdtest.Restore(t, etcdtest.Build(t, theirs.String())))
	r, err := compareServed(t.Context(), server.Client, s, 0, 7)
	require.NoError(t, err)
	require.Len(t, r.Differences, 7)
	require.Equal(t, 2500+1250-7, r.More)
	require.Equal(t, "/k/00001", r.Differences[1].Key)
	r = compared(t, server, s, 0)
	require.Len(t, r.Differences, mostDifferences)
	r, err = compareServed(t.Context(), server.Client, open(t, etcdtest.Build(t, strings.Repeat("put /a x\n", 2500))),
		0, 1)
	require.NoError(t, err)
	require.Equal(t, 2500, r.More, "all of the server")
}

// TestNoServer checks the errors of a stopped server, of several servers, and of a file that cannot
// be bumped.
func TestNoServer(t *testing.T) {
	path := etcdtest.Build(t, "put /a x")
	server := etcdtest.Start(t, etcdtest.Restore(t, path))
	_, err := compareServed(t.Context(), server.Client, open(t, file(t, "hostile/v-revmaxbump.db.gz")), 1_000_000_000,
		mostDifferences)
	require.ErrorContains(t, err, "no server can raise revision")
	server.Client.SetEndpoints(server.URL, server.URL)
	_, err = compareServed(t.Context(), server.Client, open(t, path), 0, mostDifferences)
	require.ErrorContains(t, err, "2 endpoints")
	server.Stop()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{server.URL}, Logger: zap.NewNop()})
	require.NoError(t, err)
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = compareServed(ctx, client, open(t, path), 0, mostDifferences)
	require.ErrorContains(t, err, server.URL)
}

// revision returns the key of a record.
func revision(main int64) []byte {
	return mvcc.RevToBytes(mvcc.Revision{Main: main}, mvcc.NewRevBytes())
}

// edit changes the record of a revision.
func edit(t testing.TB, tx backend.UnsafeReadWriter, main int64, fn func(kv *mvccpb.KeyValue)) {
	t.Helper()
	_, values := tx.UnsafeRange(schema.Key, revision(main), nil, 0)
	require.Len(t, values, 1)
	var kv mvccpb.KeyValue
	require.NoError(t, proto.Unmarshal(values[0], &kv))
	fn(&kv)
	value, err := proto.Marshal(&kv)
	require.NoError(t, err)
	tx.UnsafePut(schema.Key, revision(main), value)
}

// copied returns a copy of a data directory.
func copied(t testing.TB, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copied")
	require.NoError(t, os.CopyFS(to, os.DirFS(dir)))
	return to
}
