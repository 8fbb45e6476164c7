package move_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/kcp/move"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// without is a recorded snapshot in which keys are deleted.
func without(t *testing.T, name string, gone ...string) string {
	t.Helper()
	return kcptest.Edit(t, kcptest.Recorded(t, name), func(client *clientv3.Client) {
		for _, key := range gone {
			kcptest.Delete(t, client, key)
		}
	})
}

// reasons are those of the problems of a code.
func reasons(r *report, code string) string {
	var all []string
	for _, p := range r.Problems {
		if p.Code.Name == code {
			all = append(all, p.Reason)
		}
	}
	return strings.Join(all, "\n")
}

// TestOrphansThatLive: where a Workspace says that they live here, it is the LogicalCluster that is
// lost, and they are no orphans.
func TestOrphansThatLive(t *testing.T) {
	in := without(t, kcptest.Root, kcptest.LogicalClusterKey(kcptest.Consumer))
	for _, name := range []string{"", kcptest.Consumer} {
		r := refusedPurge(t, in, move.Purge{Orphans: true, Name: name})
		require.Equal(t, []string{"children-stay", "owner-points-here"}, codes(r))
		require.Equal(t, kcptest.WorkspaceKey("consumer"), r.Problems[0].Key)
		require.Contains(t, r.Problems[0].Reason, `Workspace "consumer" in "root"`)
		_, out := purged(t, in, move.Purge{Orphans: true, Name: name}, "owner-points-here")
		require.Equal(t, 35, requireGone(t, in, out, func(key []byte) bool { return clusterOf(key) == kcptest.Consumer }))
	}

	encrypted := kcptest.Edit(t, in, func(client *clientv3.Client) {
		kcptest.Put(t, client, kcptest.WorkspaceKey("consumer"), []byte("k8s:enc:aescbc:v1:key1:0123456789abcdef0123456789abcdef"))
	})
	r, _ := purged(t, encrypted, move.Purge{Orphans: true})
	require.Contains(t, reasons(r, "owner-unseen"), "Workspaces of this file cannot be read (1)")
}

// TestChildWithoutWorkspace: a child whose Workspace is not among what goes, or is taken, loses
// none, and none is told to go.
func TestChildWithoutWorkspace(t *testing.T) {
	lost := "/registry/tenancy.kcp.io/workspaces/" + kcptest.Tenancy + "/" + kcptest.Consumer + "/child"
	in := without(t, kcptest.Root, kcptest.LogicalClusterKey(kcptest.Consumer), lost)
	r, _ := purged(t, in, move.Purge{Orphans: true}, "owner-points-here")
	require.Equal(t, []string{"owner-points-here"}, codes(r))

	const says = `"` + kcptest.Child + `" stays, and says that it belongs to "child" in "` + kcptest.Consumer + `", which is not there`
	r, _ = purged(t, without(t, kcptest.Root, lost), move.Purge{Name: kcptest.Consumer}, "owner-points-here")
	require.Equal(t, says, reasons(r, "children-stay"))
	taken, _ := extracted(t, without(t, kcptest.Root, lost), extraction{Name: kcptest.Consumer})
	require.Equal(t, says+"; --with-children takes it along", reasons(reportOf(taken.Report), "children-stay"))
}

