package kcp_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/internal/kcp/clusters"
	"github.com/etcdshift/etcdshift/internal/kcp/purge"
	"github.com/etcdshift/etcdshift/internal/kcp/survey"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// copyOf names the keys of one shard's copies of one logical cluster.
func copyOf(shard, cluster string) func(key []byte) bool {
	return func(key []byte) bool {
		s, c := shardOf(key)
		return s == shard && c == cluster
	}
}

// TestCopies: with shard and cache in one file, the copies that this shard wrote go too, and those
// of another shard's stay.
func TestCopies(t *testing.T) {
	in := kcptest.Edit(t, kcptest.Single(t), func(client *clientv3.Client) {
		kcptest.Put(t, client, "/cache/rbac.authorization.k8s.io/clusterroles/customresources/shard-1/"+kcptest.Consumer+"/stale", []byte("{}"))
	})
	r, out := purged(t, in, purge.Purge{Name: kcptest.Consumer}, codeOwnerPointsHere, codeKeyMismatch)
	n := requireGone(t, in, out, func(key []byte) bool {
		return clusterOf(key) == kcptest.Consumer || copyOf("root", kcptest.Consumer)(key)
	})
	require.Equal(t, 36, r.Clusters[0].Keys)
	require.Positive(t, r.Clusters[0].Copies)
	require.Equal(t, n, 36+r.Clusters[0].Copies)
	all := strings.Join(r.Steps, "\n")
	require.Contains(t, all, `keeps what shard "shard-1" wrote of "`+kcptest.Consumer+`" (keys: 1)`)
	require.NotContains(t, all, "no cache is in this file")

	r, out = purged(t, in, purge.Purge{Name: kcptest.Consumer, AsShard: "shard-1"}, codeKeyMismatch, codeOwnerPointsHere)
	require.Equal(t, 1, r.Clusters[0].Copies, "another name, other copies")
	requireGone(t, in, out, func(key []byte) bool {
		return clusterOf(key) == kcptest.Consumer || copyOf("shard-1", kcptest.Consumer)(key)
	})
}

// TestShardUnknown: where nothing says what the shard is called, its copies cannot be told from
// others.
func TestShardUnknown(t *testing.T) {
	nameless := func(path string) string {
		return kcptest.Edit(t, path, func(client *clientv3.Client) { kcptest.Delete(t, client, kcptest.LogicalClusterKey("system:shard")) })
	}
	in := nameless(kcptest.Single(t))
	_, _, err := tryPurge(t, in, purge.Purge{Name: kcptest.Consumer}, codeOwnerPointsHere)
	require.ErrorIs(t, err, survey.ErrShardUnknown)
	require.ErrorContains(t, err, "--as-shard")
	r, out := purged(t, in, purge.Purge{Name: kcptest.Consumer, AsShard: "root"}, codeOwnerPointsHere)
	require.Positive(t, r.Clusters[0].Copies)
	requireGone(t, in, out, func(key []byte) bool {
		return clusterOf(key) == kcptest.Consumer || copyOf("root", kcptest.Consumer)(key)
	})

	r, _, err = tryPurge(t, nameless(kcptest.Recorded(t, kcptest.Root)), purge.Purge{Name: kcptest.Consumer})
	require.ErrorIs(t, err, transform.ErrRefused, "the Workspace may mean this shard")
	require.Contains(t, r.Problems[0].Reason, "this file does not say what this one is called")
}

// TestFromShard: of a cache's own file, what one shard wrote of one logical cluster goes, and
// nothing else.
func TestFromShard(t *testing.T) {
	for _, in := range []string{kcptest.Recorded(t, kcptest.Cache), kcptest.Single(t)} {
		r, out := purged(t, in, purge.Purge{Name: kcptest.Consumer, FromShard: "root"})
		n := requireGone(t, in, out, copyOf("root", kcptest.Consumer))
		require.Positive(t, n)
		require.Equal(t, n, r.Clusters[0].Copies)
		require.Zero(t, r.Clusters[0].Keys)
		require.Empty(t, r.Problems)
		_, _, err := tryPurge(t, out, purge.Purge{Name: kcptest.Consumer, FromShard: "root"})
		require.ErrorIs(t, err, clusters.ErrNoCluster)
	}
}

