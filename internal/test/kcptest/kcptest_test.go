package kcptest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/keys"
)

// byCluster counts keys by logical cluster.
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

// TestLiveMigrated checks that the damage matches the damage observed on a real kcp.
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

// TestMany checks that each logical cluster is complete, and two runs give the same file.
func TestMany(t *testing.T) {
	kvs, _ := Dump(t, Many(t, 3))
	counts := byCluster(t, kvs)
	for i := range 3 {
		require.Equal(t, counts[ManyName(0)], counts[ManyName(i)])
		require.NotNil(t, find(kvs, LogicalClusterKey(ManyName(i))))
	}
	require.GreaterOrEqual(t, counts[ManyName(0)], 36)
	again, _ := Dump(t, Many(t, 3))
	require.Equal(t, kvs, again)
}
