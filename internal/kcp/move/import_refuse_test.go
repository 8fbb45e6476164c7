package move_test

import (
	"context"
	"iter"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/kcp/archive"
	"github.com/etcdshift/etcdshift/internal/kcp/move"
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
	a := importInto(t, from, kcptest.Recorded(t, kcptest.Shard1), move.Import{}, transform.Options{}).written()
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
			run := transform.Options{Allow: finding.Allowable(move.ImportSpec.Codes)}
			if strings.Contains(name, "another storage") {
				run.Prefixes = []string{"/registry"}
			}
			found := importInto(t, from, c.shard, move.Import{}, run).refused("cluster-exists")
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
	a := importInto(t, consumerArchive(t), shard, move.Import{}, transform.Options{}).written()
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
	a := importInto(t, from, shard, move.Import{}, transform.Options{}).written()
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
	found := importInto(t, from, shard, move.Import{}, transform.Options{}).refused("definition-differs")
	require.Equal(t, widgetsDefinition, found[0].Key)
	a := importInto(t, from, shard, move.Import{}, transform.Options{Allow: []string{"definition-differs"}}).written()
	left, _ := a.report.Errors()
	require.Zero(t, left)
	came, _ := a.arrived()
	require.Len(t, came, 36)

	broken := kcptest.Edit(t, shard, func(client *clientv3.Client) { kcptest.Put(t, client, widgetsDefinition, []byte("{")) })
	found = importInto(t, from, broken, move.Import{}, transform.Options{}).refused("definition-differs")
	require.Contains(t, found[0].Reason, "cannot be read")
}

// TestImportMissingDefinition: what no file has, kcp could not serve.
func TestImportMissingDefinition(t *testing.T) {
	drop := func(client *clientv3.Client) { kcptest.Delete(t, client, widgetsDefinition) }
	root := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Root), drop)
	from := extractOf(t, root, extraction{Name: kcptest.Consumer})
	a := importInto(t, from, kcptest.Recorded(t, kcptest.Shard1), move.Import{}, transform.Options{}).written()
	require.Empty(t, a.report.Problems, "the shard has it")

	shard := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Shard1), drop)
	found := importInto(t, from, shard, move.Import{}, transform.Options{}).refused("missing-definition")
	require.Len(t, found, 1)
	require.Equal(t, widgetsDefinition, found[0].Key)
	require.Contains(t, found[0].Reason, `APIBinding "example.dev"`)
	importInto(t, from, shard, move.Import{}, transform.Options{Allow: []string{"missing-definition"}}).written()
}

// TestImportMissingOwnDefinition: custom resources whose own definition did not come are read by
// nobody.
func TestImportMissingOwnDefinition(t *testing.T) {
	root := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Root), func(client *clientv3.Client) {
		kcptest.Delete(t, client, "/registry/apiextensions.k8s.io/customresourcedefinitions/"+kcptest.Consumer+"/globes.crd.example.org")
	})
	from := extractOf(t, root, extraction{Name: kcptest.Consumer, Allow: []string{"missing-definition"}})
	found := importInto(t, from, kcptest.Recorded(t, kcptest.Shard1), move.Import{}, transform.Options{}).refused("missing-definition")
	require.Equal(t, "/registry/crd.example.org/globes/customresources/"+kcptest.Consumer+"/world", found[0].Key)
}

