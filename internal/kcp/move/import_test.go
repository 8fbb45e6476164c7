package move_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/kcp/move"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/internal/test/transformtest"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// TestImport checks that all records of consumer are added to shard-1, byte for byte, the Event
// with a lease of the same TTL. Each record is created at its own revision, in the order of the
// origin. The definitions exist already, and all other records stay.
func TestImport(t *testing.T) {
	origin := root(t)
	a := importInto(t, archiveOf(t, origin), shard1(t), move.Import{}).written()
	require.Empty(t, a.Problems)
	require.Equal(t, transform.Changes{Created: 36}, a.Changes)
	came, leases := a.arrived()
	want, origins := dumped(t, origin, ofCluster(consumer)), leasesOf(t, origin)
	require.Len(t, came, 36)
	require.Len(t, want, 36)
	leased := 0
	for n, kv := range came {
		require.Equal(t, string(want[n].Key), string(kv.Key))
		require.Equal(t, string(want[n].Value), string(kv.Value), "%s", kv.Key)
		require.Equal(t, origins[want[n].Lease], leases[kv.Lease], "TTL of %s", kv.Key)
		require.Equal(t, kv.CreateRevision, kv.ModRevision)
		require.EqualValues(t, 1, kv.Version)
		if kv.Lease != 0 {
			leased++
			require.Positive(t, leases[kv.Lease])
		}
	}
	require.Equal(t, 1, leased)
	byRevision := func(x, y etcdtest.KV) int { return int(x.ModRevision - y.ModRevision) }
	slices.SortFunc(want, byRevision)
	slices.SortFunc(came, byRevision)
	for n := range want {
		require.Equal(t, string(want[n].Key), string(came[n].Key))
		require.True(t, n == 0 || came[n-1].ModRevision < came[n].ModRevision)
	}
}

// TestImportReceipt checks that the receipt has the archive's sums, and the rest is all of the
// input.
func TestImportReceipt(t *testing.T) {
	from := archiveOf(t, root(t))
	a := importInto(t, from, shard1(t), move.Import{}).written()
	require.Len(t, a.Clusters, 1)
	c := a.Clusters[0]
	require.Equal(t, []any{consumer, "root:consumer", 36}, []any{c.Name, c.Path, c.Keys})
	require.Equal(t, a.Input.Keys, a.Rest.Keys)
	require.Equal(t, from, a.Report.Archive.Path)
	require.Len(t, a.Report.Archive.SHA256, 64)
	require.Equal(t, manifestOf(t, archiveOf(t, a.out)).Clusters[0].SHA256, c.SHA256,
		"an archive of the output has the same digest")

	dry := importInto(t, from, shard1(t), move.Import{}, dryRun)
	require.NoError(t, dry.err)
	require.Equal(t, transform.Planned, dry.Outcome)
	require.Equal(t, a.Clusters, dry.Clusters)
	require.Nil(t, dry.Rest)
	require.NoFileExists(t, dry.out)
}

// TestImportDeterministic checks that two runs write the same bytes.
func TestImportDeterministic(t *testing.T) {
	from := extract(t, root(t), move.Extract{Name: consumer, WithChildren: true}).written().out
	one, two := importInto(t, from, shard1(t), move.Import{}).written(),
		importInto(t, from, shard1(t), move.Import{}).written()
	require.Equal(t, one.Output.SHA256, two.Output.SHA256)
	require.Len(t, one.Clusters, 2)
	require.NotEmpty(t, dumped(t, one.out, ofCluster(child)))
	require.Len(t, dumped(t, one.out, ofCluster(consumer)), 36)
}

// TestImportPrefix checks that keys are written below the prefix of the shard.
func TestImportPrefix(t *testing.T) {
	a := importInto(t, archiveOf(t, root(t)), below(t, shard1(t), "/shard/one"), move.Import{}).written()
	came, _ := a.arrived()
	require.Len(t, came, 36)
	for _, kv := range came {
		k, err := keys.KCPShard{Prefix: "/shard/one"}.Parse(kv.Key)
		require.NoError(t, err)
		require.Equal(t, consumer, k.Cluster)
	}
}

