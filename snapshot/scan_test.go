package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

// TestScan checks the live flag and the entry size of each record.
func TestScan(t *testing.T) {
	path := etcdtest.Build(t, "grant 300 60\nput a 1\nput b 2 lease=300\nput a 3\ndel b\nput c "+
		"size=5000\ncompact\nput c 4\nput d 5\ndel d\n")
	ctx, s := context.Background(), open(t, path)
	type seen struct {
		key, value      string
		live, tombstone bool
	}
	var got []seen
	var sizes []int
	for r, err := range s.Scan(ctx) {
		require.NoError(t, err)
		got = append(got, seen{string(r.Key), string(r.Value[:min(1, len(r.Value))]), r.Live, r.Tombstone})
		sizes = append(sizes, r.Stored)
	}
	blob := string(etcdtest.Blob("c", 1))
	require.Equal(t, []seen{{"a", "3", true, false}, {"c", blob, false, false}, {"c", "4", true, false},
		{"d", "5", false, false}, {"d", "", false, true}}, got)

	db := must(bbolt.Open(path, 0o400, &bbolt.Options{ReadOnly: true}))(t)
	defer db.Close()
	require.NoError(t, db.View(func(tx *bbolt.Tx) error {
		i := 0
		return tx.Bucket([]byte("key")).ForEach(func(k, v []byte) error {
			require.Equal(t, len(k)+len(v), sizes[i], "record %d", i)
			i++
			return nil
		})
	}))
	leases := must(s.Leases(ctx))(t)
	require.Equal(t, map[int64]int64{300: 60}, leases)
	require.Empty(t, must(s.Cluster(ctx))(t).Alarms)
	st := must(s.Status(ctx))(t)
	require.Equal(t, Space{PageSize: st.PageSize, Pages: st.Pages, FreePages: st.FreePages}, s.Space())
}

// TestNewest checks the last records of Live, for any number.
func TestNewest(t *testing.T) {
	ctx, s := context.Background(), open(t, etcdtest.Build(t,
		"put a 1\nput b 2\nput a 3\nput c 4\ndel b\nput d 5\nput e 6\ndel e\n"))
	keys := func(all iter.Seq2[*Record, error]) (keys []string) {
		for rec, err := range all {
			require.NoError(t, err)
			keys = append(keys, string(rec.Key))
		}
		return keys
	}
	live := keys(s.Live(ctx, nil))
	require.Equal(t, []string{"a", "c", "d"}, live)
	for n := range len(live) + 2 {
		require.Equal(t, live[len(live)-min(n, len(live)):], append([]string{}, keys(s.Newest(ctx, n))...), n)
	}
}

// TestAlarms checks both kinds and an unknown kind.
func TestAlarms(t *testing.T) {
	path := etcdtest.Build(t, "put a 1\n")
	db := must(bbolt.Open(path, 0o600, nil))(t)
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte("alarm"))
		for _, k := range []string{"\x08\x01\x10\x01", "\x08\x01\x10\x02", "\x08\x01\x10\x07"} {
			require.NoError(t, b.Put([]byte(k), nil))
		}
		return tx.Bucket([]byte("lease")).Put([]byte("\x00\x00\x00\x00\x00\x00\x00\x09"), []byte("\x08\x09\x10"))
	}))
	require.NoError(t, db.Close())
	s := must(Open(context.Background(), path, Config{SkipDigest: true}))(t)
	defer s.Close()
	alarms := must(s.Cluster(context.Background()))(t).Alarms
	require.Equal(t, []Raised{{AlarmNoSpace, "1"}, {AlarmCorrupt, "1"}, {"7", "1"}}, alarms)
	_, err := s.Leases(context.Background())
	require.ErrorIs(t, err, ErrDamaged)
}

// siftIsLive compares the file at path without and with an index. For damaged records Sift returns
// false.
func siftIsLive(t testing.TB, path string) (sifted bool) {
	t.Helper()
	s, err := Open(t.Context(), path, Config{})
	if err != nil {
		return false
	}
	defer s.Close()
	want := func(key []byte) bool { return len(key)%3 != 0 }
	live, ok := s.Sift(t.Context(), want)
	if !ok {
		return false
	}
	newest := must(s.newest(t.Context(), 7))(t)
	clones := func(all iter.Seq2[*Record, error], want func(key []byte) bool) (out []*Record) {
		for rec, err := range all {
			require.NoError(t, err, "after a sift")
			if want(rec.Key) {
				out = append(out, new(*rec))
			}
		}
		return out
	}
	indexed := clones(s.Live(t.Context(), nil), want)
	require.Equal(t, len(indexed), len(live))
	for i := range live {
		require.Equal(t, indexed[i], live[i])
	}
	all := clones(s.Live(t.Context(), nil), func([]byte) bool { return true })
	require.Equal(t, all[max(0, len(all)-7):], newest)
	return true
}