// TestImportUnknownIdentity: vouched for by the shard, by its cache, or by what comes along; else
// refused.
func TestImportUnknownIdentity(t *testing.T) {
	from := consumerArchive(t)
	shard := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Shard1), func(client *clientv3.Client) { // where nobody binds example.dev
		kcptest.Delete(t, client, "/registry/apis.kcp.io/apibindings/customresources/"+kcptest.Consumer1+"/example.dev")
	})
	found := importInto(t, from, shard, move.Import{}, transform.Options{}).refused("unknown-identity")
	require.Len(t, found, 1)
	require.Contains(t, found[0].Reason, kcptest.ExampleDev+", of pods, sprockets.example.dev, widgets.example.dev,")
	importInto(t, from, shard, move.Import{Cache: recordedCache(t)}, transform.Options{}).written()
	importInto(t, from, shard, move.Import{}, transform.Options{Allow: []string{"unknown-identity"}}).written()

	provider := extractOf(t, kcptest.Recorded(t, kcptest.Root), extraction{Name: kcptest.Provider})
	a := importInto(t, provider, shard, move.Import{}, transform.Options{}).written()
	require.Empty(t, a.report.Problems)
	importInto(t, from, a.out, move.Import{}, transform.Options{}).written()
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
			found := importInto(t, from, c.shard, move.Import{}, transform.Options{}).refused("unlisted-version")
			require.Len(t, found, 1)
			require.Equal(t, c.key, found[0].Key)
			require.Contains(t, found[0].Reason, `1 record of`)
			require.Contains(t, found[0].Reason, c.version)
			importInto(t, from, c.shard, move.Import{}, transform.Options{Allow: []string{"unlisted-version"}}).written()
		})
	}
}

// TestImportUnserved: a type of kcp that the shard's kcp does not have.
func TestImportUnserved(t *testing.T) {
	shard := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Shard1), func(client *clientv3.Client) {
		kcptest.Delete(t, client, "/registry/apiextensions.k8s.io/customresourcedefinitions/system:system-crds/apibindings.apis.kcp.io")
	})
	from := consumerArchive(t)
	found := importInto(t, from, shard, move.Import{}, transform.Options{}).refused("unserved")
	require.Len(t, found, 1)
	require.Contains(t, found[0].Reason, "3 records of apibindings.apis.kcp.io")
	importInto(t, from, shard, move.Import{}, transform.Options{Allow: []string{"unserved"}}).written()
}

// TestImportTerminating: what is being deleted would go on being deleted.
func TestImportTerminating(t *testing.T) {
	root := withTexts(t, kcptest.Recorded(t, kcptest.Root), kcptest.LogicalClusterKey(kcptest.Consumer), `"finalizers"`, `"deletionTimestamp":"2026-11-20T20:00:00Z","finalizers"`)
	from := extractOf(t, root, extraction{Name: kcptest.Consumer, Allow: []string{"terminating"}})
	found := importInto(t, from, kcptest.Recorded(t, kcptest.Shard1), move.Import{}, transform.Options{}).refused("terminating")
	require.Contains(t, found[0].Reason, "2026-11-20T20:00:00Z")
	importInto(t, from, kcptest.Recorded(t, kcptest.Shard1), move.Import{}, transform.Options{Allow: []string{"terminating"}}).written()
}

// TestImportSystemCluster: the logical cluster root is not to live on another shard.
func TestImportSystemCluster(t *testing.T) {
	from := extractOf(t, kcptest.Recorded(t, kcptest.Root), extraction{Name: "root", Allow: []string{"system-cluster"}})
	importInto(t, from, kcptest.Recorded(t, kcptest.Shard1), move.Import{}, transform.Options{}).refused("system-cluster")
	importInto(t, from, kcptest.Recorded(t, kcptest.Shard1), move.Import{}, transform.Options{Allow: []string{"system-cluster"}}).written()
}

