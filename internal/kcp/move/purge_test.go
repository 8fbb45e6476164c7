package move_test

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/archive"
	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/kcp/move"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// led allows a purge of a logical cluster whose Workspace names this shard.
var led = allow("owner-points-here")

// TestOnlyItsOwn: a namespace of another logical cluster with the name of the purged one stays.
func TestOnlyItsOwn(t *testing.T) {
	r := purge(t, root(t), move.Purge{Name: consumer}, led).written()
	require.Equal(t, transform.Changes{Deleted: 36}, r.Changes)
	require.Equal(t, 36, r.requireGone(ofCluster(consumer)))
	for _, trapped := range kcptest.Trapped() {
		require.NotEmpty(t, r.value(trapped))
	}
	require.Equal(t, []string{"children-stay", "owner-points-here"}, r.codes())
	require.Len(t, r.Clusters, 1)
	c := r.Clusters[0]
	require.Equal(t, []any{consumer, "root:consumer", 36, 0}, []any{c.Name, c.Path, c.Keys, c.Copies})
	require.Len(t, c.SHA256, 64)
	require.Equal(t, 370-36, r.Rest.Keys)
	require.Equal(t, r.Input.Keys, r.Output.Keys+36)
	r.requireSteps("etcdshift kcp purge "+consumer+" CACHE CACHE-OUT --from-shard root --to-shard NEW-SHARD",
		`Workspace "consumer" in "root" still leads to "`+consumer+`"`)
	require.NotEmpty(t, r.Restore)
	purge(t, root(t), move.Purge{Name: consumer, Scrub: true}, led).written().
		requireSteps(" CACHE CACHE-OUT --scrub --from-shard root --to-shard NEW-SHARD")
	purge(t, r.out, move.Purge{Name: consumer}, led).fails(kcp.ErrNoCluster, "")
}

// TestWithChildren checks that the child is purged too, and its Workspace in the purged parent
// refuses nothing.
func TestWithChildren(t *testing.T) {
	r := purge(t, root(t), move.Purge{Name: consumer, WithChildren: true}, led).written()
	n := r.requireGone(ofCluster(consumer, child))
	require.Equal(t, n, r.Changes.Deleted)
	require.Len(t, r.Clusters, 2)
	require.Equal(t, child, r.Clusters[1].Name)
	require.Equal(t, n, r.Clusters[0].Keys+r.Clusters[1].Keys)
	require.Equal(t, []string{"owner-points-here"}, r.codes())
	require.Len(t, r.Problems, 1, "of the parent alone")
}

// TestNoCluster checks that a name that does not live here is an error with similar names.
func TestNoCluster(t *testing.T) {
	cache, partial := recorded(t, kcptest.Cache), shard1(t, drop(home(consumer1), home(kcp.SystemShard)))
	for _, c := range []struct {
		in   string
		o    move.Purge
		is   error
		says string
	}{
		{root(t), move.Purge{Name: "root:other"}, kcp.ErrNoCluster, other},
		{root(t), move.Purge{Name: "nowhere"}, kcp.ErrNoCluster, `"nowhere"`},
		{cache, move.Purge{Name: other}, move.ErrCacheAlone, `a cache below "/cache"`},
		{root(t), move.Purge{Name: other, FromShard: "root"}, move.ErrNoCacheHere, `a shard below "/registry"`},
		{cache, move.Purge{Name: "nowhere", FromShard: "root"}, kcp.ErrNoCluster, "from any shard"},
		{cache, move.Purge{Name: consumer1, FromShard: "root"}, kcp.ErrNoCluster, `it has copies from "shard-1"`},
		{root(t), move.Purge{Name: consumer1, Orphans: true}, kcp.ErrNoCluster, "this shard has no orphans"},
		{root(t), move.Purge{Name: other, Orphans: true}, kcp.ErrNoCluster, "lives on this shard"},
		{partial, move.Purge{Orphans: true}, move.ErrNoHome, ""},
	} {
		purge(t, c.in, c.o, allow("no-home")).fails(c.is, c.says)
	}
	purge(t, root(t), move.Purge{Name: other}, under("/elsewhere")).fails(kcp.ErrNoShard, "")
}