func TestSift(t *testing.T) {
	for _, name := range []string{"calico/before.db", "kcp/root-before.db", "storage/before.db", "kubectl/all.db"} {
		require.True(t, siftIsLive(t, gunzip(t, name)), name)
	}
}

// BenchmarkSift finds one key without an index.
func BenchmarkSift(b *testing.B) {
	s := must(Open(b.Context(), benchInput(b), Config{SkipDigest: true}))(b)
	defer s.Close()
	for b.Loop() {
		_, ok := s.Sift(b.Context(), func(key []byte) bool { return bytes.HasSuffix(key, []byte("/000007")) })
		require.True(b, ok)
	}
}

// TestLivePrefix checks that Live and Visit of any prefix give the records of a filtered scan of
// all keys, in the same order.
func TestLivePrefix(t *testing.T) {
	s := open(t, gunzip(t, "calico/before.db"))
	changes := []Change{put("compact_rev_key", "1"), put("//", "2"), put("/registry/", "3"), put("/", "4"),
		put("a", "5"), put("/"+strings.Repeat("x", maxFolderSize)+"/y/z", "6")}
	path, _ := write(t, s, WriteConfig{}, changes...)
	s = open(t, path)
	var all []string
	for rec, err := range s.Live(context.Background(), nil) {
		require.NoError(t, err)
		all = append(all, string(rec.Key))
	}
	prefixes := map[string]bool{"absent": true, "/registry/crd.projectcalico.org/": true}
	for _, key := range all {
		for n := range len(key) + 1 {
			prefixes[key[:n]] = true
		}
	}
	for prefix := range prefixes {
		var want, got []string
		for _, key := range all {
			if strings.HasPrefix(key, prefix) {
				want = append(want, key)
			}
		}
		for rec, err := range s.Live(context.Background(), []byte(prefix)) {
			require.NoError(t, err)
			got = append(got, string(rec.Key))
		}
		require.Equal(t, want, got, "%q", prefix)
		got, err := visited(t, s, prefix, "")
		require.NoError(t, err)
		require.Equal(t, want, got, "%q", prefix)
	}
	_, err := visited(t, s, "", "/")
	require.ErrorIs(t, err, errors.ErrUnsupported)
	got, err := visited(t, s, "", all[len(all)/2])
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.Equal(t, all[:len(all)/2], got, "results before the error")
}

// visited returns the keys found by Visit below a prefix. The visit of the key bad fails.
func visited(t *testing.T, s *Snapshot, prefix, bad string) (found []string, err error) {
	look := func(rec *Record, found []string) ([]string, error) {
		if string(rec.Key) == bad {
			return found, errors.ErrUnsupported
		}
		return append(found, string(rec.Key)), nil
	}
	err = stream.Each(Visit(t.Context(), s, []byte(prefix), look), func(key string) error {
		found = append(found, key)
		return nil
	})
	return found, err
}

// TestMarked checks that Marked yields the live records selected by Mark before the index was
// built.
func TestMarked(t *testing.T) {
	path := built(t, "put /a 1\nput /b 1\nput /bb 1\nput /b 2\ndel /bb")
	marked := func(s *Snapshot) (found []string) {
		for rec, err := range s.Marked(t.Context()) {
			require.NoError(t, err)
			found = append(found, string(rec.Key)+" "+string(rec.Value))
		}
		return found
	}
	s := open(t, copyOf(t, path))
	s.Mark(func(key []byte) bool { return strings.HasPrefix(string(key), "/b") })
	require.Equal(t, []string{"/b 2"}, marked(s))
	s.Mark(func([]byte) bool { return false })
	require.Equal(t, []string{"/b 2"}, marked(s), "it is too late")
	require.Equal(t, []string{"/a 1", "/b 2"}, marked(open(t, copyOf(t, path))), "without Mark")
}

// TestManyFolders checks that folders beyond the maximum share an ID that is always scanned.
func TestManyFolders(t *testing.T) {
	f := newFolders()
	f.of = make([]uint16, math.MaxUint16+10)
	for i := range f.of {
		f.put(uint32(i), fmt.Appendf(nil, "/a/%d/x", i))
	}
	require.Len(t, f.names, math.MaxUint16)
	may := f.under([]byte("/a/65540/"))
	require.True(t, may(65540))
	require.False(t, may(7))
	require.True(t, f.under([]byte("/a/7/"))(7))
}
