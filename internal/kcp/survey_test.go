package kcp

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/internal/test/kcptest"
)

// installation reads and surveys files.
func installation(t *testing.T, shards map[string]string, caches ...string) *Installation {
	t.Helper()
	var of, with []Named
	for _, name := range []string{"root.db", "shard-1.db"} {
		if path, ok := shards[name]; ok {
			of = append(of, Named{name, readFile(t, path)})
		}
	}
	for _, path := range caches {
		with = append(with, Named{"cache.db", readFile(t, path)})
	}
	return Survey(of, with)
}

func (i *Installation) of(t *testing.T, name string) Resident {
	t.Helper()
	var found []Resident
	for _, c := range i.Clusters {
		if c.Name == name {
			found = append(found, c)
		}
	}
	require.Len(t, found, 1, name)
	return found[0]
}

// TestSurvey checks that the recorded installation is complete.
func TestSurvey(t *testing.T) {
	i := installation(t, map[string]string{
		"root.db": kcptest.Recorded(t, kcptest.Root), "shard-1.db": kcptest.Recorded(t, kcptest.Shard1),
	}, kcptest.Recorded(t, kcptest.Cache))
	require.Len(t, i.Clusters, 9+5)
	require.Empty(t, i.Orphans)
	require.Empty(t, i.Stale)
	require.Empty(t, i.Unchecked)
	require.Empty(t, i.Absent)
	require.Empty(t, i.Doubled)
	for _, c := range i.Clusters {
		require.Empty(t, c.Elsewhere, "each shard has its own of %s", c.Name)
		require.False(t, c.OwnerGone)
		for _, child := range c.Children {
			require.False(t, child.Astray)
		}
		for _, d := range c.Definitions {
			require.True(t, d.Present && !d.Virtual)
		}
		for _, id := range c.Identities {
			require.True(t, id.Bound && id.Known, "%s %s", c.Name, id.Hash)
			require.Len(t, id.Exports, 1)
			require.True(t, id.Exports[0].Found)
		}
	}
	consumer1 := i.of(t, kcptest.Consumer1)
	require.Equal(t, Place{"shard-1.db", "/registry", "shard-1"}, consumer1.Place)
	require.Len(t, consumer1.Definitions, 8)
	require.Len(t, consumer1.Identities, 3)
	require.Equal(t, Identity{
		Hash: kcptest.ExampleDev, Resources: []string{"pods", "sprockets.example.dev", "widgets.example.dev"},
		Exports: []Exports{{kcptest.Provider, "example.dev", true}}, Bound: true, Known: true,
	}, consumer1.Identities[1])
	var children []string
	for _, c := range i.of(t, rootCluster).Children {
		children = append(children, strings.Join([]string{c.Name, c.Workspace, c.Path, c.LivesOn[0], c.Said}, " "))
	}
	require.Equal(t, []string{
		kcptest.Other + " other root:other root root", kcptest.Consumer1 + " consumer1 root:consumer1 shard-1 shard-1",
		kcptest.Consumer + " consumer root:consumer root root", kcptest.Provider + " provider root:provider root root",
	}, children)
}

// TestSurveyOfOneShard checks that facts of missing files stay unknown.
func TestSurveyOfOneShard(t *testing.T) {
	shards := map[string]string{"shard-1.db": kcptest.Recorded(t, kcptest.Shard1)}
	c := installation(t, shards).of(t, kcptest.Consumer1)
	require.Equal(t, []Exports{{kcptest.Provider, "example.dev", false}}, c.Identities[1].Exports,
		"as its APIBinding says")
	require.True(t, c.Identities[1].Known)
	require.False(t, c.OwnerGone)

	i := installation(t, shards, kcptest.Recorded(t, kcptest.Cache))
	seen := []Exports{{kcptest.Provider, "example.dev", true}}
	require.Equal(t, seen, i.of(t, kcptest.Consumer1).Identities[1].Exports, "of which the cache has a copy")
	require.Empty(t, i.Stale)
	require.Len(t, i.Unchecked, 5, "those of root")
	require.Equal(t, []string{"root"}, i.Absent, "as the cache tells")
}

