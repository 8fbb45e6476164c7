package kcp_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/kcp/carry"
	"github.com/etcdshift/etcdshift/internal/kcp/clusters"
	"github.com/etcdshift/etcdshift/internal/kcp/extract"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// recordedCache reads the recorded cache.
func recordedCache(t testing.TB) *clusters.File {
	t.Helper()
	s, err := snapshot.Open(context.Background(), kcptest.Recorded(t, kcptest.Cache), snapshot.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	f, err := clusters.Read(context.Background(), inspect.NewReader(s, nil))
	require.NoError(t, err)
	return f
}

// withTexts is a file in which texts of one record were replaced, pairs of old and new.
func withTexts(t testing.TB, path, key string, pairs ...string) string {
	t.Helper()
	return kcptest.Edit(t, path, func(client *clientv3.Client) {
		value := string(kcptest.Get(t, client, key))
		for n := 0; n < len(pairs); n += 2 {
			require.Contains(t, value, pairs[n])
			value = strings.Replace(value, pairs[n], pairs[n+1], 1)
		}
		kcptest.Put(t, client, key, []byte(value))
	})
}

func hasStep(steps []string, words ...string) bool {
	for _, step := range steps {
		found := true
		for _, w := range words {
			found = found && strings.Contains(step, w)
		}
		if found {
			return true
		}
	}
	return false
}

// purgedRoot is root without consumer, and the archive of that.
func purgedRoot(t testing.TB) (from, shard string) {
	t.Helper()
	root := kcptest.Recorded(t, kcptest.Root)
	from = extractOf(t, root, extraction{Name: kcptest.Consumer})
	shard = kcptest.Edit(t, root, func(client *clientv3.Client) {
		r, err := client.Get(context.Background(), "/registry/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
		require.NoError(t, err)
		for _, kv := range r.Kvs {
			if clusterOf(kv.Key) == kcptest.Consumer {
				kcptest.Delete(t, client, string(kv.Key))
			}
		}
	})
	return from, shard
}

// TestImportLeavesOwner: without --fix-owner nothing is changed, since kcp mends what names another
// shard; and a person is told what to look at.
func TestImportLeavesOwner(t *testing.T) {
	from := extractOf(t, kcptest.Recorded(t, kcptest.Root), extraction{Name: kcptest.Consumer})
	a := importInto(t, from, kcptest.Recorded(t, kcptest.Shard1), carry.Import{Cache: recordedCache(t)}, transform.Options{}).written()
	require.Contains(t, a.value(kcptest.LogicalClusterKey(kcptest.Consumer)), `"core.kcp.io/shard":"root"`)
	require.Empty(t, a.report.Problems)
	steps := a.report.Steps
	require.True(t, hasStep(steps, "kcp purge 2y3qvnqz5ga11oc4 ORIGIN ORIGIN-OUT"), "%q", steps)
	require.True(t, hasStep(steps, "--from-shard root"), "%q", steps)
	require.True(t, hasStep(steps, "kcp verify "+from+" ORIGIN-OUT"), "%q", steps)
	require.True(t, hasStep(steps, `Workspace "consumer" in logical cluster "root"`, `lives on shard "shard-1"`), "%q", steps)
	require.True(t, hasStep(steps, "kubectl --server https://127.0.0.1:6443/clusters/root label --overwrite workspaces.tenancy.kcp.io consumer region=us-east-1"), "%q", steps)

	a = importInto(t, from, a.in, carry.Import{}, transform.Options{}).written()
	require.True(t, hasStep(a.report.Steps, "kubectl --server https://FRONT-PROXY/clusters/root label", "region=REGION"), "%q", a.report.Steps)
}

// TestImportOwnerNotHealed: kcp takes a LogicalCluster that names the right shard for settled,
// whatever its Workspace says.
func TestImportOwnerNotHealed(t *testing.T) {
	from, shard := purgedRoot(t)
	t.Run("settled", func(t *testing.T) {
		a := importInto(t, from, shard, carry.Import{}, transform.Options{}).written()
		require.Empty(t, a.report.Problems, "the Workspace says so too")
		require.False(t, hasStep(a.report.Steps, "Workspace"), "%q", a.report.Steps)
		require.False(t, hasStep(a.report.Steps, "kcp purge"), "%q", a.report.Steps)
		require.True(t, hasStep(a.report.Steps, `shard "root", which is where the archive was made`), "%q", a.report.Steps)
	})
	t.Run("Workspace in the file", func(t *testing.T) {
		other := withTexts(t, shard, kcptest.WorkspaceKey("consumer"), `"core.kcp.io/shard":"root"`, `"core.kcp.io/shard":"shard-1"`)
		a := importInto(t, from, other, carry.Import{}, transform.Options{}).written()
		require.Equal(t, []string{codeOwnerNotHealed}, codes(a.report))
		require.Contains(t, a.report.Problems[0].Reason, `its Workspace "consumer" says shard "shard-1"`)
	})
	t.Run("Workspace elsewhere", func(t *testing.T) {
		a := importInto(t, from, kcptest.Recorded(t, kcptest.Shard1), carry.Import{AsShard: "root"}, transform.Options{}).written()
		require.Equal(t, []string{codeOwnerNotHealed}, codes(a.report))
		require.Contains(t, a.report.Problems[0].Reason, "in neither file")
		require.True(t, hasStep(a.report.Steps, "annotate --overwrite workspaces.tenancy.kcp.io consumer core.kcp.io/shard=root internal.tenancy.kcp.io/shard=1pfxsevk"), "%q", a.report.Steps)
		require.False(t, hasStep(a.report.Steps, "kcp has it say"), "%q", a.report.Steps)
	})
}

// TestFixOwner: LogicalCluster and Workspace say at once where the logical cluster lives, and in
// which region; no other byte changes.
func TestFixOwner(t *testing.T) {
	from, shard := purgedRoot(t)
	shard = withTexts(t, shard, kcptest.WorkspaceKey("consumer"), `"core.kcp.io/shard":"root"`, `"core.kcp.io/shard":"shard-1"`, "1pfxsevk", "2e1tfbst", "us-east-2", "mars")
	for name, c := range map[string]struct{ hash, region string }{"root": {"1pfxsevk", "us-east-2"}, "shard-1": {"2e1tfbst", "us-east-1"}} {
		t.Run(name, func(t *testing.T) {
			a := importInto(t, from, shard, carry.Import{FixOwner: true, AsShard: name}, transform.Options{}).written()
			require.Empty(t, a.report.Problems)
			require.Equal(t, transform.Changes{Created: 36, Updated: 1}, a.report.Changes)
			a.arrived(kcptest.WorkspaceKey("consumer"))

			recorded := arrival{t: t, out: kcptest.Recorded(t, kcptest.Root)}
			want := strings.NewReplacer(`"core.kcp.io/shard":"root"`, `"core.kcp.io/shard":"`+name+`"`, "1pfxsevk", c.hash, "us-east-2", c.region)
			for _, key := range []string{kcptest.WorkspaceKey("consumer"), kcptest.LogicalClusterKey(kcptest.Consumer)} {
				require.Equal(t, want.Replace(recorded.value(key)), a.value(key))
			}
			require.Equal(t, a.report.Input.Keys-1, a.report.Rest.Keys)
			require.False(t, hasStep(a.report.Steps, "Workspace"), "%q", a.report.Steps)
		})
	}
}

// TestFixOwnerOfChild: a parent that comes along has the Workspace of the child in the archive.
func TestFixOwnerOfChild(t *testing.T) {
	root := kcptest.Recorded(t, kcptest.Root)
	from := extractOf(t, root, extraction{Name: kcptest.Consumer, WithChildren: true})
	shard := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Shard1), func(client *clientv3.Client) { // a shard that is the root of all, too
		value := arrival{t: t, out: root}.value(kcptest.WorkspaceKey("consumer"))
		kcptest.Put(t, client, kcptest.WorkspaceKey("consumer"), []byte(value))
		kcptest.Put(t, client, kcptest.LogicalClusterKey("root"), []byte(arrival{t: t, out: root}.value(kcptest.LogicalClusterKey("root"))))
	})
	a := importInto(t, from, shard, carry.Import{FixOwner: true, Cache: recordedCache(t)}, transform.Options{}).written()
	require.Empty(t, a.report.Problems)
	workspace := strings.Replace(kcptest.WorkspaceKey("child"), "/root/", "/"+kcptest.Consumer+"/", 1)
	for _, key := range []string{workspace, kcptest.WorkspaceKey("consumer")} {
		require.Contains(t, a.value(key), `"core.kcp.io/shard":"shard-1"`)
		require.Contains(t, a.value(key), `"internal.tenancy.kcp.io/shard":"2e1tfbst"`)
		require.Contains(t, a.value(key), `"region":"us-east-1"`)
	}
	require.True(t, hasStep(a.report.Steps, "kcp purge "+kcptest.Consumer+" ORIGIN ORIGIN-OUT --with-children"), "%q", a.report.Steps)
	require.True(t, hasStep(a.report.Steps, "purge NAME CACHE CACHE-OUT --from-shard root --to-shard shard-1, for each NAME of 1n7wq48mavio4f0j, 2y3qvnqz5ga11oc4"), "%q", a.report.Steps)
	for _, name := range []string{kcptest.Consumer, kcptest.Child} {
		require.Contains(t, a.value(kcptest.LogicalClusterKey(name)), `"core.kcp.io/shard":"shard-1"`)
	}
	a.arrived(kcptest.WorkspaceKey("consumer"))
}

