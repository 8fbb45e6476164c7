package snapshot

import (
	"context"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

// TestScan: each record says whether it is live, and how many bytes its entry takes.
func TestScan(t *testing.T) {
	path := etcdtest.Build(t, "grant 300 60\nput a 1\nput b 2 lease=300\nput a 3\ndel b\nput c size=5000\ncompact\nput c 4\nput d 5\ndel d\n")
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
	require.Equal(t, []seen{{"a", "3", true, false}, {"c", blob, false, false}, {"c", "4", true, false}, {"d", "5", false, false}, {"d", "", false, true}}, got)

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

// TestNewest: the last records of Live, however many are asked for.
func TestNewest(t *testing.T) {
	ctx, s := context.Background(), open(t, etcdtest.Build(t, "put a 1\nput b 2\nput a 3\nput c 4\ndel b\nput d 5\nput e 6\ndel e\n"))
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

// TestAlarms: both kinds, and one that is not known.
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