// TestSurveyAfterLiveMigration checks the shard of the orphans' logical cluster, and the stale
// copy.
func TestSurveyAfterLiveMigration(t *testing.T) {
	root, shard1 := kcptest.LiveMigrated(t)
	cache := kcptest.Recorded(t, kcptest.Cache)
	i := installation(t, map[string]string{"root.db": root, "shard-1.db": shard1}, cache)
	require.Len(t, i.Orphans, 1)
	o := i.Orphans[0]
	require.Equal(t, []any{kcptest.Other, "shard-1", "root"}, []any{o.Name, o.Shard, o.Said})
	require.Equal(t, []string{"root"}, o.LivesOn)
	require.Len(t, i.Stale, 1)
	s := i.Stale[0]
	want := []any{kcptest.Consumer, "root", "cache.db", "/cache", 1}
	require.Equal(t, want, []any{s.Cluster, s.Copy.Shard, s.Path, s.Place.Prefix, s.Amount.Keys})
	require.Equal(t, []string{"shard-1"}, s.LivesOn)
	require.Empty(t, i.Unchecked)
	child := i.of(t, kcptest.Consumer).Children[0]
	require.Equal(t, []string{"root"}, child.LivesOn, "it stayed")

	// the files of both shards, of the copy and of the living logical cluster, show that the copy
	// is stale
	require.Len(t, installation(t, map[string]string{"root.db": root}, cache).Stale, 1)
	alone := installation(t, map[string]string{"shard-1.db": shard1}, cache)
	require.Len(t, alone.Stale, 1)
	require.Empty(t, alone.Orphans[0].LivesOn)
}

// TestMovedByHalf checks a logical cluster that lives twice, and one that lives nowhere.
func TestMovedByHalf(t *testing.T) {
	root, shard1 := kcptest.LiveMigrated(t)
	twice := installation(t, map[string]string{"root.db": kcptest.Recorded(t, kcptest.Root), "shard-1.db": shard1})
	var found []string
	for _, c := range twice.Clusters {
		if len(c.Elsewhere) > 0 {
			found = append(found, c.Name+" "+c.Shard+" "+c.Elsewhere[0].Shard)
		}
	}
	require.Equal(t, []string{kcptest.Consumer + " root shard-1", kcptest.Consumer + " shard-1 root"}, found)

	nowhere := installation(t, map[string]string{"root.db": root, "shard-1.db": kcptest.Recorded(t, kcptest.Shard1)})
	astray := 0
	for _, child := range nowhere.of(t, rootCluster).Children {
		if child.Astray {
			astray++
			require.Equal(t, Child{Name: kcptest.Consumer, Workspace: "consumer", LivesOn: []string{}, Said: "shard-1",
				Astray: true}, child)
		}
	}
	require.Equal(t, 1, astray)
	require.False(t, nowhere.of(t, kcptest.Child).OwnerGone, "what it belongs to is in none of the files")
}

// TestStuck checks that kcp corrects the Workspace of a moved cluster only if the LogicalCluster
// still names the old shard.
func TestStuck(t *testing.T) {
	root, shard1 := kcptest.LiveMigrated(t)
	says := func(path, key, to string) string {
		return kcptest.Edit(t, path, func(client *clientv3.Client) {
			swap(t, client, key, `"core.kcp.io/shard":"shard-1"`, `"core.kcp.io/shard":"`+to+`"`)
		})
	}
	before := says(root, kcptest.WorkspaceKey("consumer"), "root")
	for stuck, path := range map[bool]string{true: shard1,
		false: says(shard1, kcptest.LogicalClusterKey(kcptest.Consumer), "root")} {
		i := installation(t, map[string]string{"root.db": before, "shard-1.db": path})
		for _, child := range i.of(t, rootCluster).Children {
			require.Equal(t, child.Name == kcptest.Consumer, child.Astray)
			require.Equal(t, child.Name == kcptest.Consumer && stuck, child.Stuck)
		}
	}
}

