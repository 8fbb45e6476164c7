package move_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/kcp/move"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/transform"
)

// recordedCache reads the recorded cache.
func recordedCache(t testing.TB) *kcp.File {
	t.Helper()
	f, err := kcp.Read(context.Background(), read(t, recorded(t, kcptest.Cache)))
	require.NoError(t, err)
	return f
}

// purgedRoot returns root without consumer, and an archive of consumer.
func purgedRoot(t testing.TB) (from, shard string) {
	t.Helper()
	return archiveOf(t, root(t)), root(t, dropAll(ofCluster(consumer)))
}

const onRoot, onShard1 = `"core.kcp.io/shard":"root"`, `"core.kcp.io/shard":"shard-1"`

// TestImportLeavesOwner checks that without --fix-owner the owner values stay, since kcp corrects
// values with another shard; steps name the values to check.
func TestImportLeavesOwner(t *testing.T) {
	from := archiveOf(t, root(t))
	a := importInto(t, from, shard1(t), move.Import{Cache: recordedCache(t)}).written()
	require.Contains(t, a.value(home(consumer)), onRoot)
	require.Empty(t, a.Problems)
	a.requireSteps("kcp purge 2y3qvnqz5ga11oc4 ORIGIN ORIGIN-OUT", "--from-shard root",
		"kcp verify "+from+" ORIGIN-OUT",
		`Workspace "consumer" in logical cluster "root"…lives on shard "shard-1"`,
		"kubectl --server https://127.0.0.1:6443/clusters/root label --overwrite workspaces.tenancy.kcp.io consumer "+
			"region=us-east-1")
	a = importInto(t, from, a.in, move.Import{}).written()
	a.requireSteps("kubectl --server https://FRONT-PROXY/clusters/root label…region=REGION")
}

// TestImportOwnerNotHealed checks the warning for a LogicalCluster that names the right shard: kcp
// then ignores its Workspace.
func TestImportOwnerNotHealed(t *testing.T) {
	from, shard := purgedRoot(t)
	a := importInto(t, from, shard, move.Import{}).written()
	require.Empty(t, a.Problems, "the Workspace says so too")
	a.requireNoStep("Workspace", "kcp purge")
	a.requireSteps(`shard "root", which is where the archive was made`)

	a = importInto(t, from, edited(t, shard, swap(kcptest.WorkspaceKey("consumer"), onRoot, onShard1)),
		move.Import{}).written()
	require.Equal(t, []string{"owner-not-healed"}, a.codes())
	require.Contains(t, a.Problems[0].Reason, `its Workspace "consumer" says shard "shard-1"`)

	a = importInto(t, from, shard1(t), move.Import{AsShard: "root"}).written()
	require.Equal(t, []string{"owner-not-healed"}, a.codes())
	require.Contains(t, a.Problems[0].Reason, "in neither file")
	a.requireSteps("annotate --overwrite workspaces.tenancy.kcp.io consumer core.kcp.io/shard=root " +
		"internal.tenancy.kcp.io/shard=1pfxsevk")
	a.requireNoStep("kcp has it say")
}

// TestFixOwner checks that LogicalCluster and Workspace name the new shard and its region; no other
// byte changes.
func TestFixOwner(t *testing.T) {
	from, shard := purgedRoot(t)
	workspace, origin := kcptest.WorkspaceKey("consumer"), root(t)
	shard = edited(t, shard, swap(workspace, onRoot, onShard1, "1pfxsevk", "2e1tfbst", "us-east-2", "mars"))
	for name, c := range map[string][2]string{"root": {"1pfxsevk", "us-east-2"}, "shard-1": {"2e1tfbst", "us-east-1"}} {
		a := importInto(t, from, shard, move.Import{FixOwner: true, AsShard: name}).written()
		require.Empty(t, a.Problems)
		require.Equal(t, transform.Changes{Created: 36, Updated: 1}, a.Changes)
		a.arrived(workspace)
		want := strings.NewReplacer(onRoot, `"core.kcp.io/shard":"`+name+`"`, "1pfxsevk", c[0], "us-east-2", c[1])
		for _, key := range []string{workspace, home(consumer)} {
			require.Equal(t, want.Replace(valueIn(t, origin, key)), a.value(key))
		}
		require.Equal(t, a.Input.Keys-1, a.Rest.Keys)
		a.requireNoStep("Workspace")
	}
}

