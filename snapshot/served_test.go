package snapshot

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

// past has keys that stay and keys that go, side by side in transactions and leases, with a
// compaction between.
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

// servedAt compares every revision that the file keeps with what the server answers for it.
func servedAt(t testing.TB, s *Snapshot, server *etcdtest.Server) {
	t.Helper()
	oldest, newest, err := s.Kept(context.Background())
	require.NoError(t, err)
	for rev := oldest; rev <= newest; rev++ {
		want, got := etcdtest.Dump(t, server, rev), liveAt(t, s, "", rev)
		require.Len(t, got, len(want), "revision %d", rev)
		if len(want) > 0 { // one has an empty list, the other none
			require.Equal(t, want, got, "revision %d", rev)
		}
	}
	if oldest == 1 {
		return // for 0 a server answers with the latest
	}
	_, err = server.Client.Get(context.Background(), "/", clientv3.WithRev(oldest-1))
	require.ErrorIs(t, err, rpctypes.ErrCompacted)
	_, err = s.GetAt(context.Background(), []byte("/"), oldest-1)
	require.ErrorIs(t, err, ErrCompacted)
}

// sameSaved saves what the server holds and compares that file, and its HashKV, with the server.
func sameSaved(t testing.TB, server *etcdtest.Server) *Snapshot {
	t.Helper()
	path := filepath.Join(t.TempDir(), "saved.db")
	etcdtest.Save(t, server, path)
	s := open(t, path)
	require.Empty(t, findings(t, s))
	hash, rev, _ := etcdtest.HashKV(t, server, 0)
	require.Equal(t, revision(t, s), rev)
	require.Equal(t, hash, hashKV(t, s))
	return s
}

// lives writes, compacts and restarts: what a server does with a file from one day to the next.
func lives(t testing.TB, dataDir string, server *etcdtest.Server) {
	t.Helper()
	first := etcdtest.Revision(t, server)
	etcdtest.Run(t, server, "put /stay/a three\nput /go/a \"again\"\nput /new x\ndel /new\n")
	require.Equal(t, first+4, etcdtest.Revision(t, server))
	servedAt(t, sameSaved(t, server), server)
	etcdtest.Run(t, server, fmt.Sprintf("compact %d", first+2))
	servedAt(t, sameSaved(t, server), server)
	etcdtest.Run(t, server, "put /stay/a four\ncompact")
	before := sameSaved(t, server)
	servedAt(t, before, server)
	server.Stop()
	again := etcdtest.Start(t, dataDir)
	require.Equal(t, modelOf(t, before), modelOf(t, sameSaved(t, again)))
	again.Stop()
}

// watched returns what a watch of everything from rev on tells of the keys below /stay/ and /go/,
// up to the last revision.
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

// TestScrubbedServed: a real server serves what is left at every revision, as one did that it was
// left out of, and goes on from there.
func TestScrubbedServed(t *testing.T) {
	live := etcdtest.Start(t, filepath.Join(t.TempDir(), "live"))
	etcdtest.Run(t, live, pastStory)
	s := sameSaved(t, live)
	kept := must(live.Client.Get(context.Background(), "/stay/", clientv3.WithPrefix()))(t)
	path, res := scrub(t, s, WriteConfig{Scrub: without("/go/")}, del("/go/a"), put("/stay/new", "n"))
	sameAsRestored(t, path, nil)

	for _, opts := range [][]etcdtest.RestoreOption{nil, {etcdtest.BumpRevision(1000)}} {
		dir := etcdtest.Restore(t, path, opts...)
		server := etcdtest.Start(t, dir)
		got := must(server.Client.Get(context.Background(), "\x00", clientv3.WithFromKey()))(t)
		require.Len(t, got.Kvs, len(kept.Kvs)+1)
		for i, kv := range kept.Kvs {
			require.Equal(t, kv.String(), got.Kvs[i+indexOf(got.Kvs[i].Key, kv.Key)].String())
		}
		ttl := must(server.Client.TimeToLive(context.Background(), 77, clientv3.WithAttachedKeys()))(t)
		require.Equal(t, [][]byte{[]byte("/stay/leased")}, ttl.Keys)
		if opts == nil {
			require.Equal(t, res.Revision, etcdtest.Revision(t, server))
			servedAt(t, open(t, path), server)
			oldest, _, err := s.Kept(context.Background())
			require.NoError(t, err)
			var want []string
			for _, event := range watched(t, live, oldest+1, revision(t, s)) {
				if !strings.Contains(event, " /go/") {
					want = append(want, event)
				}
			}
			require.Equal(t, append(want, fmt.Sprintf("PUT /stay/new %d", res.Revision-1)), watched(t, server, oldest+1, res.Revision))
		} else {
			require.Equal(t, res.Revision+1000, etcdtest.Revision(t, server))
		}
		lives(t, dir, server)
	}
}

