package snapshot

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

// defragmented returns the content of the server after a compaction at rev and a defragmentation.
func defragmented(t testing.TB, server *etcdtest.Server, rev int64) *Snapshot {
	t.Helper()
	etcdtest.Run(t, server, fmt.Sprintf("compact %d", rev))
	must(server.Client.Defragment(context.Background(), server.URL))(t)
	return sameSaved(t, server)
}

// withoutIndex removes the raft index, which counts compactions.
func withoutIndex(all map[string][]entry) map[string][]entry {
	all["meta"] = slices.DeleteFunc(all["meta"], func(e entry) bool { return e.key == "consistent_index" })
	return all
}

// likeAServer compares the compaction of s, with the changes already made on the server, with the
// server's compaction, entry by entry, for all of keeps in descending order.
func likeAServer(t testing.TB, s *Snapshot, server *etcdtest.Server, keeps []int64, changes ...Change) (path string) {
	t.Helper()
	oldest, _, err := s.Kept(context.Background())
	require.NoError(t, err)
	current := etcdtest.Revision(t, server)
	for _, keep := range keeps {
		if current-keep <= oldest {
			continue
		}
		want := defragmented(t, server, current-keep)
		var res WriteResult
		path, res = compact(t, s, Compaction{Keep: keep}, changes...)
		out := open(t, path)
		require.Equal(t, withoutIndex(contents(t, want)), withoutIndex(contents(t, out)), "keep %d", keep)
		require.Equal(t, current, res.Revision)
		require.Equal(t, len(modelOf(t, want)), res.Keys)
		require.LessOrEqual(t, res.Bytes, want.Size(), "keep %d", keep)
	}
	return path
}

// sameHash compares HashKV at the current and at the compact revision, between a server on the file
// and a server compacted there. Until a restart the compacted server answers for the compact
// revision with the hash computed during the compaction.
func sameHash(t testing.TB, path string, live *etcdtest.Server, compacted int64) {
	t.Helper()
	sameAsRestored(t, path, nil)
	ours, theirs := etcdtest.Start(t, etcdtest.Restore(t, path)), etcdtest.Start(t, etcdtest.Restore(t, saved(t, live)))
	for _, rev := range []int64{0, compacted} {
		want, at, of := etcdtest.HashKV(t, theirs, rev)
		got, gotAt, gotOf := etcdtest.HashKV(t, ours, rev)
		require.Equal(t, []any{want, at, of, compacted}, []any{got, gotAt, gotOf, gotOf}, "revision %d", rev)
	}
	want, _, _ := etcdtest.HashKV(t, live, 0)
	got, _, _ := etcdtest.HashKV(t, ours, 0)
	require.Equal(t, want, got)
}

// TestCompacted checks that, for every possible compact revision, below, among and above the
// changes, the file has the same entries as a real server after the same writes, compaction and
// defragmentation, and is no larger.
func TestCompacted(t *testing.T) {
	live := etcdtest.Start(t, filepath.Join(t.TempDir(), "live"))
	etcdtest.Run(t, live, pastStory)
	s := sameSaved(t, live)
	etcdtest.Run(t, live, "put /stay/a changed\ndel /go/a\nput /new x\ndel /stay/big\nput /go/gone back\ndel /stay/t")
	changes := []Change{put("/stay/a", "changed"), del("/go/a"), del("/none"), put("/new", "x"), del("/stay/big"),
		put("/go/gone", "back"), del("/stay/t")}
	var keeps []int64
	for keep := etcdtest.Revision(t, live); keep >= 0; keep-- {
		keeps = append(keeps, keep)
	}
	likeAServer(t, s, live, keeps, changes...)
}

// TestCompactedHistories compacts random histories of a real server; the server and a server on the
// output continue in the same way.
func TestCompactedHistories(t *testing.T) {
	for seed := range 4 {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			o := newRandom(t, uint64(seed), 9, 300)
			s := sameSaved(t, o.server)
			n := o.model.rev - o.compact
			path := likeAServer(t, s, o.server, []int64{n - 1, n * 2 / 3, n / 2, n / 3, 5, 1, 0})
			sameHash(t, path, o.server, revision(t, s))
			goesOn(t, path, "", nil)
		})
	}
}