// TestImportOwnerElsewhere: a Workspace that is not there cannot be fixed, nor is another of its
// name the one.
func TestImportOwnerElsewhere(t *testing.T) {
	from, shard := purgedRoot(t)
	fix := carry.Import{FixOwner: true, AsShard: "x"}
	for name, file := range map[string]string{
		"another file":    kcptest.Recorded(t, kcptest.Shard1),
		"another UID":     withTexts(t, shard, kcptest.WorkspaceKey("consumer"), "cca45fce-d305-4471-ab7a-4500afb71a0b", "cca45fce-d305-4471-ab7a-4500afb71a0c"),
		"another cluster": withTexts(t, shard, kcptest.WorkspaceKey("consumer"), `"cluster":"2y3qvnqz5ga11oc4"`, `"cluster":"2y3qvnqz5ga11oc5"`),
	} {
		t.Run(name, func(t *testing.T) {
			found := importInto(t, from, file, fix, transform.Options{Allow: finding.Allowable(carry.Spec.Codes)}).refused(codeOwnerElsewhere)
			require.Equal(t, kcptest.LogicalClusterKey(kcptest.Consumer), found[0].Key)
		})
	}
}

// TestImportRegionUnknown: without the Shard object the label stays, and a person is told.
func TestImportRegionUnknown(t *testing.T) {
	from, shard := purgedRoot(t)
	a := importInto(t, from, shard, carry.Import{FixOwner: true, AsShard: "moon"}, transform.Options{}).written()
	require.Equal(t, []string{codeRegionUnknown}, codes(a.report))
	require.Contains(t, a.value(kcptest.WorkspaceKey("consumer")), `"region":"us-east-2"`)
	require.Contains(t, a.value(kcptest.WorkspaceKey("consumer")), `"core.kcp.io/shard":"moon"`)
	require.True(t, hasStep(a.report.Steps, "region=REGION"), "%q", a.report.Steps)
}

