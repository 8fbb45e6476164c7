package kcptest

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

const shardPrefix = "/registry/"

// Trapped returns the keys of Other that LiveMigrated moves by mistake.
func Trapped() []string {
	in := Other + "/" + Consumer + "/"
	return []string{
		shardPrefix + "core/configmaps/" + in + "kube-root-ca.crt",
		shardPrefix + "core/configmaps/" + in + "trap",
		shardPrefix + "core/serviceaccounts/" + in + "default",
		shardPrefix + "pods/" + ExampleDev + "/" + in + "trapp",
	}
}

// WorkspaceKey returns the key of a Workspace in the logical cluster root.
func WorkspaceKey(name string) string {
	return shardPrefix + "tenancy.kcp.io/workspaces/" + Tenancy + "/root/" + name
}

// LogicalClusterKey returns the key whose existence places a logical cluster on a shard.
func LogicalClusterKey(name string) string {
	return shardPrefix + "core.kcp.io/logicalclusters/customresources/" + name + "/cluster"
}

// LiveMigrated returns both shards after kcp's own live migration of Consumer from root to shard-1
// (kcp pkg/etcd/keys.go and pkg/reconciler/migration/logicalclustermigration at dac74f5955f1), and
// after the repairs of controllers:
//
//   - The records that its key parser assigns to Consumer were put on shard-1 without lease and
//     deleted on root by prefix: the 36 keys of Consumer, and those of Trapped, which belong to
//     Other and are now orphans on shard-1.
//   - Root's controller has recreated kube-root-ca.crt in Other's namespace; shard-1's controller
//     has written its own CA into those of Consumer.
//   - LogicalCluster and Workspace refer to shard-1.
func LiveMigrated(t testing.TB) (root, shard1 string) {
	t.Helper()
	var moved []etcdtest.KV
	root = Edit(t, Recorded(t, Root), func(client *clientv3.Client) {
		moved = liveTaken(t, client)
		require.Len(t, moved, 36+len(Trapped()))
		deleteByPrefix(t, client, moved)
		remade := Trapped()[0]
		for _, kv := range moved {
			if string(kv.Key) == remade {
				Put(t, client, remade, withUID(t, kv.Value, "0c0ffee0-0000-4000-8000-000000000001"))
			}
		}
		workspace := replace(t, Get(t, client, WorkspaceKey("consumer")), `"core.kcp.io/shard":"root"`,
			`"core.kcp.io/shard":"shard-1"`)
		workspace = replace(t, workspace, `"internal.tenancy.kcp.io/shard":"1pfxsevk"`,
			`"internal.tenancy.kcp.io/shard":"2e1tfbst"`)
		Put(t, client, WorkspaceKey("consumer"), workspace)
	})
	shard1 = Edit(t, Recorded(t, Shard1), func(client *clientv3.Client) {
		ca, err := encoding.Get(Get(t, client, shardPrefix+"core/configmaps/"+Consumer1+"/default/kube-root-ca.crt"),
			"data", "ca.crt")
		require.NoError(t, err)
		for _, kv := range moved {
			Put(t, client, string(kv.Key), kv.Value)
		}
		for _, kv := range moved {
			if strings.HasSuffix(string(kv.Key), "/kube-root-ca.crt") && !strings.Contains(string(kv.Key), Other) {
				value, err := encoding.Set(kv.Value, ca, "data", "ca.crt")
				require.NoError(t, err)
				Put(t, client, string(kv.Key), value)
			}
		}
		lc := Get(t, client, LogicalClusterKey(Consumer))
		Put(t, client, LogicalClusterKey(Consumer), replace(t, lc, `"core.kcp.io/shard":"root"`,
			`"core.kcp.io/shard":"shard-1"`))
	})
	return root, shard1
}

// liveTaken returns the records that the live migration assigns to Consumer.
func liveTaken(t testing.TB, client *clientv3.Client) (taken []etcdtest.KV) {
	t.Helper()
	r, err := client.Get(context.Background(), shardPrefix, clientv3.WithPrefix())
	require.NoError(t, err)
	for _, kv := range r.Kvs {
		if liveClusterOf(string(kv.Key), Consumer) == Consumer {
			taken = append(taken, etcdtest.KV{Key: kv.Key, Value: kv.Value, Lease: kv.Lease})
		}
	}
	return taken
}

// liveClusterOf parses a key as the live migration does: the result depends on the target.
func liveClusterOf(key, target string) string {
	parts := strings.Split(strings.TrimPrefix(key, shardPrefix), "/")
	switch n := len(parts); {
	case n < 4:
		return ""
	case parts[2] == "customresources", n == 6, n == 5 && parts[2] != target:
		return parts[3]
	}
	return parts[2]
}

// deleteByPrefix deletes like the live migration: one range per type.
func deleteByPrefix(t testing.TB, client *clientv3.Client, records []etcdtest.KV) {
	t.Helper()
	var deleted int64
	for _, kv := range records {
		key := string(kv.Key)
		end := strings.Index(key, "/"+Consumer) + len("/"+Consumer)
		r, err := client.Delete(context.Background(), key[:end], clientv3.WithPrefix())
		require.NoError(t, err)
		deleted += r.Deleted
	}
	require.EqualValues(t, len(records), deleted)
}

func withUID(t testing.TB, value []byte, uid string) []byte {
	t.Helper()
	meta, err := encoding.ReadMeta(value)
	require.NoError(t, err)
	return replace(t, value, meta.UID, uid)
}

func replace(t testing.TB, value []byte, from, to string) []byte {
	t.Helper()
	require.Equal(t, 1, bytes.Count(value, []byte(from)), "%q", from)
	return bytes.Replace(value, []byte(from), []byte(to), 1)
}