// TestCompactedServed checks that HashKV and watches are the same on a compacted server and on a
// server restored from the output, and that the restored server works, with and without a raised
// revision.
func TestCompactedServed(t *testing.T) {
	live := etcdtest.Start(t, filepath.Join(t.TempDir(), "live"))
	etcdtest.Run(t, live, pastStory+"del /go/last\nput /stay/a three\nput /go/big b")
	s := sameSaved(t, live)
	for _, keep := range []int64{2, 0} { // 2: compaction at a deletion, which a watch must return
		rev := revision(t, s) - keep
		path := likeAServer(t, s, live, []int64{keep})
		sameHash(t, path, live, rev)
		goesOn(t, path, "/stay/leased", func(server *etcdtest.Server) {
			if keep > 0 { // the live server will be compacted again
				events := watched(t, server, rev, revision(t, s))
				require.Equal(t, fmt.Sprintf("DELETE /go/last %d", rev), events[0])
				require.Len(t, events, 3)
			}
		})
	}
	require.Equal(t, watched(t, live, revision(t, s), revision(t, s)),
		[]string{fmt.Sprintf("PUT /go/big %d", revision(t, s))})
}

// TestCompactedRecordings compacts every shape and recordings of real clusters, and compares with a
// server restored from the same file.
func TestCompactedRecordings(t *testing.T) {
	inputs := map[string]func(t testing.TB) string{}
	for _, name := range append(releases(), "kcp/root-before.db", "calico/before.db", "kubectl/all.db") {
		inputs[name] = func(t testing.TB) string { return recorded(t, name) }
	}
	for _, sh := range shapes() {
		inputs[sh.name] = func(t testing.TB) string { return copyOf(t, sh.make(t)) }
	}
	for name, path := range inputs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, path(t))
			rev := revision(t, s)
			out, res := compact(t, s, Compaction{})
			require.LessOrEqual(t, res.Bytes, s.Size())
			require.Equal(t, rev, mustRevision(t, contents(t, open(t, out))[mvcc.MetaBucket]))
			if s.db.PageSize < 4096 {
				return
			}
			var opts []etcdtest.RestoreOption
			if s.raw {
				opts = append(opts, etcdtest.SkipHashCheck)
			}
			server := etcdtest.Start(t, etcdtest.Restore(t, s.Path(), opts...))
			if status(t, s.Path()).CompactRevision < rev {
				want := defragmented(t, server, rev)
				require.Equal(t, entriesOf(t, want), entriesOf(t, open(t, out)))
				if s.db.PageSize == want.db.PageSize {
					require.LessOrEqual(t, res.Bytes, want.Size())
				}
			}
			sameHash(t, out, server, rev)
		})
	}
}

// mustRevision returns the compact revision in the entries of a meta bucket; both entries must be
// equal.
func mustRevision(t testing.TB, meta []entry) int64 {
	t.Helper()
	found := map[string]int64{}
	for _, e := range meta {
		if strings.HasSuffix(e.key, "CompactRev") {
			rev, _, err := mvcc.ParseRevisionKey([]byte(e.value))
			require.NoError(t, err)
			found[e.key] = rev.Main
		}
	}
	require.Len(t, found, 2)
	require.Equal(t, found[mvcc.FinishedCompact], found[mvcc.ScheduledCompact])
	return found[mvcc.FinishedCompact]
}

// TestCompactedBefore checks that a scheduled compaction is finished, and that no compact revision
// decreases.
func TestCompactedBefore(t *testing.T) {
	for _, rev := range [][2]int64{{1, 8}, {8, 8}, {8, 2}, {0, 0}} {
		s := open(t, copyOf(t, rebuilt(t, built(t, long), 4096, compacted(rev[0], rev[1]))))
		for _, keep := range []int64{0, 1, 3, 1000} {
			want := max(10-keep, rev[0], rev[1])
			path, res := compact(t, s, Compaction{Keep: keep})
			require.Equal(t, int64(10), res.Revision)
			st := status(t, path)
			require.Equal(t, []int64{want, want}, []int64{st.CompactRevision, st.ScheduledCompact},
				"%d, keep %d", rev, keep)
			sameAsRestored(t, path, nil)
		}
	}
	_, err := Write(t.Context(), filepath.Join(t.TempDir(), "out.db"), open(t, copyOf(t, built(t, long))), seq(),
		WriteConfig{Compact: &Compaction{Keep: -1}})
	require.ErrorContains(t, err, "no negative number")
}