// below returns a shard's file with all keys below another prefix than /registry.
func below(t testing.TB, shard, prefix string) string {
	t.Helper()
	var script strings.Builder
	for _, kv := range dumped(t, shard, func([]byte) bool { return true }) {
		key := string(kv.Key)
		if rest, ok := strings.CutPrefix(key, "/registry/"); ok {
			key = prefix + "/" + rest
		}
		fmt.Fprintf(&script, "put %s %q\n", key, kv.Value)
	}
	return etcdtest.Build(t, script.String())
}

// impostor is an import whose proof reads other files instead of its output.
type impostor struct {
	*move.Import
	t     *testing.T
	files map[string]string // by their fault
}

func (i *impostor) Plan(ctx context.Context, v *transform.View) error {
	within := false
	v.Make(transform.Output{Check: func(ctx context.Context, _ *inspect.Reader) error {
		if within {
			return nil
		}
		within = true
		for name, path := range i.files {
			i.t.Run(name, func(t *testing.T) {
				require.ErrorIs(t, v.CheckOutput(ctx, read(t, path)), snapshot.ErrVerify)
			})
		}
		require.Nil(i.t, transformtest.Section[move.Receipts](v.Report()).Rest, "nothing unproved is reported")
		return nil
	}})
	return i.Import.Plan(ctx, v)
}

// requireProof requires that the proof of an import finds a fault in each of files, and none in the
// output.
func requireProof(t *testing.T, from, shard string, i move.Import, files map[string]string) {
	t.Helper()
	i.Archive, i.Manifest = openFile(t, from), manifestOf(t, from)
	r := run(t, shard, nil, func(transform.Options) transform.Transform { return &impostor{&i, t, files} }).written()
	require.NotNil(t, r.Rest)
}

// TestImportProof checks that each fault of an output is found before the output gets its name.
func TestImportProof(t *testing.T) {
	from, shard := purgedRoot(t)
	fix := move.Import{FixOwner: true, AsShard: "shard-1"}
	out, others := importInto(t, from, shard, fix).written().out, configMaps+other+"/default/settings"
	touch := func(key string) edit {
		return func(t testing.TB, client *clientv3.Client) {
			kcptest.Put(t, client, key, append(kcptest.Get(t, client, key), ' '))
		}
	}
	files := map[string]string{"nothing came in": shard}
	for name, change := range map[string]edit{
		"a record is gone":        drop(itsSecret),
		"a record is another":     touch(itsSecret),
		"the lease is gone":       leased(itsEvent, 0),
		"another TTL":             leased(itsEvent, 77),
		"the Workspace is not":    touch(kcptest.WorkspaceKey("consumer")),
		"another tenant's record": touch(others),
		"a tenant's record less":  drop(others),
		"a record more":           put(configMaps+"x/y/z", "{}"),
	} {
		files[name] = edited(t, out, change)
	}
	requireProof(t, from, shard, fix, files)
}