// TestDeterministic checks that two runs write the same bytes.
func TestDeterministic(t *testing.T) {
	for _, scrub := range []bool{false, true} {
		o := move.Purge{Name: consumer, WithChildren: true, Scrub: scrub}
		first, second := purge(t, root(t), o, led).written(), purge(t, root(t), o, led).written()
		require.Equal(t, first.Output.SHA256, second.Output.SHA256)
	}
}

// TestOwnerElsewhere checks that a Workspace with another shard refuses nothing; a Workspace that
// is not in the file, or that was deleted, is reported.
func TestOwnerElsewhere(t *testing.T) {
	workspace, its := kcptest.WorkspaceKey("other"), move.Purge{Name: other}
	require.Empty(t, purge(t, root(t, swap(workspace, onRoot, onShard1)), its).written().Problems)
	r := purge(t, shard1(t), move.Purge{Name: consumer1}).written()
	require.Equal(t, []string{"owner-unseen"}, r.codes())
	require.Contains(t, r.Problems[0].Reason, `Workspace "consumer1" in "root"`)
	r = purge(t, root(t, drop(workspace)), its).written()
	require.Equal(t, []string{"owner-unseen"}, r.codes())
	require.Contains(t, r.Problems[0].Reason, `Workspace "other" in "root", which is not there`)

	r = purge(t, root(t, swap(home(other), `"resource":"workspaces"`, `"resource":"things"`)), its)
	r.refused("owner-points-here") // a Workspace names the cluster nevertheless
	require.Contains(t, r.reasons("owner-unseen"), "which is no Workspace")
}

// TestUnknownKey checks that a key of no logical cluster stays and is named, except the key of the
// API servers' compactions.
func TestUnknownKey(t *testing.T) {
	in := shard1(t, put("/registry/health", "{}"), put("/registry/example.dev/widgets/customresources", "{}"),
		put("/elsewhere/"+consumer1, "{}"))
	r := purge(t, in, move.Purge{Name: consumer1}).written()
	require.Equal(t, []string{"owner-unseen", "unknown-key"}, r.codes())
	require.Len(t, r.Problems, 3)
	r.requireGone(ofCluster(consumer1))
}

// TestArchiveRefused checks that an archive, with any manifest, is not accepted as a shard.
func TestArchiveRefused(t *testing.T) {
	records, notes := openFile(t, root(t)).Live(t.Context(), nil), map[string][]byte{"manifest": []byte("{}")}
	path := build(t, snapshot.Content{Records: records, Revision: 1 << 20, Notes: notes})
	r := purge(t, path, move.Purge{Name: other})
	r.fails(archive.ErrIsArchive, "")
	require.NotErrorIs(t, r.err, archive.ErrDamaged)
	require.NotErrorIs(t, r.err, kcp.ErrNoCluster)
}

// TestOrphansThatLive checks that records with a Workspace for this shard are not orphans: only
// their LogicalCluster is lost.
func TestOrphansThatLive(t *testing.T) {
	in, workspace := root(t, drop(home(consumer))), kcptest.WorkspaceKey("consumer")
	for _, name := range []string{"", consumer} {
		o := move.Purge{Orphans: true, Name: name}
		r := purge(t, in, o)
		r.refused("owner-points-here")
		require.Equal(t, []string{"children-stay", "owner-points-here"}, r.codes())
		require.Equal(t, workspace, r.Problems[0].Key)
		require.Contains(t, r.Problems[0].Reason, `Workspace "consumer" in "root"`)
		require.Equal(t, 35, purge(t, in, o, led).written().requireGone(ofCluster(consumer)))
	}
	r := purge(t, edited(t, in, put(workspace, opaque)), move.Purge{Orphans: true}).written()
	require.Contains(t, r.reasons("owner-unseen"), "Workspaces of this file cannot be read (1)")
}

// TestChildWithoutWorkspace checks that a child without a Workspace does not refuse the purge of
// its parent.
func TestChildWithoutWorkspace(t *testing.T) {
	lost := drop(workspaceKey(consumer, "child"))
	r := purge(t, root(t, drop(home(consumer)), lost), move.Purge{Orphans: true}, led).written()
	require.Equal(t, []string{"owner-points-here"}, r.codes())

	const says = `"` + child + `" stays, and says that it belongs to "child" in "` + consumer + `", which is not there`
	in := root(t, lost)
	require.Equal(t, says, purge(t, in, move.Purge{Name: consumer}, led).written().reasons("children-stay"))
	reasons := extract(t, in, itself).written().reasons("children-stay")
	require.Equal(t, says+"; --with-children extracts it too", reasons)
}