// TestNoHome: where nothing tells what lives, or that any tenant's logical cluster does, all are
// not taken for orphans.
func TestNoHome(t *testing.T) {
	all := []string{}
	for _, name := range []string{kcptest.Provider, kcptest.Consumer, kcptest.Other, kcptest.Child} {
		all = append(all, kcptest.LogicalClusterKey(name))
	}
	in := without(t, kcptest.Root, all...)
	r := refusedPurge(t, in, move.Purge{Orphans: true}, "owner-points-here")
	require.Contains(t, reasons(r, "no-home"), "logical clusters without a LogicalCluster (4, such as ")
	purged(t, in, move.Purge{Orphans: true}, "owner-points-here", "no-home")
	r, _ = purged(t, in, move.Purge{Orphans: true, Name: kcptest.Other}, "owner-points-here")
	require.Equal(t, []string{"no-home", "owner-points-here"}, codes(r))

	partial := without(t, kcptest.Shard1, kcptest.LogicalClusterKey(kcptest.Consumer1), kcptest.LogicalClusterKey("system:shard"))
	_, out, err := tryPurge(t, partial, move.Purge{Orphans: true}, "no-home")
	require.ErrorIs(t, err, move.ErrNoHome)
	require.NoFileExists(t, out)
	r, _ = purged(t, partial, move.Purge{Orphans: true, Name: kcptest.Consumer1})
	require.Equal(t, []string{"no-home"}, codes(r))
	require.Contains(t, r.Problems[0].Reason, "no whole shard")
}

// TestLoop: two logical clusters that name each other as owners go together, and the Workspace
// outside that leads to one of them refuses.
func TestLoop(t *testing.T) {
	in := edited(t, kcptest.Root, kcptest.LogicalClusterKey(kcptest.Consumer), `"cluster":"root","name":"consumer"`, `"cluster":"`+kcptest.Child+`","name":"consumer"`)
	for _, children := range []bool{false, true} {
		r := refusedPurge(t, in, move.Purge{Name: kcptest.Consumer, WithChildren: children})
		require.Contains(t, reasons(r, "owner-points-here"), `Workspace "consumer" in "root"`)
		require.Contains(t, reasons(r, "owner-unseen"), `which is not there`)
		require.Contains(t, strings.Join(r.Steps, "\n"), `Workspace "consumer" in "root" still leads to`)
	}
}

// TestOwnerNotThere: the parent is in the file, and the Workspace is not.
func TestOwnerNotThere(t *testing.T) {
	r, _ := purged(t, without(t, kcptest.Root, kcptest.WorkspaceKey("other")), move.Purge{Name: kcptest.Other})
	require.Equal(t, []string{"owner-unseen"}, codes(r))
	require.Contains(t, r.Problems[0].Reason, `Workspace "other" in "root", which is not there`)

	in := edited(t, kcptest.Root, kcptest.LogicalClusterKey(kcptest.Other), `"resource":"workspaces"`, `"resource":"things"`)
	r, _, err := tryPurge(t, in, move.Purge{Name: kcptest.Other})
	require.ErrorIs(t, err, transform.ErrRefused, "a Workspace leads there all the same")
	require.Contains(t, reasons(r, "owner-unseen"), "which is no Workspace")
}

// TestChildElsewhere: the Workspace that leads to a logical cluster on another shard does not go
// without a word.
func TestChildElsewhere(t *testing.T) {
	in := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Root), func(client *clientv3.Client) {
		kvs, err := client.Get(context.Background(), "/registry/", clientv3.WithPrefix())
		require.NoError(t, err)
		for _, kv := range kvs.Kvs {
			if clusterOf(kv.Key) == kcptest.Child {
				kcptest.Delete(t, client, string(kv.Key))
			}
		}
	})
	for _, children := range []bool{false, true} {
		r, _ := purged(t, in, move.Purge{Name: kcptest.Consumer, WithChildren: children}, "owner-points-here")
		require.Equal(t, []string{"child-elsewhere", "owner-points-here"}, codes(r))
		require.Contains(t, reasons(r, "child-elsewhere"), `"`+kcptest.Child+`", behind Workspace "child"`)
		taken, _ := extracted(t, in, extraction{Name: kcptest.Consumer, WithChildren: children})
		require.Equal(t, []string{"child-elsewhere"}, codes(reportOf(taken.Report)))
		require.Contains(t, reasons(reportOf(taken.Report), "child-elsewhere"), `"`+kcptest.Child+`", behind Workspace "child"`)
	}

	in = edited(t, kcptest.Root, kcptest.LogicalClusterKey(kcptest.Child), `"cluster":"`+kcptest.Consumer+`"`, `"cluster":"root"`)
	r, _ := purged(t, in, move.Purge{Name: kcptest.Consumer}, "owner-points-here")
	require.Contains(t, reasons(r, "child-elsewhere"), "says that it does not belong to Workspace")
	taken, _ := extracted(t, in, extraction{Name: kcptest.Consumer})
	require.Contains(t, reasons(reportOf(taken.Report), "child-elsewhere"), "says that it does not belong to Workspace")
}