// TestOrphans: what the live migration took along from another logical cluster goes, and nothing
// that lives; a second time there is nothing to do.
func TestOrphans(t *testing.T) {
	_, in := kcptest.LiveMigrated(t)
	trapped := func(key []byte) bool { return slices.Contains(kcptest.Trapped(), string(key)) }
	for _, name := range []string{"", kcptest.Other} {
		r, out := purged(t, in, purge.Purge{Orphans: true, Name: name})
		require.Equal(t, 4, requireGone(t, in, out, trapped))
		require.Len(t, r.Clusters, 1)
		require.Equal(t, kcptest.Other, r.Clusters[0].Name)
		require.Equal(t, 4, r.Clusters[0].Keys)
		require.Empty(t, r.Problems)

		r, again, err := tryPurge(t, out, purge.Purge{Orphans: true})
		require.NoError(t, err)
		require.Equal(t, transform.Unchanged, r.Outcome)
		requireGone(t, out, again, func([]byte) bool { return false })
		_, _, err = tryPurge(t, out, purge.Purge{Orphans: true, Name: kcptest.Other})
		require.ErrorIs(t, err, clusters.ErrNoCluster)
	}
	_, _, err := tryPurge(t, in, purge.Purge{Orphans: true, Name: kcptest.Consumer})
	require.ErrorIs(t, err, clusters.ErrNoCluster, "it lives there")
	_, _, err = tryPurge(t, in, purge.Purge{Name: kcptest.Other})
	require.ErrorContains(t, err, "orphans")
}

// TestOrphansCopies: what a cache in the same file has of orphans as this shard wrote them goes
// with them; a shard that does not know its name does not guess.
func TestOrphansCopies(t *testing.T) {
	orphaned := func(more ...string) string {
		return kcptest.Edit(t, kcptest.Single(t), func(client *clientv3.Client) {
			for _, key := range append(more, kcptest.LogicalClusterKey(kcptest.Consumer)) {
				kcptest.Delete(t, client, key)
			}
		})
	}
	in := orphaned()
	r, out := purged(t, in, purge.Purge{Orphans: true}, codeOwnerPointsHere)
	require.Equal(t, 35, r.Clusters[0].Keys)
	require.Positive(t, r.Clusters[0].Copies)
	requireGone(t, in, out, func(key []byte) bool {
		return clusterOf(key) == kcptest.Consumer || copyOf("root", kcptest.Consumer)(key)
	})

	_, _, err := tryPurge(t, orphaned(kcptest.LogicalClusterKey("system:shard")), purge.Purge{Orphans: true, Name: kcptest.Consumer})
	require.ErrorIs(t, err, survey.ErrShardUnknown)
}

// TestEventsAlone: in an etcd of Events alone nothing lives: all of it is not taken for orphans,
// and what is named goes.
func TestEventsAlone(t *testing.T) {
	in := etcdtest.Build(t, `
		put /registry/core/events/`+kcptest.Consumer+`/default/a {}
		put /registry/core/events/`+kcptest.Consumer+`/default/b {}
		put /registry/core/events/`+kcptest.Other+`/`+kcptest.Consumer+`/c {}
	`)
	named := []string{"/registry"}
	_, _, err := tryPurge(t, in, purge.Purge{Orphans: true, Prefixes: named})
	require.ErrorIs(t, err, purge.ErrNoHome)
	r, out := purged(t, in, purge.Purge{Orphans: true, Name: kcptest.Consumer, Prefixes: named}, codeKeyMismatch)
	require.Contains(t, codes(r), codeNoHome, "they may be of one that lives")
	require.Equal(t, 2, requireGone(t, in, out, func(key []byte) bool { return clusterOf(key) == kcptest.Consumer }))
}