// TestWhatIsMissing checks definitions and identities that a logical cluster needs and no file has,
// and a missing owner.
func TestWhatIsMissing(t *testing.T) {
	const unknown, left = "00", "11"
	pods := func(identity string) string {
		return "/registry/pods/" + strings.Repeat(identity, 32) + "/" + kcptest.Consumer + "/default/a"
	}
	i := installation(t, map[string]string{"root.db": kcptest.Edit(t, kcptest.Recorded(t, kcptest.Root),
		func(client *clientv3.Client) {
			kcptest.Delete(t, client, boundKey)
			kcptest.Delete(t, client, kcptest.WorkspaceKey("consumer"))
			kcptest.Put(t, client, pods(unknown), configMap("a", "default"))
			kcptest.Put(t, client, pods(left), configMap("a", "default"))
			export := string(kcptest.Get(t, client, exportKey))
			moved := strings.NewReplacer(kcptest.ExampleDev, strings.Repeat(left, 32), `"example.dev"`,
				`"left"`).Replace(export)
			kcptest.Put(t, client, strings.TrimSuffix(exportKey, "example.dev")+"left", []byte(moved))
		})})
	c := i.of(t, kcptest.Consumer)
	require.True(t, c.OwnerGone)
	require.False(t, i.of(t, kcptest.Other).OwnerGone)
	absent := []string{}
	for _, d := range c.Definitions {
		if !d.Present {
			absent = append(absent, d.Resource)
		}
	}
	require.Equal(t, []string{"widgets.example.dev"}, absent)
	require.Equal(t, []Identity{
		{Hash: strings.Repeat(unknown, 32), Resources: []string{"pods"}, Exports: []Exports{}},
		{Hash: strings.Repeat(left, 32), Resources: []string{"pods"},
			Exports: []Exports{{kcptest.Provider, "left", true}}, Known: true},
	}, c.Identities[:2])
	require.Empty(t, c.Problems)
}

// TestWorkspacesByAnotherName checks that objects of another exported type called workspaces are
// not children.
func TestWorkspacesByAnotherName(t *testing.T) {
	f := edited(t, func(client *clientv3.Client) {
		value := kcptest.Get(t, client, kcptest.WorkspaceKey("other"))
		key := "/registry/tenancy.kcp.io/workspaces/" + kcptest.ExampleDev + "/" + kcptest.Provider + "/other"
		moved := strings.ReplaceAll(string(value), `"kcp.io/cluster":"root"`, `"kcp.io/cluster":"`+kcptest.Provider+`"`)
		kcptest.Put(t, client, key, []byte(moved))
	})
	c := theShard(t, f).Cluster(kcptest.Provider)
	require.Empty(t, c.Workspaces)
	require.Equal(t, 20, c.Keys)
	require.Empty(t, c.Problems)
}

// TestSurveyOfPaths checks that keys under the path of a logical cluster belong to the cluster,
// unless several have that path.
func TestSurveyOfPaths(t *testing.T) {
	const under = "/registry/core/configmaps/root:other/default/lost"
	root := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Root), func(client *clientv3.Client) {
		kcptest.Put(t, client, under,
			[]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"lost","namespace":"default"}}`))
	})
	i := installation(t, map[string]string{"root.db": root})
	require.Len(t, i.Orphans, 1)
	require.Equal(t, kcptest.Other, i.Orphans[0].PathOf)
	require.Equal(t, []string{"root"}, i.Orphans[0].LivesOn)
	require.Equal(t, []string{under}, i.Orphans[0].Keys)

	same := kcptest.Edit(t, root, func(client *clientv3.Client) {
		key := kcptest.LogicalClusterKey(kcptest.Consumer)
		kcptest.Put(t, client, key, bytes.ReplaceAll(kcptest.Get(t, client, key), []byte("root:consumer"),
			[]byte("root:other")))
	})
	require.Empty(t, installation(t, map[string]string{"root.db": same}).Orphans[0].PathOf)
}
