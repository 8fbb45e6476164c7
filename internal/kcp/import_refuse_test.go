package kcp_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/kcp/archive"
	"github.com/etcdshift/etcdshift/internal/kcp/carry"
	"github.com/etcdshift/etcdshift/internal/kcp/clusters"
	"github.com/etcdshift/etcdshift/internal/kcp/extract"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// widgetsDefinition is the bound definition of widgets.example.dev, on both recorded shards.
const widgetsDefinition = boundDir + "af5b5003-97ab-4fd4-a293-6e98034dc20c"

const boundDir = "/registry/apiextensions.k8s.io/customresourcedefinitions/system:bound-crds/"

// consumerArchive is the archive of the recorded consumer.
func consumerArchive(t testing.TB) string {
	t.Helper()
	return extractOf(t, kcptest.Recorded(t, kcptest.Root), extraction{Name: kcptest.Consumer})
}

// TestImportClusterExists: nothing may lie in the way, an orphan neither, and nothing allows it.
func TestImportClusterExists(t *testing.T) {
	from := consumerArchive(t)
	a := importInto(t, from, kcptest.Recorded(t, kcptest.Shard1), carry.Import{}, transform.Options{}).written()
	orphan := "/registry/pods/" + kcptest.ExampleDev + "/" + kcptest.Consumer + "/ns/p"
	home := kcptest.LogicalClusterKey(kcptest.Consumer)
	for name, c := range map[string]struct{ shard, key, reason string }{
		"twice":  {a.out, kcptest.LogicalClusterKey(kcptest.Consumer), "36 keys"},
		"orphan": {withKey(t, kcptest.Recorded(t, kcptest.Shard1), orphan), orphan, "1 key; purge them first: etcdshift kcp purge --orphans " + kcptest.Consumer},
		"another storage of the file": {withKey(t, withKey(t, kcptest.Recorded(t, kcptest.Shard1), "/other/apiextensions.k8s.io/customresourcedefinitions/system:system-crds/a.b"),
			strings.Replace(orphan, "/registry/", "/other/", 1)), strings.Replace(orphan, "/registry/", "/other/", 1), `orphans of "` + kcptest.Consumer + `" below the prefix "/other", another storage of the same file, with 1 key`},
		"it lives in another storage": {withKey(t, withKey(t, kcptest.Recorded(t, kcptest.Shard1), "/other/apiextensions.k8s.io/customresourcedefinitions/system:system-crds/a.b"),
			strings.Replace(home, "/registry/", "/other/", 1)), strings.Replace(home, "/registry/", "/other/", 1), `lives there below the prefix "/other", another storage of the same file, already with 1 key`},
	} {
		t.Run(name, func(t *testing.T) {
			run := transform.Options{Allow: finding.Allowable(carry.Spec.Codes)}
			if strings.Contains(name, "another storage") {
				run.Prefixes = []string{"/registry"}
			}
			found := importInto(t, from, c.shard, carry.Import{}, run).refused(codeClusterExists)
			require.Len(t, found, 1)
			require.Equal(t, c.key, found[0].Key)
			require.Contains(t, found[0].Reason, c.reason)
			require.Equal(t, name == "orphan", strings.Contains(found[0].Reason, "--orphans"), found[0].Reason)
		})
	}
}

// withKey is a file with one more key.
func withKey(t testing.TB, path, key string) string {
	t.Helper()
	return kcptest.Edit(t, path, func(client *clientv3.Client) { kcptest.Put(t, client, key, []byte(`{"kind":"X"}`)) })
}