// TestNoHome checks that without living logical clusters of tenants, their keys are not treated as
// orphans.
func TestNoHome(t *testing.T) {
	in, all := root(t, drop(home(provider), home(consumer), home(other), home(child))), move.Purge{Orphans: true}
	r := purge(t, in, all, led)
	r.refused("no-home")
	require.Contains(t, r.reasons("no-home"), "logical clusters without a LogicalCluster (4, such as ")
	purge(t, in, all, led, allow("no-home")).written()
	r = purge(t, in, move.Purge{Orphans: true, Name: other}, led).written()
	require.Equal(t, []string{"no-home", "owner-points-here"}, r.codes())

	partial := shard1(t, drop(home(consumer1), home(kcp.SystemShard)))
	r = purge(t, partial, move.Purge{Orphans: true, Name: consumer1}).written()
	require.Equal(t, []string{"no-home"}, r.codes())
	require.Contains(t, r.Problems[0].Reason, "no whole shard")

	events := etcdtest.Build(t, `
		put /registry/core/events/`+consumer+`/default/a {}
		put /registry/core/events/`+consumer+`/default/b {}
		put /registry/core/events/`+other+`/`+consumer+`/c {}
	`)
	purge(t, events, all, under("/registry")).fails(move.ErrNoHome, "")
	r = purge(t, events, move.Purge{Orphans: true, Name: consumer}, under("/registry"), allow("key-mismatch")).written()
	require.Contains(t, r.codes(), "no-home", "they may be of one that lives")
	require.Equal(t, 2, r.requireGone(ofCluster(consumer)))
}

// TestLoop checks that two logical clusters that name each other as owners are purged together; an
// outside Workspace of one of them refuses the run.
func TestLoop(t *testing.T) {
	in := root(t, swap(home(consumer), `"cluster":"root","name":"consumer"`, `"cluster":"`+child+`","name":"consumer"`))
	for _, children := range []bool{false, true} {
		r := purge(t, in, move.Purge{Name: consumer, WithChildren: children})
		r.refused("owner-points-here")
		require.Contains(t, r.reasons("owner-points-here"), `Workspace "consumer" in "root"`)
		require.Contains(t, r.reasons("owner-unseen"), `which is not there`)
		r.requireSteps(`Workspace "consumer" in "root" still leads to`)
	}
}

// TestChildElsewhere checks that a Workspace of a logical cluster on another shard is reported.
func TestChildElsewhere(t *testing.T) {
	in, says := root(t, dropAll(ofCluster(child))), `"`+child+`", behind Workspace "child"`
	for _, children := range []bool{false, true} {
		r := purge(t, in, move.Purge{Name: consumer, WithChildren: children}, led).written()
		require.Equal(t, []string{"child-elsewhere", "owner-points-here"}, r.codes())
		require.Contains(t, r.reasons("child-elsewhere"), says)
		taken := extract(t, in, move.Extract{Name: consumer, WithChildren: children}).written()
		require.Equal(t, []string{"child-elsewhere"}, taken.codes())
		require.Contains(t, taken.reasons("child-elsewhere"), says)
	}
	in = root(t, swap(home(child), `"cluster":"`+consumer+`"`, `"cluster":"root"`))
	for _, r := range []result{purge(t, in, move.Purge{Name: consumer}, led).written(),
		extract(t, in, itself).written()} {
		require.Contains(t, r.reasons("child-elsewhere"), "says that it does not belong to Workspace")
	}
}

// TestExportsBound checks that logical clusters with a binding to an export are named, unless
// purged too.
func TestExportsBound(t *testing.T) {
	r := purge(t, root(t), move.Purge{Name: provider}, led).written()
	require.Equal(t, []string{"exports-bound", "owner-points-here"}, r.codes())
	require.Contains(t, r.reasons("exports-bound"),
		"logical clusters that stay here (2) bind what \""+provider+"\" exports: "+other+", "+consumer)
	require.NotContains(t, purge(t, root(t), move.Purge{Name: other}, led).written().codes(), "exports-bound")
}

