package kcptest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/keys"
)

// byCluster counts keys by the logical cluster that they are of.
func byCluster(t *testing.T, kvs []etcdtest.KV) map[string]int {
	t.Helper()
	counts := make(map[string]int)
	for _, kv := range kvs {
		if key, err := (keys.KCPShard{Prefix: "/registry"}).Parse(kv.Key); err == nil {
			counts[key.Cluster]++
		}
	}
	return counts
}

func find(kvs []etcdtest.KV, key string) *etcdtest.KV {
	for i := range kvs {
		if string(kvs[i].Key) == key {
			return &kvs[i]
		}
	}
	return nil
}

// TestRecorded: the three files restore, and the leases of the shards are as recorded.
func TestRecorded(t *testing.T) {
	kvs, leases := Dump(t, Recorded(t, Root))
	require.Len(t, kvs, 370)
	require.Len(t, leases, 1)
	require.Equal(t, 36, byCluster(t, kvs)[Consumer])
	kvs, _ = Dump(t, Recorded(t, Shard1))
	require.NotZero(t, byCluster(t, kvs)[Consumer1])
	kvs, _ = Dump(t, Recorded(t, Cache))
	require.True(t, strings.HasPrefix(string(kvs[0].Key), "/cache/"))
}

// TestEdit: what is written is in the new file; the old one stays.
func TestEdit(t *testing.T) {
	in := Recorded(t, Shard1)
	out := Edit(t, in, func(client *clientv3.Client) {
		Put(t, client, "/registry/a", []byte("b"))
		Delete(t, client, LogicalClusterKey(Consumer1))
	})
	before, _ := Dump(t, in)
	after, _ := Dump(t, out)
	require.Len(t, after, len(before))
	require.Equal(t, "b", string(find(after, "/registry/a").Value))
	require.NotNil(t, find(before, LogicalClusterKey(Consumer1)))
	require.Nil(t, find(after, LogicalClusterKey(Consumer1)))
}

// TestLiveMigrated: the damage is the one that was seen on a real kcp.
func TestLiveMigrated(t *testing.T) {
	before, _ := Dump(t, Recorded(t, Root))
	rootPath, shard1Path := LiveMigrated(t)
	root, _ := Dump(t, rootPath)
	shard1, leases := Dump(t, shard1Path)

	require.Zero(t, byCluster(t, root)[Consumer])
	require.Equal(t, byCluster(t, before)[Other]-3, byCluster(t, root)[Other])
	require.Equal(t, 36, byCluster(t, shard1)[Consumer])
	require.Equal(t, 4, byCluster(t, shard1)[Other])
	for i, key := range Trapped() {
		require.Equal(t, i == 0, find(root, key) != nil, "%s", key)
		require.Equal(t, find(before, key).Value, find(shard1, key).Value, "%s", key)
	}
	require.NotEqual(t, find(before, Trapped()[0]).Value, find(root, Trapped()[0]).Value)
	differ := 0
	for _, kv := range before {
		if key, err := (keys.KCPShard{Prefix: "/registry"}).Parse(kv.Key); err == nil && key.Cluster == Consumer {
			if now := find(shard1, string(kv.Key)); string(now.Value) != string(kv.Value) {
				differ++
			}
		}
	}
	require.Equal(t, 4, differ, "LogicalCluster and three kube-root-ca.crt")
	event := "/registry/core/events/" + Consumer + "/default/ev1"
	require.NotZero(t, find(before, event).Lease)
	require.Zero(t, find(shard1, event).Lease)
	require.Len(t, leases, 1, "that of consumer1")
}

// TestSingle: all keys of both files are in one.
func TestSingle(t *testing.T) {
	root, _ := Dump(t, Recorded(t, Root))
	cache, _ := Dump(t, Recorded(t, Cache))
	both, _ := Dump(t, Single(t))
	require.Len(t, both, len(root)+len(cache)-1)
	for _, kv := range append(root, cache...) {
		if string(kv.Key) != "compact_rev_key" {
			require.Equal(t, kv.Value, find(both, string(kv.Key)).Value)
		}
	}
}