// TestImportBringsDefinitions: a shard without the bound definitions gets them, first and byte for
// byte.
func TestImportBringsDefinitions(t *testing.T) {
	shard := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Shard1), func(client *clientv3.Client) { kcptest.Delete(t, client, widgetsDefinition) })
	a := importInto(t, consumerArchive(t), shard, carry.Import{}, transform.Options{}).written()
	require.Empty(t, a.report.Problems)
	came, _ := a.arrived()
	require.Len(t, came, 37)
	recorded := arrival{t: t, out: kcptest.Recorded(t, kcptest.Root)}
	for _, kv := range came {
		if string(kv.Key) == widgetsDefinition {
			require.Equal(t, recorded.value(widgetsDefinition), string(kv.Value))
			require.Equal(t, a.report.Input.Revision+1, kv.ModRevision)
		}
	}
	require.Equal(t, 36, a.report.Clusters[0].Keys)
	require.Equal(t, a.report.Input.Keys, a.report.Rest.Keys)
}

// TestImportMergesStoredVersions: theirs first, then those that come in; nothing else of the
// definition changes.
func TestImportMergesStoredVersions(t *testing.T) {
	versions := []string{`"versions":[{"name":"v1","served":true,"storage":true}]`, `"versions":[{"name":"v1","served":true,"storage":true},{"name":"v1alpha1","served":true,"storage":false}]`}
	root := withTexts(t, kcptest.Recorded(t, kcptest.Root), widgetsDefinition, versions[0], versions[1], `"storedVersions":["v1"]`, `"storedVersions":["v1alpha1","v1"]`)
	shard := withTexts(t, kcptest.Recorded(t, kcptest.Shard1), widgetsDefinition, versions[0], versions[1])
	from := extractOf(t, root, extraction{Name: kcptest.Consumer})
	a := importInto(t, from, shard, carry.Import{}, transform.Options{}).written()
	require.Empty(t, a.report.Problems)
	require.Equal(t, transform.Changes{Created: 36, Updated: 1}, a.report.Changes)
	a.arrived(widgetsDefinition)
	was := arrival{t: t, out: shard}.value(widgetsDefinition)
	require.Equal(t, strings.Replace(was, `"storedVersions":["v1"]`, `"storedVersions":["v1","v1alpha1"]`, 1), a.value(widgetsDefinition))
	require.Equal(t, a.report.Input.Keys-1, a.report.Rest.Keys)
}

// TestImportDefinitionDiffers: the shard's stays; it takes what it can of the stored versions.
func TestImportDefinitionDiffers(t *testing.T) {
	shard := withTexts(t, kcptest.Recorded(t, kcptest.Shard1), widgetsDefinition, `"singular":"widget"`, `"singular":"gadget"`)
	from := consumerArchive(t)
	found := importInto(t, from, shard, carry.Import{}, transform.Options{}).refused(codeDefinitionDiffers)
	require.Equal(t, widgetsDefinition, found[0].Key)
	a := importInto(t, from, shard, carry.Import{}, transform.Options{Allow: []string{codeDefinitionDiffers}}).written()
	left, _ := a.report.Errors()
	require.Zero(t, left)
	came, _ := a.arrived()
	require.Len(t, came, 36)

	broken := kcptest.Edit(t, shard, func(client *clientv3.Client) { kcptest.Put(t, client, widgetsDefinition, []byte("{")) })
	found = importInto(t, from, broken, carry.Import{}, transform.Options{}).refused(codeDefinitionDiffers)
	require.Contains(t, found[0].Reason, "cannot be read")
}

// TestImportMissingDefinition: what no file has, kcp could not serve.
func TestImportMissingDefinition(t *testing.T) {
	drop := func(client *clientv3.Client) { kcptest.Delete(t, client, widgetsDefinition) }
	root := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Root), drop)
	from := extractOf(t, root, extraction{Name: kcptest.Consumer})
	a := importInto(t, from, kcptest.Recorded(t, kcptest.Shard1), carry.Import{}, transform.Options{}).written()
	require.Empty(t, a.report.Problems, "the shard has it")

	shard := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Shard1), drop)
	found := importInto(t, from, shard, carry.Import{}, transform.Options{}).refused(codeMissingDefinition)
	require.Len(t, found, 1)
	require.Equal(t, widgetsDefinition, found[0].Key)
	require.Contains(t, found[0].Reason, `APIBinding "example.dev"`)
	importInto(t, from, shard, carry.Import{}, transform.Options{Allow: []string{codeMissingDefinition}}).written()
}