// TestCompactedBumped checks that records without a key, from --bump-revision, are compacted like
// records of one key.
func TestCompactedBumped(t *testing.T) {
	path := etcdtest.Build(t, long)
	for range 3 {
		server := etcdtest.Start(t, etcdtest.Restore(t, path, etcdtest.BumpRevision(100)))
		etcdtest.Run(t, server, "put /after bump\nput /after again\ndel /d\nput /d new")
		path = saved(t, server)
		server.Stop()
	}
	s := open(t, path)
	require.NotZero(t, status(t, path).EmptyRecords)
	server := etcdtest.Start(t, etcdtest.Restore(t, path))
	for _, keep := range []int64{3, 1, 0} {
		want := defragmented(t, server, revision(t, s)-keep)
		out, _ := compact(t, s, Compaction{Keep: keep})
		require.Equal(t, entriesOf(t, want), entriesOf(t, open(t, out)))
	}
	scrubbed, _ := write(t, s, WriteConfig{Compact: &Compaction{}, Scrub: without("/after")})
	require.Equal(t, 1, status(t, scrubbed).EmptyRecords, "that of the scrub alone")
	sameAsRestored(t, scrubbed, nil)
}

// TestCompactedLiveOnly checks that even a deletion at the last revision is removed, and that the
// revision does not decrease.
func TestCompactedLiveOnly(t *testing.T) {
	s := open(t, copyOf(t, built(t, pastStory)))
	path, res := compact(t, s, Compaction{LiveOnly: true}, put("/new", "x"), del("/go/a"), del("/go/last"))
	out := open(t, path)
	require.Equal(t, revision(t, s)+3, revision(t, out))
	require.Equal(t, revision(t, out), res.Revision)
	require.Len(t, entriesOf(t, out), res.Keys)
	goesOn(t, path, "", nil)
	kept, _ := compact(t, s, Compaction{}, put("/new", "x"), del("/go/a"), del("/go/last"))
	require.Len(t, entriesOf(t, open(t, kept)), res.Keys+1, "which a server keeps for a watch")
	_, err := Write(t.Context(), filepath.Join(t.TempDir(), "out.db"), s, seq(),
		WriteConfig{Compact: &Compaction{Keep: 1, LiveOnly: true}})
	require.Error(t, err)
}

// TestNoHistoryIsLeft searches the whole output for every eight bytes of deleted or overwritten
// data.
func TestNoHistoryIsLeft(t *testing.T) {
	raw, values := stains(t, 4096)
	s := open(t, copyOf(t, raw))
	var gone []Change
	for key := range modelOf(t, s) {
		if strings.HasPrefix(key, "/secret/") {
			gone = append(gone, del(key))
		}
	}
	require.NotEmpty(t, gone)
	path, res := compact(t, s, Compaction{LiveOnly: true}, gone...)
	require.Equal(t, 300, res.Keys)
	noneIsLeft(t, path, values)
}

// TestDisarmed checks that NOSPACE alarms are removed, that other alarms stay, and that a server
// accepts writes again.
func TestDisarmed(t *testing.T) {
	alarms := func(tx *bbolt.Tx) error {
		for _, alarm := range []string{"\x08\x07\x10\x01", "\x08\x08\x10\x01", "\x08\x07\x10\x02"} {
			if err := tx.Bucket([]byte("alarm")).Put([]byte(alarm), nil); err != nil {
				return err
			}
		}
		return nil
	}
	s := open(t, copyOf(t, rebuilt(t, built(t, long), 4096, alarms)))
	kept, _ := compact(t, s, Compaction{})
	require.Len(t, status(t, kept).Alarms, 3)
	path, _ := compact(t, s, Compaction{Disarm: true})
	require.Equal(t, []Raised{{AlarmCorrupt, "7"}}, status(t, path).Alarms)
	require.Equal(t, entriesOf(t, open(t, kept)), entriesOf(t, open(t, path)))
}

// TestRecordsOnly checks that users, roles and members are removed, and that a server starts on the
// rest.
func TestRecordsOnly(t *testing.T) {
	server := etcdtest.Start(t, t.TempDir())
	etcdtest.Run(t, server, "grant 7 600\nput /a one lease=7\nput /a two\nput /b three")
	ctx := context.Background()
	must(server.Client.UserAdd(ctx, "root", "MARKER-password"))(t)
	must(server.Client.RoleAdd(ctx, "MARKER-role"))(t)
	path, _ := compact(t, sameSaved(t, server), Compaction{LiveOnly: true, RecordsOnly: true})
	for name, entries := range contents(t, open(t, path)) {
		if name != "key" && name != "lease" && name != "meta" {
			require.Len(t, entries, 1, "%s has no entry", name)
		}
	}
	restored := etcdtest.Start(t, etcdtest.Restore(t, path))
	all := must(restored.Client.Get(ctx, "/", clientv3.WithPrefix()))(t)
	require.Len(t, all.Kvs, 2)
}