// TestExportsBound: who binds what goes is named, but for those that go too.
func TestExportsBound(t *testing.T) {
	in := kcptest.Recorded(t, kcptest.Root)
	r, _ := purged(t, in, move.Purge{Name: kcptest.Provider}, "owner-points-here")
	require.Equal(t, []string{"exports-bound", "owner-points-here"}, codes(r))
	require.Contains(t, reasons(r, "exports-bound"), "logical clusters that stay here (2) bind what \""+kcptest.Provider+"\" exports: "+kcptest.Other+", "+kcptest.Consumer)
	r, _ = purged(t, in, move.Purge{Name: kcptest.Other}, "owner-points-here")
	require.NotContains(t, codes(r), "exports-bound")
}

// TestShardName: a shard that is called otherwise than it calls itself is led to by either name.
func TestShardName(t *testing.T) {
	in := kcptest.Recorded(t, kcptest.Root)
	r := refusedPurge(t, in, move.Purge{Name: kcptest.Other, AsShard: "Root"})
	require.Equal(t, []string{"owner-points-here", "shard-name"}, codes(r))
	r, _ = purged(t, in, move.Purge{Name: kcptest.Other, AsShard: "root"}, "owner-points-here")
	require.Equal(t, []string{"owner-points-here"}, codes(r))
}

// TestNoSuchKey: a part of kcp that has no LogicalCluster is not named by the key of one.
func TestNoSuchKey(t *testing.T) {
	r := refusedPurge(t, kcptest.Recorded(t, kcptest.Root), move.Purge{Name: "system:bound-crds"})
	require.Equal(t, "system-cluster", r.Problems[0].Code.Name)
	require.Empty(t, r.Problems[0].Key)
}

