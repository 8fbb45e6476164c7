package snapshot

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

// leaseEntries returns the entries of the lease bucket.
func leaseEntries(t testing.TB, s *Snapshot) (out []entry) {
	t.Helper()
	require.NoError(t, s.entries(context.Background(), mvcc.LeaseBucket, func(k, v []byte) error {
		out = append(out, entry{string(k), string(v)})
		return nil
	}))
	return out
}

// TestGranted checks that a live server stores the same grants and puts, byte for byte.
func TestGranted(t *testing.T) {
	live := etcdtest.Start(t, filepath.Join(t.TempDir(), "live"))
	etcdtest.Run(t, live, "grant 77 3600\ngrant 5000 60\nput /a x lease=77\n")
	before := saved(t, live)
	last := int64(math.MaxInt64)
	etcdtest.Run(t, live, fmt.Sprintf("grant 6 9000000000\ngrant 78 120\ngrant %d 3600\nput /b x lease=78\nput "+
		"/a y lease=%d", last, last))
	after := saved(t, live)

	s := open(t, before)
	b, a := put("/b", "x"), put("/a", "y")
	b.Lease, a.Lease = 78, last
	path, res := proved(t, s, WriteConfig{Leases: []Lease{{78, 120}, {last, 3600}, {6, mvcc.MaxLeaseTTL}}}, b, a)
	require.Equal(t, 2, res.Appended)
	out, want := open(t, path), open(t, after)
	require.Equal(t, leaseEntries(t, want), leaseEntries(t, out))
	require.Equal(t, entriesOf(t, want), entriesOf(t, out))
	sameAsRestored(t, path, live)

	server := etcdtest.Start(t, etcdtest.Restore(t, path))
	ttl, err := server.Client.TimeToLive(context.Background(), clientv3.LeaseID(last), clientv3.WithAttachedKeys())
	require.NoError(t, err)
	require.Equal(t, []any{int64(3600), [][]byte{[]byte("/a")}}, []any{ttl.GrantedTTL, ttl.Keys})
	must(server.Client.Revoke(context.Background(), 78))(t)
	require.NotContains(t, modelOf(t, sameSaved(t, server)), "/b")
}

// TestGrantedConflicts checks that an ID can be granted once.
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
			_, err := Write(context.Background(), path, s, seq(put("/new", "x")),
				WriteConfig{Leases: leases, Scrub: scrub})
			require.ErrorIs(t, err, errConflict)
			require.ErrorContains(t, err, text)
			require.ErrorContains(t, err, path)
			nothingIn(t, filepath.Dir(path))
		}
	}
	for _, ttl := range []int64{math.MinInt64, -1, 0, mvcc.MaxLeaseTTL + 1} {
		path := filepath.Join(t.TempDir(), "out.db")
		_, err := Write(context.Background(), path, s, seq(), WriteConfig{Leases: []Lease{{5, ttl}}})
		require.ErrorContains(t, err, fmt.Sprintf("lease 5: a time to live of %d seconds", ttl))
		nothingIn(t, filepath.Dir(path))
	}
}

// TestGrantedBesideOddIDs checks that IDs that no server grants, negative or of another length,
// stay.
func TestGrantedBesideOddIDs(t *testing.T) {
	s := open(t, copyOf(t, rebuilt(t, fixture(t), 4096, func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(mvcc.LeaseBucket))
		for _, k := range [][]byte{{1}, {0, 0, 0, 0, 0, 0, 0, 5, 9}, binary.BigEndian.AppendUint64(nil, 1<<63+5),
			make([]byte, 8)} {
			if err := b.Put(k, mvcc.Lease{TTL: 60}.Entry().Value); err != nil {
				return err
			}
		}
		return nil
	})))
	path, _ := write(t, s, WriteConfig{Leases: []Lease{{5, 60}, {math.MaxInt64, 60}}})
	require.Empty(t, findings(t, open(t, path)))
	require.Subset(t, leaseEntries(t, open(t, path)), leaseEntries(t, s))
	require.Len(t, leaseEntries(t, open(t, path)), len(leaseEntries(t, s))+2)
}

// TestTimeLeft checks that a lease with a checkpoint has the time of the checkpoint left.
func TestTimeLeft(t *testing.T) {
	lease := func(id, left int64) []byte {
		return mvcc.Lease{ID: id, TTL: 60, Remaining: left}.Entry().Value
	}
	s := open(t, copyOf(t, rebuilt(t, fixture(t), 4096, func(tx *bbolt.Tx) error {
		b := tx.Bucket([]byte(mvcc.LeaseBucket))
		return cmp.Or(b.Put(binary.BigEndian.AppendUint64(nil, 5), lease(5, 40)),
			b.Put(binary.BigEndian.AppendUint64(nil, 6), lease(6, 0)),
			b.Put(binary.BigEndian.AppendUint64(nil, 7), lease(7, -3)))
	})))
	leases, err := s.Leases(context.Background())
	require.NoError(t, err)
	require.Equal(t, []int64{40, 60, 60}, []int64{leases[5], leases[6], leases[7]})
}