// TestShardName checks that Workspaces with either name of a shard count.
func TestShardName(t *testing.T) {
	r := purge(t, root(t), move.Purge{Name: other, AsShard: "Root"})
	r.refused("owner-points-here")
	require.Equal(t, []string{"owner-points-here", "shard-name"}, r.codes())
	r = purge(t, root(t), move.Purge{Name: other, AsShard: "root"}, led).written()
	require.Equal(t, []string{"owner-points-here"}, r.codes())
}

// TestManyChildren checks that thousands of children are purged, as siblings or as a chain, with
// their copies.
func TestManyChildren(t *testing.T) {
	const n = 2000
	src := openFile(t, kcptest.Single(t))
	for _, shape := range []string{"star", "chain"} {
		in := filepath.Join(t.TempDir(), "many.db")
		_, err := snapshot.Write(t.Context(), in, src, func(yield func(snapshot.Change, error) bool) {
			parent := consumer
			for i := range n {
				name := kcptest.ManyName(i)
				for _, kv := range [][2]string{
					{home(name), `{"kind":"LogicalCluster","metadata":{"name":"cluster"},"spec":{"owner":{"cluster":"` +
						parent + `","name":"` + name + `"}}}`},
					{workspaceKey(parent, name),
						`{"kind":"Workspace","metadata":{"name":"` + name + `"},"spec":{"cluster":"` + name + `"}}`},
					{"/cache/rbac.authorization.k8s.io/clusterroles/customresources/root/" + name + "/workspace",
						`{"metadata":{"name":"workspace"}}`},
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
		r := purge(t, in, move.Purge{Name: consumer, WithChildren: true}, led).written()
		require.Len(t, r.Clusters, 2+n)
		require.Positive(t, r.Clusters[0].Copies)
		require.Equal(t, 1, r.Clusters[1+n].Copies)
		require.NotContains(t, r.codes(), "children-stay")
		require.NotContains(t, r.codes(), "child-elsewhere")
	}
}

// TestCopies checks that with shard and cache in one file, this shard's copies are purged too, and
// copies of other shards stay.
func TestCopies(t *testing.T) {
	its := ofCluster(consumer)
	in := edited(t, kcptest.Single(t), put("/cache/rbac.authorization.k8s.io/clusterroles/customresources/shard-1/"+
		consumer+"/stale", "{}"))
	r := purge(t, in, move.Purge{Name: consumer}, led, allow("key-mismatch")).written()
	n := r.requireGone(eitherOf(its, copyOf("root", consumer)))
	require.Equal(t, 36, r.Clusters[0].Keys)
	require.Positive(t, r.Clusters[0].Copies)
	require.Equal(t, n, 36+r.Clusters[0].Copies)
	r.requireSteps(`keeps what shard "shard-1" wrote of "` + consumer + `" (keys: 1)`)
	r.requireNoStep("no cache is in this file")

	r = purge(t, in, move.Purge{Name: consumer, AsShard: "shard-1"}, led, allow("key-mismatch")).written()
	require.Equal(t, 1, r.Clusters[0].Copies, "another name, other copies")
	r.requireGone(eitherOf(its, copyOf("shard-1", consumer)))

	for _, in := range []string{recorded(t, kcptest.Cache), kcptest.Single(t)} {
		o := move.Purge{Name: consumer, FromShard: "root"}
		r := purge(t, in, o).written()
		n := r.requireGone(copyOf("root", consumer))
		require.Positive(t, n)
		require.Equal(t, []int{0, n}, []int{r.Clusters[0].Keys, r.Clusters[0].Copies})
		require.Empty(t, r.Problems)
		purge(t, r.out, o).fails(kcp.ErrNoCluster, "")
	}
}

// TestShardUnknown checks that a shard without a name needs --as-shard to select its copies.
func TestShardUnknown(t *testing.T) {
	nameless := drop(home(kcp.SystemShard))
	in := edited(t, kcptest.Single(t), nameless)
	purge(t, in, move.Purge{Name: consumer}, led).fails(move.ErrShardUnknown, "--as-shard")
	r := purge(t, in, move.Purge{Name: consumer, AsShard: "root"}, led).written()
	require.Positive(t, r.Clusters[0].Copies)
	r.requireGone(eitherOf(ofCluster(consumer), copyOf("root", consumer)))
	purge(t, edited(t, in, drop(home(consumer))),
		move.Purge{Orphans: true, Name: consumer}).fails(move.ErrShardUnknown, "")

	found := purge(t, root(t, nameless), move.Purge{Name: consumer}).refused("owner-points-here")
	require.Contains(t, found[0].Reason, "this file does not say what this one is called")
}

// TestOrphans checks that another tenant's records from kcp's live migration are purged, and no
// living record. A second run has nothing to do. Copies of the orphans in the same file are purged
// too.
func TestOrphans(t *testing.T) {
	_, in := kcptest.LiveMigrated(t)
	trapped := func(key []byte) bool { return slices.Contains(kcptest.Trapped(), string(key)) }
	all := move.Purge{Orphans: true}
	for _, name := range []string{"", other} {
		r := purge(t, in, move.Purge{Orphans: true, Name: name}).written()
		require.Equal(t, 4, r.requireGone(trapped))
		require.Len(t, r.Clusters, 1)
		require.Equal(t, []any{other, 4}, []any{r.Clusters[0].Name, r.Clusters[0].Keys})
		require.Empty(t, r.Problems)
		purge(t, r.out, all).unchanged().requireGone(func([]byte) bool { return false })
		purge(t, r.out, move.Purge{Orphans: true, Name: other}).fails(kcp.ErrNoCluster, "")
	}
	purge(t, in, move.Purge{Orphans: true, Name: consumer}).fails(kcp.ErrNoCluster, "lives on this shard")
	purge(t, in, move.Purge{Name: other}).fails(kcp.ErrNoCluster, "orphans")

	r := purge(t, edited(t, kcptest.Single(t), drop(home(consumer))), all, led).written()
	require.Equal(t, 35, r.Clusters[0].Keys)
	require.Positive(t, r.Clusters[0].Copies)
	r.requireGone(eitherOf(ofCluster(consumer), copyOf("root", consumer)))
}

// TestPrefixes checks that prefixes separate two shards in one file.
func TestPrefixes(t *testing.T) {
	in := root(t, withShard(t, shard1(t), "/shard/one"),
		put("/shard/one/core/configmaps/"+other+"/default/orphan", "{}"))
	purge(t, in, move.Purge{Name: other}).fails(kcp.ErrSeveralShards, "")
	purge(t, in, move.Purge{Name: other}, led, under("/registry")).written().requireGone(ofCluster(other))

	its, there := move.Purge{Name: consumer1}, under("/shard/one")
	found := purge(t, in, its, there).refused("owner-points-here") // the Workspace in the other storage names shard-1
	require.Equal(t, kcptest.WorkspaceKey("consumer1"), found[0].Key)
	purge(t, in, its, there, led).written().requireGone(func(key []byte) bool {
		k, err := keys.KCPShard{Prefix: "/shard/one"}.Parse(key)
		return err == nil && k.Cluster == consumer1
	})
}

// TestOneStorage checks that a part of a storage named as a separate storage is refused: it would
// split logical clusters.
func TestOneStorage(t *testing.T) {
	const rbac = "/cache/rbac.authorization.k8s.io"
	whole, single := root(t), kcptest.Single(t)
	for _, c := range []struct {
		in       string
		o        move.Purge
		prefixes []string
	}{
		{whole, move.Purge{Name: other}, []string{"/registry", "/registry/core"}},
		{whole, move.Purge{Orphans: true}, []string{"/registry/example.dev", "/registry"}},
		{single, move.Purge{Name: other}, []string{"/registry", rbac}},
		{single, move.Purge{Name: other, FromShard: "root"}, []string{"/cache", rbac}},
		{single, move.Purge{Name: other, Scrub: true}, []string{"/registry", rbac}},
	} {
		purge(t, c.in, c.o, led, under(c.prefixes...)).fails(kcp.ErrSplit, "")
	}
}

// TestMany checks that one of many similar logical clusters is purged.
func TestMany(t *testing.T) {
	r := purge(t, kcptest.Many(t, 50), move.Purge{Name: kcptest.ManyName(7)}, led, allow("key-mismatch")).written()
	require.Equal(t, 40, r.Clusters[0].Keys)
	require.Equal(t, 40, r.requireGone(ofCluster(kcptest.ManyName(7))))
}

// TestInterrupted: a canceled run leaves no file.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	out := filepath.Join(t.TempDir(), "out.db")
	_, err := transform.Run(ctx, transform.Options{In: root(t), Out: out}, &move.Purge{Name: other})
	require.ErrorIs(t, err, context.Canceled)
	require.NoFileExists(t, out)
}