// TestManyChildren: thousands of them go, side by side or each below the one before, and their
// copies with them.
func TestManyChildren(t *testing.T) {
	const n = 2000
	ctx := context.Background()
	for _, shape := range []string{"star", "chain"} {
		src, err := snapshot.Open(ctx, kcptest.Single(t), snapshot.Config{})
		require.NoError(t, err)
		defer src.Close()
		in := filepath.Join(t.TempDir(), "many.db")
		_, err = snapshot.Write(ctx, in, src, func(yield func(snapshot.Change, error) bool) {
			parent := kcptest.Consumer
			for i := range n {
				name := kcptest.ManyName(i)
				for _, kv := range [][2]string{
					{
						kcptest.LogicalClusterKey(name),
						`{"kind":"LogicalCluster","metadata":{"name":"cluster"},"spec":{"owner":{"cluster":"` + parent + `","name":"` + name + `"}}}`,
					},
					{
						"/registry/tenancy.kcp.io/workspaces/" + kcptest.Tenancy + "/" + parent + "/" + name,
						`{"kind":"Workspace","metadata":{"name":"` + name + `"},"spec":{"cluster":"` + name + `"}}`,
					},
					{"/cache/rbac.authorization.k8s.io/clusterroles/customresources/root/" + name + "/workspace", `{"metadata":{"name":"workspace"}}`},
				} {
					if !yield(snapshot.Change{Key: []byte(kv[0]), Value: []byte(kv[1])}, nil) {
						return
					}
				}
				if shape == "chain" {
					parent = name
				}
			}
		}, snapshot.WriteConfig{})
		require.NoError(t, err)
		r, _ := purged(t, in, move.Purge{Name: kcptest.Consumer, WithChildren: true}, "owner-points-here")
		require.Len(t, r.Clusters, 2+n)
		require.Positive(t, r.Clusters[0].Copies)
		require.Equal(t, 1, r.Clusters[1+n].Copies)
		require.NotContains(t, codes(r), "children-stay")
		require.NotContains(t, codes(r), "child-elsewhere")
	}
}

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
	r, out := purged(t, in, move.Purge{Name: kcptest.Consumer}, "owner-points-here", "key-mismatch")
	n := requireGone(t, in, out, func(key []byte) bool {
		return clusterOf(key) == kcptest.Consumer || copyOf("root", kcptest.Consumer)(key)
	})
	require.Equal(t, 36, r.Clusters[0].Keys)
	require.Positive(t, r.Clusters[0].Copies)
	require.Equal(t, n, 36+r.Clusters[0].Copies)
	all := strings.Join(r.Steps, "\n")
	require.Contains(t, all, `keeps what shard "shard-1" wrote of "`+kcptest.Consumer+`" (keys: 1)`)
	require.NotContains(t, all, "no cache is in this file")

	r, out = purged(t, in, move.Purge{Name: kcptest.Consumer, AsShard: "shard-1"}, "key-mismatch", "owner-points-here")
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
	_, _, err := tryPurge(t, in, move.Purge{Name: kcptest.Consumer}, "owner-points-here")
	require.ErrorIs(t, err, move.ErrShardUnknown)
	require.ErrorContains(t, err, "--as-shard")
	r, out := purged(t, in, move.Purge{Name: kcptest.Consumer, AsShard: "root"}, "owner-points-here")
	require.Positive(t, r.Clusters[0].Copies)
	requireGone(t, in, out, func(key []byte) bool {
		return clusterOf(key) == kcptest.Consumer || copyOf("root", kcptest.Consumer)(key)
	})

	r, _, err = tryPurge(t, nameless(kcptest.Recorded(t, kcptest.Root)), move.Purge{Name: kcptest.Consumer})
	require.ErrorIs(t, err, transform.ErrRefused, "the Workspace may mean this shard")
	require.Contains(t, r.Problems[0].Reason, "this file does not say what this one is called")
}

// TestFromShard: of a cache's own file, what one shard wrote of one logical cluster goes, and
// nothing else.
func TestFromShard(t *testing.T) {
	for _, in := range []string{kcptest.Recorded(t, kcptest.Cache), kcptest.Single(t)} {
		r, out := purged(t, in, move.Purge{Name: kcptest.Consumer, FromShard: "root"})
		n := requireGone(t, in, out, copyOf("root", kcptest.Consumer))
		require.Positive(t, n)
		require.Equal(t, n, r.Clusters[0].Copies)
		require.Zero(t, r.Clusters[0].Keys)
		require.Empty(t, r.Problems)
		_, _, err := tryPurge(t, out, move.Purge{Name: kcptest.Consumer, FromShard: "root"})
		require.ErrorIs(t, err, kcp.ErrNoCluster)
	}
}

