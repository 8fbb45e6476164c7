// Package kcptest provides tests with the recorded snapshots of testdata/kcp and
// testdata/kcp-claims (see testdata/README.md), and with derived files: edited through a real etcd,
// after kcp's own live migration, of a kcp in one process, of a shard with thousands of logical
// clusters.
//
// Every file is a copy in the test's temporary folder.
package kcptest

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

// Recorded snapshots.
const (
	Root   = "kcp/root-before"   // the shard "root"
	Shard1 = "kcp/shard1-before" // the shard "shard-1"
	Cache  = "kcp/cache-before"  // the cache server for both
)

// Recorded snapshots of another installation, whose APIExports have permission claims.
const (
	ClaimsRoot   = "kcp-claims/root"    // the shard "root"
	ClaimsShard1 = "kcp-claims/shard-1" // the shard "shard-1"
	ClaimsShard2 = "kcp-claims/shard-2" // the shard "shard-2"
	ClaimsCache  = "kcp-claims/cache"   // the cache server for all three
)

// Logical clusters of that installation used in tests.
const (
	ClaimsProvider  = "m487zc6e79lvkeaz" // on root; exports example.dev, with claims, and solo.dev
	ClaimsConsumer  = "4m4iw3esla7safps" // on root; binds example.dev, and has children
	ClaimsOther     = "1b9eyr53196aq5xf" // on root; binds example.dev
	ClaimsProvider1 = "1s485cpq7w4liuqc" // on shard-1; exports one.dev
)

// Logical clusters of the recorded snapshots.
const (
	Provider  = "zgf51depsgjhepex" // on root; exports example.dev
	Consumer  = "2y3qvnqz5ga11oc4" // on root
	Other     = "11iehthilu5atzgl" // on root; has a namespace with the name of Consumer
	Child     = "1n7wq48mavio4f0j" // on root; its Workspace is in Consumer
	Consumer1 = "1vi0m2lj7drncrhe" // on shard-1

	// ExampleDev and Tenancy are the identities of the APIExports example.dev and tenancy.kcp.io.
	ExampleDev = "ae72113263cfba10b52e8ac474cd523aef79051fe7eca94547f19059d2da90cc"
	Tenancy    = "3241532711ee6dc6efc554ec43018123b832959a7152bc11116bc2df00fca212"
)

// Recorded unzips a recorded snapshot.
func Recorded(t testing.TB, name string) (path string) {
	t.Helper()
	root, err := filepath.Abs(".")
	require.NoError(t, err)
	for testdata := ""; root != filepath.Dir(root); root = filepath.Dir(root) {
		testdata = filepath.Join(root, "testdata", filepath.FromSlash(name)+".db.gz")
		if _, err = os.Stat(testdata); err == nil {
			return etcdtest.Unpack(t, testdata)
		}
	}
	require.Fail(t, "not recorded", name)
	return ""
}

// Edit restores the snapshot at path into a real etcd, calls change, and saves a snapshot.
func Edit(t testing.TB, path string, change func(client *clientv3.Client)) (edited string) {
	t.Helper()
	s := etcdtest.Start(t, etcdtest.Restore(t, path))
	defer s.Stop()
	change(s.Client)
	edited = filepath.Join(t.TempDir(), "edited.db")
	etcdtest.Save(t, s, edited)
	return edited
}

// Dump restores the snapshot at path into a real etcd and returns all live keys, and the granted
// TTL of each lease in seconds.
func Dump(t testing.TB, path string) (kvs []etcdtest.KV, leases map[int64]int64) {
	t.Helper()
	s := etcdtest.Start(t, etcdtest.Restore(t, path))
	defer s.Stop()
	ctx := context.Background()
	all, err := s.Client.Leases(ctx)
	require.NoError(t, err)
	leases = make(map[int64]int64, len(all.Leases))
	for _, l := range all.Leases {
		ttl, err := s.Client.TimeToLive(ctx, l.ID)
		require.NoError(t, err)
		leases[int64(l.ID)] = ttl.GrantedTTL
	}
	return etcdtest.Dump(t, s, 0), leases
}

// Put writes a value, or fails the test.
func Put(t testing.TB, client *clientv3.Client, key string, value []byte, options ...clientv3.OpOption) {
	t.Helper()
	_, err := client.Put(context.Background(), key, string(value), options...)
	require.NoError(t, err)
}

// Get reads an existing value.
func Get(t testing.TB, client *clientv3.Client, key string) []byte {
	t.Helper()
	r, err := client.Get(context.Background(), key)
	require.NoError(t, err)
	require.Len(t, r.Kvs, 1, "%s", key)
	return r.Kvs[0].Value
}

// Delete removes an existing key.
func Delete(t testing.TB, client *clientv3.Client, key string) {
	t.Helper()
	r, err := client.Delete(context.Background(), key)
	require.NoError(t, err)
	require.EqualValues(t, 1, r.Deleted, "%s", key)
}