// TestPrefixes: two shards in one file are told apart by their prefixes.
func TestPrefixes(t *testing.T) {
	shard1, _ := kcptest.Dump(t, kcptest.Recorded(t, kcptest.Shard1))
	in := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Root), func(client *clientv3.Client) {
		for _, kv := range shard1 {
			if rest, ok := strings.CutPrefix(string(kv.Key), "/registry/"); ok {
				kcptest.Put(t, client, "/shard/one/"+rest, kv.Value)
			}
		}
		kcptest.Put(t, client, "/shard/one/core/configmaps/"+kcptest.Other+"/default/orphan", []byte("{}"))
	})
	_, _, err := tryPurge(t, in, purge.Purge{Name: kcptest.Other})
	require.ErrorIs(t, err, clusters.ErrSeveralShards)
	_, out := purged(t, in, purge.Purge{Name: kcptest.Other, Prefixes: []string{"/registry"}}, codeOwnerPointsHere)
	requireGone(t, in, out, func(key []byte) bool { return clusterOf(key) == kcptest.Other })

	o := purge.Purge{Name: kcptest.Consumer1, Prefixes: []string{"/shard/one"}}
	r, _, err := tryPurge(t, in, o)
	require.ErrorIs(t, err, transform.ErrRefused, "its Workspace is in the other shard's storage, and says shard-1")
	require.Equal(t, kcptest.WorkspaceKey("consumer1"), r.Problems[0].Key)
	_, out = purged(t, in, o, codeOwnerPointsHere)
	requireGone(t, in, out, func(key []byte) bool {
		k, err := keys.KCPShard{Prefix: "/shard/one"}.Parse(key)
		return err == nil && k.Cluster == kcptest.Consumer1
	})
}

// TestOneStorage: a part of a storage that is taken for another one splits logical clusters in two:
// neither half goes alone.
func TestOneStorage(t *testing.T) {
	root, single := kcptest.Recorded(t, kcptest.Root), kcptest.Single(t)
	rbac := "/cache/rbac.authorization.k8s.io"
	for name, c := range map[string]struct {
		in string
		o  purge.Purge
	}{
		"of the shard":      {root, purge.Purge{Name: kcptest.Other, Prefixes: []string{"/registry", "/registry/core"}}},
		"orphans":           {root, purge.Purge{Orphans: true, Prefixes: []string{"/registry/example.dev", "/registry"}}},
		"of its cache":      {single, purge.Purge{Name: kcptest.Other, Prefixes: []string{"/registry", rbac}}},
		"of the cache":      {single, purge.Purge{Name: kcptest.Other, FromShard: "root", Prefixes: []string{"/cache", rbac}}},
		"of its cache, too": {single, purge.Purge{Name: kcptest.Other, Scrub: true, Prefixes: []string{"/registry", rbac}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, out, err := tryPurge(t, c.in, c.o, codeOwnerPointsHere)
			require.ErrorIs(t, err, clusters.ErrSplit)
			require.NoFileExists(t, out)
		})
	}
}

// TestMany: of many alike, one goes.
func TestMany(t *testing.T) {
	in := kcptest.Many(t, 50)
	r, out := purged(t, in, purge.Purge{Name: kcptest.ManyName(7)}, codeOwnerPointsHere, codeKeyMismatch)
	require.Equal(t, 40, r.Clusters[0].Keys)
	require.Equal(t, 40, requireGone(t, in, out, func(key []byte) bool { return clusterOf(key) == kcptest.ManyName(7) }))
}

// TestInterrupted: nothing is left of a run that is cancelled.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	out := filepath.Join(t.TempDir(), "out.db")
	_, err := transform.Run(ctx, transform.Options{In: kcptest.Recorded(t, kcptest.Root), Out: out}, &purge.Purge{Name: kcptest.Other})
	require.ErrorIs(t, err, context.Canceled)
	require.NoFileExists(t, out)
}