// TestOrphans: what the live migration took along from another logical cluster goes, and nothing
// that lives; a second time there is nothing to do.
func TestOrphans(t *testing.T) {
	_, in := kcptest.LiveMigrated(t)
	trapped := func(key []byte) bool { return slices.Contains(kcptest.Trapped(), string(key)) }
	for _, name := range []string{"", kcptest.Other} {
		r, out := purged(t, in, move.Purge{Orphans: true, Name: name})
		require.Equal(t, 4, requireGone(t, in, out, trapped))
		require.Len(t, r.Clusters, 1)
		require.Equal(t, kcptest.Other, r.Clusters[0].Name)
		require.Equal(t, 4, r.Clusters[0].Keys)
		require.Empty(t, r.Problems)

		r, again, err := tryPurge(t, out, move.Purge{Orphans: true})
		require.NoError(t, err)
		require.Equal(t, transform.Unchanged, r.Outcome)
		requireGone(t, out, again, func([]byte) bool { return false })
		_, _, err = tryPurge(t, out, move.Purge{Orphans: true, Name: kcptest.Other})
		require.ErrorIs(t, err, kcp.ErrNoCluster)
	}
	_, _, err := tryPurge(t, in, move.Purge{Orphans: true, Name: kcptest.Consumer})
	require.ErrorIs(t, err, kcp.ErrNoCluster, "it lives there")
	_, _, err = tryPurge(t, in, move.Purge{Name: kcptest.Other})
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
	r, out := purged(t, in, move.Purge{Orphans: true}, "owner-points-here")
	require.Equal(t, 35, r.Clusters[0].Keys)
	require.Positive(t, r.Clusters[0].Copies)
	requireGone(t, in, out, func(key []byte) bool {
		return clusterOf(key) == kcptest.Consumer || copyOf("root", kcptest.Consumer)(key)
	})

	_, _, err := tryPurge(t, orphaned(kcptest.LogicalClusterKey("system:shard")), move.Purge{Orphans: true, Name: kcptest.Consumer})
	require.ErrorIs(t, err, move.ErrShardUnknown)
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
	_, _, err := tryPurge(t, in, move.Purge{Orphans: true, Prefixes: named})
	require.ErrorIs(t, err, move.ErrNoHome)
	r, out := purged(t, in, move.Purge{Orphans: true, Name: kcptest.Consumer, Prefixes: named}, "key-mismatch")
	require.Contains(t, codes(r), "no-home", "they may be of one that lives")
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
	_, _, err := tryPurge(t, in, move.Purge{Name: kcptest.Other})
	require.ErrorIs(t, err, kcp.ErrSeveralShards)
	_, out := purged(t, in, move.Purge{Name: kcptest.Other, Prefixes: []string{"/registry"}}, "owner-points-here")
	requireGone(t, in, out, func(key []byte) bool { return clusterOf(key) == kcptest.Other })

	o := move.Purge{Name: kcptest.Consumer1, Prefixes: []string{"/shard/one"}}
	r, _, err := tryPurge(t, in, o)
	require.ErrorIs(t, err, transform.ErrRefused, "its Workspace is in the other shard's storage, and says shard-1")
	require.Equal(t, kcptest.WorkspaceKey("consumer1"), r.Problems[0].Key)
	_, out = purged(t, in, o, "owner-points-here")
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
		o  move.Purge
	}{
		"of the shard":      {root, move.Purge{Name: kcptest.Other, Prefixes: []string{"/registry", "/registry/core"}}},
		"orphans":           {root, move.Purge{Orphans: true, Prefixes: []string{"/registry/example.dev", "/registry"}}},
		"of its cache":      {single, move.Purge{Name: kcptest.Other, Prefixes: []string{"/registry", rbac}}},
		"of the cache":      {single, move.Purge{Name: kcptest.Other, FromShard: "root", Prefixes: []string{"/cache", rbac}}},
		"of its cache, too": {single, move.Purge{Name: kcptest.Other, Scrub: true, Prefixes: []string{"/registry", rbac}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, out, err := tryPurge(t, c.in, c.o, "owner-points-here")
			require.ErrorIs(t, err, kcp.ErrSplit)
			require.NoFileExists(t, out)
		})
	}
}

// TestMany: of many alike, one goes.
func TestMany(t *testing.T) {
	in := kcptest.Many(t, 50)
	r, out := purged(t, in, move.Purge{Name: kcptest.ManyName(7)}, "owner-points-here", "key-mismatch")
	require.Equal(t, 40, r.Clusters[0].Keys)
	require.Equal(t, 40, requireGone(t, in, out, func(key []byte) bool { return clusterOf(key) == kcptest.ManyName(7) }))
}

// TestInterrupted: nothing is left of a run that is cancelled.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	out := filepath.Join(t.TempDir(), "out.db")
	_, err := transform.Run(ctx, transform.Options{In: kcptest.Recorded(t, kcptest.Root), Out: out}, &move.Purge{Name: kcptest.Other})
	require.ErrorIs(t, err, context.Canceled)
	require.NoFileExists(t, out)
}