// indexOf is 1 for a key behind another, "/stay/new", which only one of two lists has.
func indexOf(got, want []byte) int {
	if bytes.Equal(got, want) {
		return 0
	}
	return 1
}

// TestScrubbedHistories scrubs random histories that went through a real server.
func TestScrubbedHistories(t *testing.T) {
	for seed := range 4 {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			o := newRandom(t, uint64(seed), 7, 250)
			s := sameSaved(t, o.server)
			path, _ := scrub(t, s, WriteConfig{Scrub: without("/a/b/", "z"), Leases: []Lease{{1 << 40, 3600}}}, put("/new", "x"))
			sameAsRestored(t, path, nil)
			dir := etcdtest.Restore(t, path)
			server := etcdtest.Start(t, dir)
			servedAt(t, open(t, path), server)
			lives(t, dir, server)
		})
	}
}

// TestScrubbedCompressed: the bytes are those that scrubbing the expanded file makes.
func TestScrubbedCompressed(t *testing.T) {
	cfg := WriteConfig{Scrub: without("/registry/core")}
	packed, _ := writeWith(t, open(t, filepath.Join("..", "testdata", "kcp", "cache-before.db.gz")), cfg)
	expanded, _ := writeWith(t, open(t, gunzip(t, "kcp/cache-before.db")), cfg)
	require.Equal(t, sumOf(t, expanded), sumOf(t, packed))
}

// TestScrubbedBeforeCompaction: a server ends the compaction that another had begun.
func TestScrubbedBeforeCompaction(t *testing.T) {
	b := rebuilt(t, built(t, pastStory), 4096, func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("meta")).Put([]byte("scheduledCompactRev"), appendRevisionKey(nil, Revision{Main: 12}, false))
	})
	path, _ := scrub(t, open(t, copyOf(t, b)), WriteConfig{Scrub: without("/go/")}, put("/new", "x"))
	sameAsRestored(t, path, nil)
	dir := etcdtest.Restore(t, path)
	server := etcdtest.Start(t, dir)
	servedAt(t, open(t, path), server)
	lives(t, dir, server)
}

// TestScrubbedRecordings scrubs what real clusters left behind, of every release.
func TestScrubbedRecordings(t *testing.T) {
	for _, release := range []string{"3.4", "3.5", "3.6", "3.7"} {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			s := open(t, filepath.Join("..", "testdata", "etcd", "etcd-"+release+".db"))
			path, _ := scrub(t, s, WriteConfig{Scrub: without("/registry/configmaps/")}, put("/new", "x"))
			sameAsRestored(t, path, nil)
			dir := etcdtest.Restore(t, path)
			server := etcdtest.Start(t, dir)
			servedAt(t, open(t, path), server)
			lives(t, dir, server)
		})
	}
	for _, name := range []string{"kcp/root-before.db", "calico/before.db"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, gunzip(t, name))
			path, res := scrub(t, s, WriteConfig{Scrub: func(key []byte) bool { return len(key)%5 == 0 }})
			require.NotZero(t, res.Scrubbed)
			require.Less(t, res.Bytes, s.Size())
			sameAsRestored(t, path, nil)
			server := etcdtest.Start(t, etcdtest.Restore(t, path))
			servedAt(t, open(t, path), server)
		})
	}
}
