package snapshot

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

// TestDeleted checks that only finally deleted keys are returned, with the last value before the
// deletion, unless a compaction at the revision of the deletion removed the value.
func TestDeleted(t *testing.T) {
	script := "put /a 2\nput /a 3\ndel /a\nput /b 5\ndel /b\nput /b 7\nput /c 8\ndel /c\nput /c 10\ndel /c\nput " +
		"/d 12\ndel /d"
	values := func(compact string) (out []string) {
		for _, d := range deletedIn(t, open(t, copyOf(t, built(t, script+compact))), "") {
			value := "gone"
			if d.Last != nil {
				value = string(d.Last.Value)
			}
			out = append(out, string(d.Key)+" "+d.Revision.String()+" "+value)
		}
		return out
	}
	require.Equal(t, []string{"/a 4.0 3", "/c 11.0 10", "/d 13.0 12"}, values(""))
	require.Equal(t, []string{"/c 11.0 10", "/d 13.0 12"}, values("\ncompact 10"))
	require.Equal(t, []string{"/c 11.0 gone", "/d 13.0 12"}, values("\ncompact 11"))
	require.Equal(t, []string{"/d 13.0 gone"}, values("\ncompact"))
}

// TestLiveAtOfOddFiles checks that of two records of a key at or below a finished compaction the
// later one counts, as in a server, and that two consecutive tombstones are one deletion.
func TestLiveAtOfOddFiles(t *testing.T) {
	b := rebuilt(t, built(t, long), 4096, func(tx *bbolt.Tx) error {
		for main := int64(11); main <= 12; main++ {
			if err := putRecord(tx.Bucket([]byte("key")), Record{Revision: Revision{Main: main}, Key: []byte("/d"),
				Tombstone: true}); err != nil {
				return err
			}
		}
		return compacted(9, 9)(tx)
	})
	s := open(t, copyOf(t, b))
	values := func(rev int64) map[string]string {
		m := map[string]string{}
		for _, kv := range liveAt(t, s, "", rev) {
			require.NotContains(t, m, string(kv.Key))
			m[string(kv.Key)] = string(kv.Value)
		}
		return m
	}
	require.Equal(t, map[string]string{"/a": "9", "/b": "6"}, values(9))
	require.Equal(t, map[string]string{"/a": "9", "/b": "6", "/d": "10"}, values(10))
	require.Equal(t, map[string]string{"/a": "9", "/b": "6"}, values(11))
	deleted := deletedIn(t, s, "/d")
	require.Len(t, deleted, 1)
	require.Equal(t, int64(12), deleted[0].Revision.Main)
	require.Equal(t, "10", string(deleted[0].Last.Value))
}

// TestLiveAtMemory checks that only keys above the compaction are kept in memory.
func TestLiveAtMemory(t *testing.T) {
	s := open(t, copyOf(t, built(t, "put /a 2\nput /b 3\nput /c 4\nput /a 5\ncompact 4\nput /d 6\nput /a 7")))
	x := must(s.index(context.Background()))(t)
	p := must(newPast(context.Background(), x, nil, 6))(t)
	require.Len(t, p.latest.ordinals, 2, "/a and /d")
}

// TestPastEnds checks that a caller can end the scan early, by break or by ctx.
func TestPastEnds(t *testing.T) {
	s := open(t, copyOf(t, built(t, long+"\ndel /a\ndel /d")))
	ctx, cancel := context.WithCancel(context.Background())
	for range s.LiveAt(ctx, nil, 6) {
		break
	}
	for range s.Deleted(ctx, nil) {
		break
	}
	cancel()
	for _, err := range s.LiveAt(ctx, nil, 6) {
		require.ErrorIs(t, err, context.Canceled)
	}
	for _, err := range s.Deleted(ctx, nil) {
		require.ErrorIs(t, err, context.Canceled)
	}
}

// pastIsTheModel compares LiveAt, at some kept revisions, and Deleted with a map filled from all
// records in order, for any file.
func pastIsTheModel(t testing.TB, s *Snapshot) {
	t.Helper()
	ctx := context.Background()
	oldest, newest, err := s.Kept(ctx)
	require.NoError(t, err)
	for _, rev := range []int64{oldest, oldest + (newest-oldest)/2, newest - 1, newest} {
		if rev < oldest {
			continue
		}
		want, got := map[string]Revision{}, map[string]Revision{}
		for r, err := range s.Records(ctx) {
			require.NoError(t, err)
			if r.Revision.Main > rev {
				break
			}
			if delete(want, string(r.Key)); !r.Tombstone && len(r.Key) > 0 {
				want[string(r.Key)] = r.Revision
			}
		}
		for r, err := range s.LiveAt(ctx, nil, rev) {
			require.NoError(t, err)
			require.NotContains(t, got, string(r.Key))
			got[string(r.Key)] = r.Revision
		}
		require.Equal(t, want, got, "revision %d", rev)
	}
	deletedIsTheModel(t, s)
}

func deletedIsTheModel(t testing.TB, s *Snapshot) {
	t.Helper()
	want, got, puts := map[string][2]Revision{}, map[string][2]Revision{}, map[string]Revision{}
	for r, err := range s.Records(context.Background()) {
		require.NoError(t, err)
		if delete(want, string(r.Key)); !r.Tombstone {
			puts[string(r.Key)] = r.Revision
		} else if len(r.Key) > 0 {
			want[string(r.Key)] = [2]Revision{r.Revision, puts[string(r.Key)]}
		}
	}
	for _, d := range deletedIn(t, s, "") {
		at := [2]Revision{d.Revision}
		if d.Last != nil {
			at[1] = d.Last.Revision
		}
		got[string(d.Key)] = at
	}
	require.Equal(t, want, got)
}

func kvOf(r *Record) etcdtest.KV {
	return etcdtest.KV{Key: r.Key, Value: r.Value, CreateRevision: r.CreateRevision, ModRevision: r.ModRevision,
		Version: r.Version, Lease: r.Lease}
}

// liveAt returns the records of LiveAt in key order.
func liveAt(t testing.TB, s *Snapshot, prefix string, rev int64) (out []etcdtest.KV) {
	t.Helper()
	before := Revision{}
	for r, err := range s.LiveAt(context.Background(), []byte(prefix), rev) {
		require.NoError(t, err)
		require.Negative(t, before.Compare(r.Revision), "in revision order")
		before = r.Revision
		out = append(out, kvOf(r))
	}
	slices.SortFunc(out, func(a, b etcdtest.KV) int { return bytes.Compare(a.Key, b.Key) })
	requireSorted(t, s, prefix, rev, out)
	return out
}

// requireSorted requires that Sorted has these records, and finds each by key.
func requireSorted(t testing.TB, s *Snapshot, prefix string, rev int64, want []etcdtest.KV) {
	t.Helper()
	sorted := must(s.Sorted(context.Background(), []byte(prefix), rev))(t)
	require.Equal(t, len(want), sorted.Len())
	for i, kv := range want {
		rec := must(sorted.At(i))(t)
		require.Equal(t, kv, kvOf(rec))
		for _, key := range [][]byte{kv.Key, append(slices.Clone(kv.Key), 0)} {
			at := must(sorted.Search(key))(t)
			require.Equal(t, i+len(key)-len(kv.Key), at)
		}
	}
}