// TestImportClusterExists checks that any existing key of the logical cluster, even an orphan,
// refuses the import, with no code to allow it.
func TestImportClusterExists(t *testing.T) {
	const orphan = "/registry/pods/" + kcptest.ExampleDev + "/" + consumer + "/ns/p"
	from := archiveOf(t, root(t))
	elsewhere := func(key string) string { return strings.Replace(key, "/registry/", "/other/", 1) }
	storage := put("/other/apiextensions.k8s.io/customresourcedefinitions/system:system-crds/a.b", `{"kind":"X"}`)
	for name, c := range map[string]struct{ shard, key, reason string }{
		"twice": {importInto(t, from, shard1(t), move.Import{}).written().out, home(consumer), "36 keys"},
		"orphan": {shard1(t, put(orphan, "{}")), orphan,
			"1 key; purge them first: etcdshift kcp purge --orphans " + consumer},
		"orphan in another storage": {
			shard1(t, storage, put(elsewhere(orphan), "{}")), elsewhere(orphan),
			`orphans of "` + consumer + `" below the prefix "/other", another storage of the same file, with 1 key`,
		},
		"in another storage": {
			shard1(t, storage, put(elsewhere(home(consumer)), "{}")), elsewhere(home(consumer)),
			`lives there below the prefix "/other", another storage of the same file, already with 1 key`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			prefix := under("/registry")
			if !strings.Contains(name, "another storage") {
				prefix = under()
			}
			found := importInto(t, from, c.shard, move.Import{}, allowAll(move.ImportSpec),
				prefix).refused("cluster-exists")
			require.Len(t, found, 1)
			require.Equal(t, c.key, found[0].Key)
			require.Contains(t, found[0].Reason, c.reason)
			require.Equal(t, name == "orphan", strings.Contains(found[0].Reason, "--orphans"), found[0].Reason)
		})
	}
}

// TestImportBringsDefinitions checks that a shard without the bound definitions gets the
// definitions, first and byte for byte.
func TestImportBringsDefinitions(t *testing.T) {
	from := archiveOf(t, root(t))
	a := importInto(t, from, shard1(t, drop(widgetsDefinition)), move.Import{}).written()
	require.Empty(t, a.Problems)
	came, _ := a.arrived()
	require.Len(t, came, 37)
	brought := byKey(came)[widgetsDefinition]
	require.Equal(t, valueIn(t, from, widgetsDefinition), string(brought.Value))
	require.Equal(t, a.Input.Revision+1, brought.ModRevision)
	require.Equal(t, 36, a.Clusters[0].Keys)
	require.Equal(t, a.Input.Keys, a.Rest.Keys)

	withoutIt := archiveOf(t, root(t, drop(widgetsDefinition)))
	require.Empty(t, importInto(t, withoutIt, shard1(t), move.Import{}).written().Problems, "the shard has it")
}

// TestImportMergesStoredVersions checks that the shard's versions come first; nothing else of the
// definition changes. An unlisted version is omitted, with a warning.
func TestImportMergesStoredVersions(t *testing.T) {
	const one, stored = `{"name":"v1","served":true,"storage":true}]`, `"storedVersions":["v1"]`
	two := swap(widgetsDefinition, one,
		`{"name":"v1","served":true,"storage":true},{"name":"v1alpha1","served":true,"storage":false}]`)
	origin := root(t, two, swap(widgetsDefinition, stored, `"storedVersions":["v1alpha1","v1"]`))
	a := importInto(t, archiveOf(t, origin), shard1(t, two), move.Import{}).written()
	require.Empty(t, a.Problems)
	require.Equal(t, transform.Changes{Created: 36, Updated: 1}, a.Changes)
	a.arrived(widgetsDefinition)
	want := swapped(t, valueIn(t, a.in, widgetsDefinition), stored, `"storedVersions":["v1","v1alpha1"]`)
	require.Equal(t, want, a.value(widgetsDefinition))
	require.Equal(t, a.Input.Keys-1, a.Rest.Keys)

	from := archiveOf(t, root(t))
	unlisted := swapped(t, valueIn(t, from, widgetsDefinition), stored, `"storedVersions":["v0","v1"]`)
	a = importInto(t, reforged(t, from, with(widgetsDefinition, unlisted)), shard1(t), move.Import{}).written()
	require.Len(t, a.Problems, 1)
	p := a.Problems[0]
	require.Equal(t, []any{widgetsDefinition, "unlisted-version", finding.Warning}, []any{p.Key, p.Code.Name, p.Level})
	require.Contains(t, p.Reason, `"v0"`)
	require.Equal(t, transform.Changes{Created: 36}, a.Changes)
}