// TestImportNoShard: what is no shard of kcp, or one that never ran, is none to import into.
func TestImportNoShard(t *testing.T) {
	from := consumerArchive(t)
	a := importInto(t, from, kcptest.Recorded(t, kcptest.Cache), move.Import{}, transform.Options{})
	require.ErrorIs(t, a.err, kcp.ErrNoShard)
	empty := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Shard1), func(client *clientv3.Client) {
		_, err := client.Delete(t.Context(), "/registry/apiextensions.k8s.io/customresourcedefinitions/system:system-crds/", clientv3.WithPrefix())
		require.NoError(t, err)
	})
	a = importInto(t, from, empty, move.Import{}, transform.Options{})
	require.ErrorIs(t, a.err, move.ErrPartial)
	require.ErrorContains(t, a.err, kcp.SystemCRDs)
	partial := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Shard1), func(client *clientv3.Client) {
		kcptest.Delete(t, client, kcptest.LogicalClusterKey(kcp.SystemShard))
	})
	a = importInto(t, from, partial, move.Import{}, transform.Options{})
	require.ErrorIs(t, a.err, move.ErrPartial)
	require.ErrorContains(t, a.err, kcp.SystemShard)
	a = importInto(t, from, from, move.Import{}, transform.Options{})
	require.ErrorIs(t, a.err, move.ErrPartial, "an archive is no shard")
}

// TestImportUndecodable: what nobody could read on the origin comes as it is, and is told.
func TestImportUndecodable(t *testing.T) {
	key := "/registry/crd.example.org/gizmos/customresources/" + kcptest.Consumer + "/default/g1"
	root := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Root), func(client *clientv3.Client) { kcptest.Put(t, client, key, []byte("{")) })
	from := extractOf(t, root, extraction{Name: kcptest.Consumer, Allow: finding.Allowable(move.ExtractSpec.Codes)})
	a := importInto(t, from, kcptest.Recorded(t, kcptest.Shard1), move.Import{}, transform.Options{}).written()
	require.Equal(t, []string{kcp.CodeUndecodable.Name}, codes(a.report))
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
	a := importInto(t, consumerArchive(t), shard, move.Import{}, transform.Options{}).written()
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
	_, err = transform.Run(ctx, run, &move.Import{Archive: file, Manifest: m})
	require.ErrorIs(t, err, move.ErrNoLogicalCluster)
}

// TestImportOddLogicalCluster: what an archive has of an object that says something else than its
// key is told.
func TestImportOddLogicalCluster(t *testing.T) {
	root := withTexts(t, kcptest.Recorded(t, kcptest.Root), kcptest.LogicalClusterKey(kcptest.Consumer), `"kcp.io/cluster":"`+kcptest.Consumer, `"kcp.io/cluster":"`+kcptest.Other)
	from := extractOf(t, root, extraction{Name: kcptest.Consumer, Allow: []string{"key-mismatch"}})
	a := importInto(t, from, kcptest.Recorded(t, kcptest.Shard1), move.Import{}, transform.Options{}).written()
	require.Equal(t, []string{"key-mismatch"}, codes(a.report))
	require.Equal(t, finding.Warning, a.report.Problems[0].Level)
}

// TestImportSplit: a prefix below the shard's makes another storage of a part of it, in which
// nobody would look.
func TestImportSplit(t *testing.T) {
	run := transform.Options{Prefixes: []string{"/registry", "/registry/core"}}
	a := importInto(t, consumerArchive(t), kcptest.Recorded(t, kcptest.Shard1), move.Import{}, run)
	require.ErrorIs(t, a.err, kcp.ErrSplit)
	require.NoFileExists(t, a.out)
	root, shard1 := kcptest.LiveMigrated(t)
	a = putBack(t, shard1, root, move.PutBack{}, run)
	require.ErrorIs(t, a.err, kcp.ErrSplit)
}

