package snapshot

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

// leaseEntries are the entries of the lease bucket.
func leaseEntries(t testing.TB, s *Snapshot) (out []entry) {
	t.Helper()
	require.NoError(t, s.entries(context.Background(), leaseBucket, func(k, v []byte) error {
		out = append(out, entry{string(k), string(v)})
		return nil
	}))
	return out
}

// TestGranted: what is stored is what a live server stores for the same grants and puts, byte for
// byte.
func TestGranted(t *testing.T) {
	live := etcdtest.Start(t, filepath.Join(t.TempDir(), "live"))
	etcdtest.Run(t, live, "grant 77 3600\ngrant 5000 60\nput /a x lease=77\n")
	before := filepath.Join(t.TempDir(), "before.db")
	etcdtest.Save(t, live, before)
	untouched(t, before)
	last := int64(math.MaxInt64)
	etcdtest.Run(t, live, fmt.Sprintf("grant 6 9000000000\ngrant 78 120\ngrant %d 3600\nput /b x lease=78\nput /a y lease=%d", last, last))
	after := filepath.Join(t.TempDir(), "after.db")
	etcdtest.Save(t, live, after)

	s := open(t, before)
	b, a := put("/b", "x"), put("/a", "y")
	b.Lease, a.Lease = 78, last
	path, res := writeWith(t, s, WriteConfig{Leases: []Lease{{78, 120}, {last, 3600}, {6, maxLeaseTTL}}}, b, a)
	require.Equal(t, 2, res.Appended)
	out, want := open(t, path), open(t, after)
	require.Equal(t, leaseEntries(t, want), leaseEntries(t, out))
	require.Equal(t, entriesOf(t, want), entriesOf(t, out))
	keptBelow(t, s, out)
	require.Empty(t, findings(t, out))
	sound(t, path)
	sameAsRestored(t, path, live)

	server := etcdtest.Start(t, etcdtest.Restore(t, path))
	ttl, err := server.Client.TimeToLive(context.Background(), clientv3.LeaseID(last), clientv3.WithAttachedKeys())
	require.NoError(t, err)
	require.Equal(t, []any{int64(3600), [][]byte{[]byte("/a")}}, []any{ttl.GrantedTTL, ttl.Keys})
	must(server.Client.Revoke(context.Background(), 78))(t)
	require.NotContains(t, modelOf(t, sameSaved(t, server)), "/b")
}

// withLeases stores n leases, inline or in a tree of their own, whichever it takes.
func withLeases(n int) func(tx *bbolt.Tx) error {
	return func(tx *bbolt.Tx) error {
		for i := range n {
			granted, err := grantEntries([]Lease{{int64(i+1) * 10, 3600}})
			if err == nil {
				err = tx.Bucket([]byte(leaseBucket)).Put(granted[0].Key, granted[0].Value)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// TestGrantedShapes grants to every shape of file, to ones with few leases and with many, and to
// one without a bucket for them.
func TestGrantedShapes(t *testing.T) {
	all := shapes()
	for _, n := range []int{1, 30, 5000, 200_000} {
		all = append(all, shape{fmt.Sprintf("%d leases", n), func(t testing.TB) []byte {
			return rebuilt(t, fixture(t), 4096, withLeases(n))
		}, func(testing.TB, *Snapshot) {}, n == 5000})
	}
	all = append(all, shape{"no lease bucket", func(t testing.TB) []byte {
		return rebuilt(t, fixture(t), 4096, func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte(leaseBucket)) })
	}, func(testing.TB, *Snapshot) {}, true})
	for _, sh := range all {
		t.Run(sh.name, func(t *testing.T) {
			t.Parallel()
			s := open(t, copyOf(t, sh.make(t)))
			old := must(s.Leases(context.Background()))(t)
			few, many := []Lease{{math.MaxInt64 - 1, 60}, {15, 61}}, []Lease(nil)
			for i := range 3000 {
				many = append(many, Lease{int64(i)*10 + 7, 3600})
			}
			for _, leases := range [][]Lease{few, many} {
				for _, changes := range [][]Change{nil, {put("/new", "x")}} {
					path, res := writeWith(t, s, WriteConfig{Leases: leases}, changes...)
					out := open(t, path)
					want := map[int64]int64{}
					for id, ttl := range old {
						want[id] = ttl
					}
					for _, l := range leases {
						want[l.ID] = l.TTL
					}
					got := must(out.Leases(context.Background()))(t)
					require.Equal(t, want, got)
					require.Equal(t, len(changes), res.Appended)
					require.True(t, slices.Equal(entriesOf(t, s), entriesOf(t, out)[:len(entriesOf(t, s))]))
					keptBelow(t, s, out)
					require.Empty(t, findings(t, out))
					sound(t, path)
					if sh.serve && len(leases) == len(few) && changes != nil {
						sameAsRestored(t, path, nil)
					}
					again, _ := writeWith(t, s, WriteConfig{Leases: leases}, changes...)
					require.Equal(t, sumOf(t, path), sumOf(t, again))
				}
			}
		})
	}
}

// TestGrantedConflicts: an id is granted once.
func TestGrantedConflicts(t *testing.T) {
	s := open(t, copyOf(t, rebuilt(t, fixture(t), 4096, withLeases(5000))))
	for text, leases := range map[string][]Lease{
		"a lease 10 already":          {{5, 60}, {10, 60}},
		"a lease 50000 already":       {{50_001, 60}, {50_000, 60}},
		"lease 5 is granted twice":    {{5, 60}, {6, 60}, {5, 61}},
		"lease id 0 is not positive":  {{5, 60}, {0, 60}},
		"lease id -1 is not positive": {{-1, 60}},
	} {
		for _, scrub := range []func([]byte) bool{nil, without("/registry/")} {
			path := filepath.Join(t.TempDir(), "out.db")
			_, err := Write(context.Background(), path, s, seq(put("/new", "x")), WriteConfig{Leases: leases, Scrub: scrub})
			require.ErrorIs(t, err, errConflict)
			require.ErrorContains(t, err, text)
			require.ErrorContains(t, err, path)
			nothingIn(t, filepath.Dir(path))
		}
	}
	for _, ttl := range []int64{math.MinInt64, -1, 0, maxLeaseTTL + 1} {
		path := filepath.Join(t.TempDir(), "out.db")
		_, err := Write(context.Background(), path, s, seq(), WriteConfig{Leases: []Lease{{5, ttl}}})
		require.ErrorContains(t, err, fmt.Sprintf("lease 5: a time to live of %d seconds", ttl))
		nothingIn(t, filepath.Dir(path))
	}
}

// TestGrantedBesideOddIDs: ids that no server grants, negative ones and ones of another length,
// stay where they are.
func TestGrantedBesideOddIDs(t *testing.T) {
	s := open(t, copyOf(t, rebuilt(t, fixture(t), 4096, func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(leaseBucket))
		for _, k := range [][]byte{{1}, {0, 0, 0, 0, 0, 0, 0, 5, 9}, binary.BigEndian.AppendUint64(nil, 1<<63+5), make([]byte, 8)} {
			if err := b.Put(k, appendIntField(nil, fieldLeaseTTL, 60)); err != nil {
				return err
			}
		}
		return nil
	})))
	path, _ := writeWith(t, s, WriteConfig{Leases: []Lease{{5, 60}, {math.MaxInt64, 60}}})
	require.Empty(t, findings(t, open(t, path)))
	require.Subset(t, leaseEntries(t, open(t, path)), leaseEntries(t, s))
	require.Len(t, leaseEntries(t, open(t, path)), len(leaseEntries(t, s))+2)
}