// TestImportKnownIdentity checks that an identity may be known to the shard, its cache or an
// imported exporter.
func TestImportKnownIdentity(t *testing.T) {
	from, unbound := archiveOf(t, root(t)), drop(bindings+consumer1+"/example.dev")
	importInto(t, from, shard1(t, unbound), move.Import{Cache: recordedCache(t)}).written()
	exporter := extract(t, root(t), move.Extract{Name: provider}).written().out
	a := importInto(t, exporter, shard1(t, unbound), move.Import{}).written()
	require.Empty(t, a.Problems)
	importInto(t, from, a.out, move.Import{}).written()

	a = importInto(t, from, shard1(t, unbound, withCache(t, kcptest.Cache)), move.Import{}).written()
	require.Empty(t, a.Problems)
	a.requireSteps("region=us-east-1")
	came, _ := a.arrived()
	require.Len(t, came, 36)
}

// TestImportFails checks that only a whole shard of kcp, as one storage, accepts an archive.
func TestImportFails(t *testing.T) {
	from := archiveOf(t, root(t))
	for _, c := range []struct {
		in   string
		is   error
		says string
	}{
		{recorded(t, kcptest.Cache), kcp.ErrNoShard, ""},
		{shard1(t, dropAll(ofCluster(kcp.SystemCRDs))), move.ErrPartial, kcp.SystemCRDs},
		{shard1(t, drop(home(kcp.SystemShard))), move.ErrPartial, kcp.SystemShard},
		{from, move.ErrPartial, ""},
	} {
		importInto(t, from, c.in, move.Import{}).fails(c.is, c.says)
	}
	split := under("/registry", "/registry/core")
	importInto(t, from, shard1(t), move.Import{}, split).fails(kcp.ErrSplit, "")
	extract(t, root(t), move.Extract{Name: consumer}, split).fails(kcp.ErrSplit,
		`"/registry/core" is below "/registry"`)
	liveRoot, liveShard1 := kcptest.LiveMigrated(t)
	putBack(t, liveShard1, liveRoot, move.PutBack{}, split).fails(kcp.ErrSplit, "")

	nameless := shard1(t, swap(home(kcp.SystemShard), `"core.kcp.io/shard":"shard-1"`, `"x":"shard-1"`))
	importInto(t, from, nameless, move.Import{FixOwner: true}).fails(move.ErrNoName, "")

	m := manifestOf(t, from)
	m.Clusters[0].Name = other
	run(t, shard1(t), nil, func(transform.Options) transform.Transform {
		return &move.Import{Archive: openFile(t, from), Manifest: m}
	}).fails(move.ErrNoLogicalCluster, "")
}

// TestImportWarns checks that an unreadable record, and a record that contradicts its key, are
// copied as stored; the archive's file may lack its digest.
func TestImportWarns(t *testing.T) {
	origin := extract(t, root(t, put(itsGizmo, "{")), move.Extract{Name: consumer},
		allowAll(move.ExtractSpec)).written().out
	a := importInto(t, origin, shard1(t), move.Import{}).written()
	require.Equal(t, []string{"undecodable"}, a.codes())
	require.Equal(t, itsGizmo, a.Problems[0].Key)
	require.Equal(t, "{", a.value(itsGizmo))

	a = importInto(t, archiveOf(t, root(t, misnamed(consumer, other)), allow("key-mismatch")), shard1(t),
		move.Import{}).written()
	require.Equal(t, []string{"key-mismatch"}, a.codes())
	require.Equal(t, finding.Warning, a.Problems[0].Level)

	cut := archiveOf(t, root(t))
	info, err := os.Stat(cut)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(cut, info.Size()-32))
	a = importInto(t, cut, shard1(t), move.Import{}).written()
	require.Equal(t, []string{"raw-file"}, a.codes())
	require.Contains(t, a.Problems[0].Reason, cut+": no digest")
}