// forged is an archive that passes archive.Check: one record, of which the manifest says what it
// likes.
func forged(t *testing.T, key string, of archive.Resource, cluster string, definition *archive.Definition) *snapshot.Snapshot {
	t.Helper()
	rec := &snapshot.Record{
		Revision: snapshot.Revision{Main: 7}, Key: []byte("/registry" + key), Value: []byte(`{"kind":"ConfigMap"}`), CreateRevision: 7, ModRevision: 7, Version: 1,
	}
	nothing := archive.NewDigest().Sum()
	m := &archive.Manifest{
		APIVersion: archive.APIVersion, Kind: archive.Kind, Format: archive.Format, Name: cluster,
		Origin:   archive.Origin{Prefix: "/registry", SHA256: nothing.SHA256, Revision: 9, Rest: nothing},
		Clusters: []archive.Cluster{{Name: cluster}}, Definitions: []archive.Definition{}, Missing: []archive.Definition{}, Identities: []archive.Identity{},
	}
	tally := archive.NewTally("/registry", nil)
	if definition != nil {
		definition.StoredVersions = []string{}
		m.Definitions = []archive.Definition{*definition}
		tally.AddDefinition(rec, definition.UID)
	} else {
		tally.Add(rec, cluster, of)
	}
	tally.Fill(m)
	notes, err := m.Notes()
	require.NoError(t, err)
	var records iter.Seq2[*snapshot.Record, error] = func(yield func(*snapshot.Record, error) bool) { yield(rec, nil) }
	path := filepath.Join(t.TempDir(), "forged.archive")
	_, err = snapshot.Build(context.Background(), path, snapshot.Content{Records: records, Revision: 9, Notes: notes}, nil)
	require.NoError(t, err)
	s := openFile(t, path)
	require.NoError(t, archive.Check(context.Background(), s, m))
	return s
}

// TestOpenChecked: a manifest cannot pass a record off as another's, or as something else, however
// well its sums add up.
func TestOpenChecked(t *testing.T) {
	ctx, mine, other, id := context.Background(), kcptest.Consumer, kcptest.Other, kcptest.ExampleDev
	configmaps := archive.Resource{Resource: "configmaps", Dir: "/core/configmaps/" + mine + "/"}
	widgets := archive.Resource{Resource: "widgets.example.dev", Identity: id, Dir: "/example.dev/widgets/" + id + "/" + mine + "/"}
	definition := "/apiextensions.k8s.io/customresourcedefinitions/system:bound-crds/u"
	for name, c := range map[string]struct {
		key        string
		of         archive.Resource
		definition *archive.Definition
		sound      bool
	}{
		"a namespaced object":  {configmaps.Dir + "default/a", configmaps, nil, true},
		"a cluster-scoped one": {"/core/namespaces/" + mine + "/a", archive.Resource{Resource: "namespaces", Dir: "/core/namespaces/" + mine + "/"}, nil, true},
		"of an identity":       {widgets.Dir + "default/a", widgets, nil, true},
		"a definition":         {definition, archive.Resource{}, &archive.Definition{UID: "u", Key: definition}, true},

		"another's namespace": {"/core/configmaps/" + other + "/" + mine + "/a", archive.Resource{Resource: "configmaps", Dir: "/core/configmaps/" + other + "/" + mine + "/"}, nil, false},
		"of another type":     {configmaps.Dir + "default/a", archive.Resource{Resource: "secrets", Dir: configmaps.Dir}, nil, false},
		"of another identity": {widgets.Dir + "default/a", archive.Resource{Resource: widgets.Resource, Dir: widgets.Dir}, nil, false},
		"custom":              {configmaps.Dir + "default/a", archive.Resource{Resource: "configmaps", Custom: true, Dir: configmaps.Dir}, nil, false},
		"too deep":            {configmaps.Dir + "a/b/c/d", configmaps, nil, false},
		"no definition":       {"/core/secrets/" + other + "/u", archive.Resource{}, &archive.Definition{UID: "u", Key: "/core/secrets/" + other + "/u"}, false},
		"another's definition": {"/apiextensions.k8s.io/customresourcedefinitions/" + other + "/u", archive.Resource{},
			&archive.Definition{UID: "u", Key: "/apiextensions.k8s.io/customresourcedefinitions/" + other + "/u"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := archive.OpenChecked(ctx, forged(t, c.key, c.of, mine, c.definition))
			require.NotNil(t, m)
			if c.sound {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, archive.ErrDamaged)
		})
	}
	_, err := archive.OpenChecked(ctx, openFile(t, kcptest.Recorded(t, kcptest.Root)))
	require.ErrorIs(t, err, archive.ErrNotArchive)
}