// TestFixOwnerOfChild checks that the Workspace of a child is changed in the archive if the parent
// is imported too.
func TestFixOwnerOfChild(t *testing.T) {
	origin, workspace := root(t), kcptest.WorkspaceKey("consumer")
	from := extract(t, origin, move.Extract{Name: consumer, WithChildren: true}).written().out
	a := importInto(t, from, alsoRoot(t), move.Import{FixOwner: true, Cache: recordedCache(t)}).written()
	require.Empty(t, a.Problems)
	for _, key := range []string{workspaceKey(consumer, "child"), workspace} {
		for _, text := range []string{onShard1, `"internal.tenancy.kcp.io/shard":"2e1tfbst"`, `"region":"us-east-1"`} {
			require.Contains(t, a.value(key), text)
		}
	}
	a.requireSteps("kcp purge "+consumer+" ORIGIN ORIGIN-OUT --with-children",
		"purge NAME CACHE CACHE-OUT --from-shard root --to-shard shard-1, for each NAME of 1n7wq48mavio4f0j, "+
			"2y3qvnqz5ga11oc4")
	for _, name := range []string{consumer, child} {
		require.Contains(t, a.value(home(name)), onShard1)
	}
	a.arrived(workspace)
}

// alsoRoot returns shard-1 with root's own logical cluster and the Workspace of consumer.
func alsoRoot(t testing.TB, edits ...edit) string {
	t.Helper()
	origin := dumped(t, root(t), func(key []byte) bool {
		return slices.Contains([]string{kcptest.WorkspaceKey("consumer"), home("root")}, string(key))
	})
	return shard1(t, append(edits, putAll(origin, ""))...)
}

// TestImportOwnerElsewhere checks that a Workspace that is in neither file, or is another one of
// the same name, cannot be fixed.
func TestImportOwnerElsewhere(t *testing.T) {
	from, shard := purgedRoot(t)
	workspace, uid := kcptest.WorkspaceKey("consumer"), "cca45fce-d305-4471-ab7a-4500afb71a0"
	for _, file := range []string{
		shard1(t), edited(t, shard, swap(workspace, uid+"b", uid+"c")),
		edited(t, shard, swap(workspace, `"cluster":"2y3qvnqz5ga11oc4"`, `"cluster":"2y3qvnqz5ga11oc5"`)),
	} {
		a := importInto(t, from, file, move.Import{FixOwner: true, AsShard: "x"}, allowAll(move.ImportSpec))
		require.Equal(t, home(consumer), a.refused("owner-elsewhere")[0].Key)
	}
}

// TestImportRegionUnknown checks that without the Shard object or its label the label of the
// Workspace stays, with a warning for an existing label.
func TestImportRegionUnknown(t *testing.T) {
	const shardObject = "/registry/core.kcp.io/shards/" +
		"884102f8452eda7c0798bf3ce74f7fe7fed14b736c1a04fcd7267dd6fb162fe4/root/shard-1"
	from, shard := purgedRoot(t)
	workspace := kcptest.WorkspaceKey("consumer")
	a := importInto(t, from, shard, move.Import{FixOwner: true, AsShard: "moon"}).written()
	require.Equal(t, []string{"region-unknown"}, a.codes())
	require.Contains(t, a.value(workspace), `"region":"us-east-2"`)
	require.Contains(t, a.value(workspace), `"core.kcp.io/shard":"moon"`)
	a.requireSteps("region=REGION")

	fix := move.Import{FixOwner: true, AsShard: "shard-1"}
	shard = edited(t, shard, swap(shardObject, `"region":"us-east-1",`, ""))
	a = importInto(t, from, shard, fix).written()
	require.Equal(t, []string{"region-unknown"}, a.codes())
	require.Contains(t, a.Problems[0].Reason, `shard "shard-1" has no label region`)
	require.Contains(t, a.value(workspace), `"region":"us-east-2"`)
	a = importInto(t, from, edited(t, shard, swap(workspace, `"region":"us-east-2",`, "")), fix).written()
	require.Empty(t, a.Problems)
	require.NotContains(t, a.value(workspace), `"region":`)
}

// TestImportDropsMigrating checks that kcp can serve a logical cluster with an unfinished live
// migration again.
func TestImportDropsMigrating(t *testing.T) {
	from := archiveOf(t, root(t, migrating(consumer)), allow("migrating"))
	was := valueIn(t, root(t), home(consumer))
	require.Equal(t, was, importInto(t, from, shard1(t), move.Import{}).written().value(home(consumer)))
	_, shard := purgedRoot(t)
	a := importInto(t, from, shard, move.Import{FixOwner: true, AsShard: "shard-1"}).written()
	require.Equal(t, swapped(t, was, onRoot, onShard1), a.value(home(consumer)), "both edits")
}

// TestImportManyOwners checks that steps for hundreds of Workspaces are truncated.
func TestImportManyOwners(t *testing.T) {
	x := move.Extract{Name: "root", WithChildren: true}
	from := extract(t, kcptest.Many(t, 30), x, allowAll(move.ExtractSpec)).written().out
	a := importInto(t, from, shard1(t), move.Import{}, allowAll(move.ImportSpec)).written()
	require.Len(t, a.Clusters, 35)
	require.Less(t, len(a.Steps), 30)
	require.Contains(t, a.Steps[len(a.Steps)-1], "other logical clusters that came in, 48 steps")
}