// TestImportMissingOwnDefinition: custom resources whose own definition did not come are read by
// nobody.
func TestImportMissingOwnDefinition(t *testing.T) {
	root := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Root), func(client *clientv3.Client) {
		kcptest.Delete(t, client, "/registry/apiextensions.k8s.io/customresourcedefinitions/"+kcptest.Consumer+"/globes.crd.example.org")
	})
	from := extractOf(t, root, extraction{Name: kcptest.Consumer, Allow: []string{codeMissingDefinition}})
	found := importInto(t, from, kcptest.Recorded(t, kcptest.Shard1), carry.Import{}, transform.Options{}).refused(codeMissingDefinition)
	require.Equal(t, "/registry/crd.example.org/globes/customresources/"+kcptest.Consumer+"/world", found[0].Key)
}

// TestImportUnknownIdentity: vouched for by the shard, by its cache, or by what comes along; else
// refused.
func TestImportUnknownIdentity(t *testing.T) {
	from := consumerArchive(t)
	shard := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Shard1), func(client *clientv3.Client) { // where nobody binds example.dev
		kcptest.Delete(t, client, "/registry/apis.kcp.io/apibindings/customresources/"+kcptest.Consumer1+"/example.dev")
	})
	found := importInto(t, from, shard, carry.Import{}, transform.Options{}).refused(codeUnknownIdentity)
	require.Len(t, found, 1)
	require.Contains(t, found[0].Reason, kcptest.ExampleDev+", of pods, sprockets.example.dev, widgets.example.dev,")
	importInto(t, from, shard, carry.Import{Cache: recordedCache(t)}, transform.Options{}).written()
	importInto(t, from, shard, carry.Import{}, transform.Options{Allow: []string{codeUnknownIdentity}}).written()

	provider := extractOf(t, kcptest.Recorded(t, kcptest.Root), extraction{Name: kcptest.Provider})
	a := importInto(t, provider, shard, carry.Import{}, transform.Options{}).written()
	require.Empty(t, a.report.Problems)
	importInto(t, from, a.out, carry.Import{}, transform.Options{}).written()
}

// TestImportUnlistedVersion: an object is read only at a version that its definition lists: that of
// the shard for what is kcp's or bound, its own for all else.
func TestImportUnlistedVersion(t *testing.T) {
	const system = "/registry/apiextensions.k8s.io/customresourcedefinitions/system:system-crds/logicalclusters.core.kcp.io"
	root, shard1 := kcptest.Recorded(t, kcptest.Root), kcptest.Recorded(t, kcptest.Shard1)
	own := "/registry/crd.example.org/gizmos/customresources/" + kcptest.Consumer + "/default/g1"
	bound := "/registry/example.dev/widgets/" + kcptest.ExampleDev + "/" + kcptest.Consumer + "/default/w1"
	for name, c := range map[string]struct{ root, shard, key, version string }{
		"own":   {withTexts(t, root, own, `"crd.example.org/v2"`, `"crd.example.org/v9"`), shard1, own, "v9"},
		"bound": {withTexts(t, root, bound, `"example.dev/v1"`, `"example.dev/v9"`), shard1, bound, "v9"},
		"kcp's own": {root, withTexts(t, shard1, system, `"name":"v1alpha1"`, `"name":"v1"`, `"storedVersions":["v1alpha1"]`, `"storedVersions":["v1"]`, `"version":"v1alpha1"`, `"version":"v1"`),
			kcptest.LogicalClusterKey(kcptest.Consumer), "v1alpha1"},
	} {
		t.Run(name, func(t *testing.T) {
			from := extractOf(t, c.root, extraction{Name: kcptest.Consumer})
			found := importInto(t, from, c.shard, carry.Import{}, transform.Options{}).refused(codeUnlistedVersion)
			require.Len(t, found, 1)
			require.Equal(t, c.key, found[0].Key)
			require.Contains(t, found[0].Reason, `1 record of`)
			require.Contains(t, found[0].Reason, c.version)
			importInto(t, from, c.shard, carry.Import{}, transform.Options{Allow: []string{codeUnlistedVersion}}).written()
		})
	}
}

