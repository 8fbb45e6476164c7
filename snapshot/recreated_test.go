package snapshot

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

// recreate sends a transaction that puts, deletes and puts keys again. A server rejects a put of a
// key deleted in the same request, unless the deleted range has no end.
func recreate(t testing.TB, r *rand.Rand, server *etcdtest.Server) {
	t.Helper()
	var ops []clientv3.Op
	keys := r.Perm(5)
	for _, key := range keys[:1+r.IntN(4)] {
		ops = append(ops, clientv3.OpPut(fmt.Sprintf("/k%d", key), fmt.Sprint(r.IntN(1000))))
	}
	for range r.IntN(4) {
		from := clientv3.OpDelete(fmt.Sprintf("/k%d", r.IntN(5)), clientv3.WithFromKey())
		ops = slices.Insert(ops, r.IntN(len(ops)+1), from)
	}
	must(server.Client.Txn(context.Background()).Then(ops...).Commit())(t)
}

// loses reports whether a server that compacts at rev loses a live key: a key deleted and put by
// the transaction at rev (etcd server/storage/mvcc/key_index.go, doCompact).
func loses(t testing.TB, s *Snapshot, rev int64) bool {
	t.Helper()
	deleted := map[string]bool{}
	for rec, err := range s.Records(context.Background()) {
		require.NoError(t, err)
		if rec.Revision.Main == rev && !rec.Tombstone && deleted[string(rec.Key)] {
			return true
		}
		if rec.Revision.Main == rev && rec.Tombstone {
			deleted[string(rec.Key)] = true
		}
	}
	return false
}

// TestRecreated checks histories with keys deleted and put in one transaction, and stores that end
// without a live key: every compaction equals that of a server unless the server loses a key. A
// server on the output has the whole input from the compact revision on, and our hash.
func TestRecreated(t *testing.T) {
	lost, empty := 0, 0
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 1))
		live := etcdtest.Start(t, filepath.Join(t.TempDir(), "live"))
		for range 12 {
			recreate(t, r, live)
		}
		if seed%2 == 0 {
			etcdtest.Run(t, live, "put /last x")
			must(live.Client.Delete(t.Context(), "/", clientv3.WithPrefix()))(t)
		}
		s := sameSaved(t, live)
		for rev := int64(2); rev <= revision(t, s); rev++ {
			path, _ := compact(t, s, Compaction{Keep: revision(t, s) - rev})
			sameHistory(t, s, open(t, path))
			sameAsRestored(t, path, nil)
			servedAt(t, open(t, path), etcdtest.Start(t, etcdtest.Restore(t, path)))
			if loses(t, s, rev) {
				lost++
				continue
			}
			server := etcdtest.Start(t, etcdtest.Restore(t, s.Path()))
			want := defragmented(t, server, rev)
			require.Equal(t, contents(t, want)["key"], contents(t, open(t, path))["key"], "seed %d, revision %d", seed,
				rev)
			sameAsRestored(t, want.Path(), nil)
			if status(t, want.Path()).Keys == 0 {
				empty++
			}
			server.Stop()
		}
	}
	require.Positive(t, lost)
	require.Positive(t, empty)
}

// sameHistory compares every revision kept in out.
func sameHistory(t testing.TB, s, out *Snapshot) {
	t.Helper()
	oldest, newest, err := out.Kept(context.Background())
	require.NoError(t, err)
	for rev := oldest; rev <= newest; rev++ {
		require.Equal(t, liveAt(t, s, "", rev), liveAt(t, out, "", rev), "revision %d", rev)
	}
}

// TestReportedCompactions checks the files of bug reports, with the remaining records.
func TestReportedCompactions(t *testing.T) {
	for name, want := range map[string]string{
		"b1-recreate-in-txn-head": "/registry/configmaps/shop/other 3.0 false, " +
			"/registry/configmaps/shop/prices 4.1 false",
		"b3-real-fromkey-txn": "/registry/configmaps/shop/prices 4.2 false, " +
			"/registry/configmaps/shop/other 4.3 false",
		"b5-del-put-del-in-txn": "/registry/b 3.0 false, /registry/a 4.2 true",
	} {
		s := open(t, gunzip(t, "reports/"+name+".db"))
		path, _ := compact(t, s, Compaction{})
		var left []string
		for rec, err := range open(t, path).Records(t.Context()) {
			require.NoError(t, err)
			left = append(left, fmt.Sprint(string(rec.Key), " ", rec.Revision, " ", rec.Tombstone))
		}
		require.Equal(t, want, strings.Join(left, ", "), name)
		sameAsRestored(t, path, nil)
	}
	require.Equal(t, uint32(1661379183), hashKV(t, open(t, gunzip(t, "reports/c2-all-keys-deleted.db"))))
}