// TestRegionUnlabelled: a shard without a region has none to tell; the label of a Workspace stays,
// if it has one.
func TestRegionUnlabelled(t *testing.T) {
	from, shard := purgedRoot(t)
	shard = withTexts(t, shard, "/registry/core.kcp.io/shards/884102f8452eda7c0798bf3ce74f7fe7fed14b736c1a04fcd7267dd6fb162fe4/root/shard-1", `"region":"us-east-1",`, "")
	fix := carry.Import{FixOwner: true, AsShard: "shard-1"}
	a := importInto(t, from, shard, fix, transform.Options{}).written()
	require.Equal(t, []string{codeRegionUnknown}, codes(a.report))
	require.Contains(t, a.report.Problems[0].Reason, `shard "shard-1" has no label region`)
	require.Contains(t, a.value(kcptest.WorkspaceKey("consumer")), `"region":"us-east-2"`)

	shard = withTexts(t, shard, kcptest.WorkspaceKey("consumer"), `"region":"us-east-2",`, "")
	a = importInto(t, from, shard, fix, transform.Options{}).written()
	require.Empty(t, a.report.Problems)
	require.NotContains(t, a.value(kcptest.WorkspaceKey("consumer")), `"region":`)
}

// TestFixOwnerUnnamed: what is not known cannot be written.
func TestFixOwnerUnnamed(t *testing.T) {
	from := extractOf(t, kcptest.Recorded(t, kcptest.Root), extraction{Name: kcptest.Consumer})
	shard := withTexts(t, kcptest.Recorded(t, kcptest.Shard1), kcptest.LogicalClusterKey("system:shard"), `"core.kcp.io/shard":"shard-1"`, `"x":"shard-1"`)
	a := importInto(t, from, shard, carry.Import{FixOwner: true}, transform.Options{})
	require.ErrorIs(t, a.err, carry.ErrNoName)
}

// TestImportDropsMigrating: a logical cluster that a live migration had is served again.
func TestImportDropsMigrating(t *testing.T) {
	root := withTexts(t, kcptest.Recorded(t, kcptest.Root), kcptest.LogicalClusterKey(kcptest.Consumer), `"internal.tenancy.kcp.io/type"`, `"internal.kcp.io/migrating":"root:m","internal.tenancy.kcp.io/type"`)
	from := extractOf(t, root, extraction{Name: kcptest.Consumer, Allow: []string{codeMigrating}})
	a := importInto(t, from, kcptest.Recorded(t, kcptest.Shard1), carry.Import{}, transform.Options{}).written()
	recorded := arrival{t: t, out: kcptest.Recorded(t, kcptest.Root)}
	key := kcptest.LogicalClusterKey(kcptest.Consumer)
	require.Equal(t, recorded.value(key), a.value(key))

	_, shard := purgedRoot(t)
	a = importInto(t, from, shard, carry.Import{FixOwner: true, AsShard: "shard-1"}, transform.Options{}).written()
	require.Equal(t, strings.Replace(recorded.value(key), `"core.kcp.io/shard":"root"`, `"core.kcp.io/shard":"shard-1"`, 1), a.value(key), "both edits")
}

// TestImportManyOwners: what is the same for hundreds of Workspaces is not said hundreds of times.
func TestImportManyOwners(t *testing.T) {
	from := extractOf(t, kcptest.Many(t, 30), extraction{Name: "root", WithChildren: true, Allow: finding.Allowable(extract.Spec.Codes)})
	a := importInto(t, from, kcptest.Recorded(t, kcptest.Shard1), carry.Import{}, transform.Options{Allow: finding.Allowable(carry.Spec.Codes)}).written()
	require.Len(t, a.report.Clusters, 35)
	require.Less(t, len(a.report.Steps), 30)
	require.Contains(t, a.report.Steps[len(a.report.Steps)-1], "other logical clusters that came in, 48 steps")
}