// TestImportUnserved: a type of kcp that the shard's kcp does not have.
func TestImportUnserved(t *testing.T) {
	shard := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Shard1), func(client *clientv3.Client) {
		kcptest.Delete(t, client, "/registry/apiextensions.k8s.io/customresourcedefinitions/system:system-crds/apibindings.apis.kcp.io")
	})
	from := consumerArchive(t)
	found := importInto(t, from, shard, carry.Import{}, transform.Options{}).refused(codeUnserved)
	require.Len(t, found, 1)
	require.Contains(t, found[0].Reason, "3 records of apibindings.apis.kcp.io")
	importInto(t, from, shard, carry.Import{}, transform.Options{Allow: []string{codeUnserved}}).written()
}

// TestImportTerminating: what is being deleted would go on being deleted.
func TestImportTerminating(t *testing.T) {
	root := withTexts(t, kcptest.Recorded(t, kcptest.Root), kcptest.LogicalClusterKey(kcptest.Consumer), `"finalizers"`, `"deletionTimestamp":"2026-11-20T20:00:00Z","finalizers"`)
	from := extractOf(t, root, extraction{Name: kcptest.Consumer, Allow: []string{codeTerminating}})
	found := importInto(t, from, kcptest.Recorded(t, kcptest.Shard1), carry.Import{}, transform.Options{}).refused(codeTerminating)
	require.Contains(t, found[0].Reason, "2026-11-20T20:00:00Z")
	importInto(t, from, kcptest.Recorded(t, kcptest.Shard1), carry.Import{}, transform.Options{Allow: []string{codeTerminating}}).written()
}

// TestImportSystemCluster: the logical cluster root is not to live on another shard.
func TestImportSystemCluster(t *testing.T) {
	from := extractOf(t, kcptest.Recorded(t, kcptest.Root), extraction{Name: "root", Allow: []string{codeSystemCluster}})
	importInto(t, from, kcptest.Recorded(t, kcptest.Shard1), carry.Import{}, transform.Options{}).refused(codeSystemCluster)
	importInto(t, from, kcptest.Recorded(t, kcptest.Shard1), carry.Import{}, transform.Options{Allow: []string{codeSystemCluster}}).written()
}

// TestImportNoShard: what is no shard of kcp, or one that never ran, is none to import into.
func TestImportNoShard(t *testing.T) {
	from := consumerArchive(t)
	a := importInto(t, from, kcptest.Recorded(t, kcptest.Cache), carry.Import{}, transform.Options{})
	require.ErrorIs(t, a.err, clusters.ErrNoShard)
	empty := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Shard1), func(client *clientv3.Client) {
		_, err := client.Delete(t.Context(), "/registry/apiextensions.k8s.io/customresourcedefinitions/system:system-crds/", clientv3.WithPrefix())
		require.NoError(t, err)
	})
	a = importInto(t, from, empty, carry.Import{}, transform.Options{})
	require.ErrorIs(t, a.err, carry.ErrPartial)
	require.ErrorContains(t, a.err, clusters.SystemCRDs)
	partial := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Shard1), func(client *clientv3.Client) {
		kcptest.Delete(t, client, kcptest.LogicalClusterKey(clusters.SystemShard))
	})
	a = importInto(t, from, partial, carry.Import{}, transform.Options{})
	require.ErrorIs(t, a.err, carry.ErrPartial)
	require.ErrorContains(t, a.err, clusters.SystemShard)
	a = importInto(t, from, from, carry.Import{}, transform.Options{})
	require.ErrorIs(t, a.err, carry.ErrPartial, "an archive is no shard")
}

// TestImportUndecodable: what nobody could read on the origin comes as it is, and is told.
func TestImportUndecodable(t *testing.T) {
	key := "/registry/crd.example.org/gizmos/customresources/" + kcptest.Consumer + "/default/g1"
	root := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Root), func(client *clientv3.Client) { kcptest.Put(t, client, key, []byte("{")) })
	from := extractOf(t, root, extraction{Name: kcptest.Consumer, Allow: finding.Allowable(extract.Spec.Codes)})
	a := importInto(t, from, kcptest.Recorded(t, kcptest.Shard1), carry.Import{}, transform.Options{}).written()
	require.Equal(t, []string{clusters.CodeUndecodable.Name}, codes(a.report))
	require.Equal(t, key, a.report.Problems[0].Key)
	require.Equal(t, "{", a.value(key))
}

// TestImportCacheInSameFile: a cache that shares the shard's etcd tells as much as one of its own.
func TestImportCacheInSameFile(t *testing.T) {
	cache, _ := kcptest.Dump(t, kcptest.Recorded(t, kcptest.Cache))
	shard := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Shard1), func(client *clientv3.Client) {
		kcptest.Delete(t, client, "/registry/apis.kcp.io/apibindings/customresources/"+kcptest.Consumer1+"/example.dev")
		for _, kv := range cache {
			if strings.HasPrefix(string(kv.Key), "/cache/") {
				kcptest.Put(t, client, string(kv.Key), kv.Value)
			}
		}
	})
	a := importInto(t, consumerArchive(t), shard, carry.Import{}, transform.Options{}).written()
	require.Empty(t, a.report.Problems)
	require.True(t, hasStep(a.report.Steps, "region=us-east-1"), "%q", a.report.Steps)
	came, _ := a.arrived()
	require.Len(t, came, 36)
}

// TestImportNoLogicalCluster: a manifest that names what the archive has no LogicalCluster of was
// not made here.
func TestImportNoLogicalCluster(t *testing.T) {
	ctx := context.Background()
	file, err := snapshot.Open(ctx, consumerArchive(t), snapshot.Config{})
	require.NoError(t, err)
	defer file.Close()
	m, err := archive.OpenChecked(ctx, file)
	require.NoError(t, err)
	m.Clusters[0].Name = kcptest.Other
	run := transform.Options{In: kcptest.Recorded(t, kcptest.Shard1), Out: filepath.Join(t.TempDir(), "out.db")}
	_, err = transform.Run(ctx, run, &carry.Import{Archive: file, Manifest: m})
	require.ErrorIs(t, err, carry.ErrNoLogicalCluster)
}

// TestImportOddLogicalCluster: what an archive has of an object that says something else than its
// key is told.
func TestImportOddLogicalCluster(t *testing.T) {
	root := withTexts(t, kcptest.Recorded(t, kcptest.Root), kcptest.LogicalClusterKey(kcptest.Consumer), `"kcp.io/cluster":"`+kcptest.Consumer, `"kcp.io/cluster":"`+kcptest.Other)
	from := extractOf(t, root, extraction{Name: kcptest.Consumer, Allow: []string{codeKeyMismatch}})
	a := importInto(t, from, kcptest.Recorded(t, kcptest.Shard1), carry.Import{}, transform.Options{}).written()
	require.Equal(t, []string{codeKeyMismatch}, codes(a.report))
	require.Equal(t, finding.Warning, a.report.Problems[0].Level)
}

// TestImportSplit: a prefix below the shard's makes another storage of a part of it, in which
// nobody would look.
func TestImportSplit(t *testing.T) {
	run := transform.Options{Prefixes: []string{"/registry", "/registry/core"}}
	a := importInto(t, consumerArchive(t), kcptest.Recorded(t, kcptest.Shard1), carry.Import{}, run)
	require.ErrorIs(t, a.err, clusters.ErrSplit)
	require.NoFileExists(t, a.out)
	root, shard1 := kcptest.LiveMigrated(t)
	a = putBack(t, shard1, root, carry.PutBack{}, run)
	require.ErrorIs(t, a.err, clusters.ErrSplit)
}
