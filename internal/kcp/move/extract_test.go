package move_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/archive"
	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/kcp/move"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

var (
	itself = move.Extract{Name: consumer}
	family = move.Extract{Name: consumer, WithChildren: true}
)

// requireExactly requires that a real etcd restored from the archive has the records of the given
// logical clusters and the definitions of the manifest, equal to the shard's including revisions
// and leases, and no other records.
func (r result) requireExactly(names ...string) {
	r.t.Helper()
	meant := func(key []byte) bool {
		return slices.Contains(names, clusterOf(key)) ||
			slices.ContainsFunc(r.Manifest.Definitions, func(d archive.Definition) bool {
				return r.Manifest.Origin.Prefix+d.Key == string(key)
			})
	}
	before, granted := kcptest.Dump(r.t, r.in)
	after, leases := kcptest.Dump(r.t, r.out)
	held, n := map[int64]int64{}, 0
	for _, kv := range before {
		if !meant(kv.Key) {
			continue
		}
		require.Less(r.t, n, len(after))
		require.Equal(r.t, kv, after[n])
		n++
		if kv.Lease != 0 {
			held[kv.Lease] = granted[kv.Lease]
		}
	}
	require.Len(r.t, after, n)
	require.Equal(r.t, held, leases)
}

// TestExtractExactly checks that the archive has the 36 keys of consumer and its bound definitions,
// and no key of the namespace with its name.
func TestExtractExactly(t *testing.T) {
	r := extract(t, root(t), itself).written()
	m := r.Manifest
	require.Len(t, m.Clusters, 1)
	c := m.Clusters[0]
	require.Equal(t, 36, c.Keys)
	require.Equal(t, []string{consumer, "root:consumer", "root", "root", "consumer"},
		[]string{c.Name, c.Path, c.Shard, c.Owner.Cluster, c.Owner.Name})
	origin := archive.Origin{Shard: "root", Prefix: "/registry", SHA256: r.Input.SHA256, Revision: r.Input.Revision,
		Rest: m.Origin.Rest}
	require.Equal(t, origin, m.Origin)
	require.Equal(t, r.Input.Keys-36, m.Origin.Rest.Keys)
	require.NotEmpty(t, m.Definitions)
	require.Empty(t, m.Missing)
	require.Empty(t, m.Encryption)
	require.Equal(t, []int{36 + len(m.Definitions), 36 + len(m.Definitions)}, []int{m.Total.Keys, r.Output.Keys})
	require.Equal(t, r.Input.Revision, r.Output.Revision)
	require.Equal(t, []string{"children-stay"}, r.codes())
	r.requireExactly(consumer)
	require.Len(t, m.Leases, 1, "consumer has an Event")
	for _, trapped := range kcptest.Trapped() {
		rec, err := openFile(t, r.out).Get(t.Context(), []byte(trapped))
		require.NoError(t, err)
		require.Nil(t, rec)
	}
	require.Equal(t, m, manifestOf(t, r.out))
	require.NoError(t, archive.Check(t.Context(), openFile(t, r.out), m))
}

// TestExtractIdentities checks that the identities of a logical cluster are the bound and exported
// identities.
func TestExtractIdentities(t *testing.T) {
	identity := func(m *archive.Manifest, hash string) archive.Identity {
		at := slices.IndexFunc(m.Identities, func(i archive.Identity) bool { return i.Hash == hash })
		require.GreaterOrEqual(t, at, 0)
		return m.Identities[at]
	}
	exports := []archive.Export{{Cluster: provider, Path: "root:provider", Name: "example.dev"}}
	m := extract(t, root(t), itself).written().Manifest
	require.Equal(t, archive.Identity{
		Hash: kcptest.ExampleDev, Resources: []string{"pods", "sprockets.example.dev", "widgets.example.dev"},
		Exports: exports,
	}, identity(m, kcptest.ExampleDev))
	identity(m, kcptest.Tenancy)
	own := identity(extract(t, root(t), move.Extract{Name: provider}).written().Manifest, kcptest.ExampleDev)
	require.True(t, own.Own)
	require.Equal(t, exports, own.Exports)
}

// TestExtractChildren checks that descendants of any depth are included, and descendants on other
// shards are named. A LogicalCluster names its parent; a Workspace, which any tenant may write,
// does not.
func TestExtractChildren(t *testing.T) {
	r := extract(t, root(t), family).written()
	require.Len(t, r.Manifest.Clusters, 2)
	require.Equal(t, []string{child, consumer}, []string{r.Manifest.Clusters[0].Name, r.Manifest.Name})
	require.Empty(t, r.Problems)
	r.requireExactly(consumer, child)
	require.Equal(t, r.Input.Keys-r.Manifest.Clusters[0].Keys-36, r.Manifest.Origin.Rest.Keys)

	grand, from := "3grandchild00000", workspaceKey(consumer, "child")
	edits := []edit{derive(home(child), home(grand),
		child, grand, `"cluster":"`+consumer, `"cluster":"`+child, `"name":"child"`, `"name":"grand"`)}
	for name, cluster := range map[string]string{"grand": grand, "elsewhere": "4elsewhere000000", "stolen": other} {
		edits = append(edits, derive(from, workspaceKey(child, name),
			child, cluster, `"name":"child"`, `"name":"`+name+`"`, `"kcp.io/cluster":"`+consumer,
			`"kcp.io/cluster":"`+child))
	}
	r = extract(t, root(t, edits...), family).written()
	require.Len(t, r.Manifest.Clusters, 3)
	require.NotNil(t, r.Manifest.Cluster(grand))
	require.Equal(t, []string{"child-elsewhere"}, r.codes())
	require.Len(t, r.Problems, 2)
	require.Contains(t, r.reasons("child-elsewhere"), `"4elsewhere000000", behind Workspace "elsewhere"`)
	require.Contains(t, r.reasons("child-elsewhere"), `"11iehthilu5atzgl" lives here, but says that it does not belong`)
}

// TestNamePrefix checks that a logical cluster whose name is the beginning of this name, or begins
// with this name, is neither extracted nor purged.
func TestNamePrefix(t *testing.T) {
	longer, shorter := consumer+"x", consumer[:15]
	var edits []edit
	for _, name := range []string{longer, shorter} {
		edits = append(edits, derive(home(consumer), home(name), consumer, name),
			put(configMaps+name+"/default/a",
				`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"default"}}`),
			put("/registry/example.dev/widgets/"+kcptest.ExampleDev+"/"+name+"/default/a",
				`{"metadata":{"name":"a","namespace":"default"}}`))
	}
	in := root(t, edits...)
	for name, n := range map[string]int{consumer: 36, longer: 3, shorter: 3} {
		r := extract(t, in, move.Extract{Name: name}).written()
		require.Equal(t, n, r.Manifest.Clusters[0].Keys)
		r.requireExactly(name)
		gone := purge(t, in, move.Purge{Name: name}, allow("owner-points-here")).written()
		require.Equal(t, n, gone.requireGone(ofCluster(name)))
	}
}

func TestExtractSystem(t *testing.T) {
	for _, name := range []string{"root", "system:bound-crds", "system:shard"} {
		x := move.Extract{Name: name}
		extract(t, root(t), x).refused("system-cluster")
		extract(t, root(t), x, allow("system-cluster")).written().requireExactly(name)
	}
}

// TestExtractOfSeveralStorages checks that neither the archive nor the digest of the other records
// of the origin includes a cache in the same file. An unnamed shard needs --as-shard, since the
// name of the shard selects the copies in the cache.
func TestExtractOfSeveralStorages(t *testing.T) {
	purgeAll, exporter := allow("owner-points-here", "exports-in-cache"), move.Extract{Name: provider}
	single := kcptest.Single(t)
	r := extract(t, single, exporter).written()
	r.requireExactly(provider)
	gone := purge(t, single, move.Purge{Name: provider}, purgeAll).written()
	require.Positive(t, gone.Clusters[0].Copies)
	require.Equal(t, *gone.Rest, r.Manifest.Origin.Rest)
	require.Equal(t, gone.Clusters[0].SHA256, r.Manifest.Clusters[0].SHA256)

	nameless := edited(t, single, drop(home(kcp.SystemShard)))
	extract(t, nameless, exporter).fails(move.ErrShardUnknown, "")
	exporter.AsShard = "root"
	r = extract(t, nameless, exporter).written()
	require.Equal(t, "root", r.Manifest.Origin.Shard)
	r.requireSteps("take it out here: etcdshift kcp purge " + provider + " " + nameless +
		" ORIGIN-OUT --as-shard root --to-shard NEW-SHARD")
	gone = purge(t, nameless, move.Purge{Name: provider, AsShard: "root"}, purgeAll).written()
	require.Equal(t, *gone.Rest, r.Manifest.Origin.Rest)

	for as, code := range map[string][]string{"rot": {"shard-name"}, "root": {}, "": {}} {
		exporter.AsShard = as
		r := extract(t, single, exporter).written()
		require.Equal(t, code, r.codes())
		if len(code) > 0 {
			require.Equal(t, "rot", r.Manifest.Origin.Shard)
			require.Equal(t, home(kcp.SystemShard), r.Problems[0].Key)
		}
	}
}

// TestExtractOfTwoShards checks that the caller must name one of two shards in one etcd.
func TestExtractOfTwoShards(t *testing.T) {
	in, x := root(t, withShard(t, shard1(t), "/shard/shard-1")), move.Extract{Name: consumer1}
	extract(t, in, itself).fails(kcp.ErrSeveralShards, "")
	require.Equal(t, 36, extract(t, in, itself, under("/registry")).written().Manifest.Clusters[0].Keys)
	r := extract(t, in, x, under("/shard/shard-1")).written()
	require.Equal(t, []string{"/shard/shard-1", "shard-1"}, []string{r.Manifest.Origin.Prefix, r.Manifest.Origin.Shard})
	whole := extract(t, shard1(t), x).written().Manifest.Clusters[0].Resources[0]
	require.Equal(t, whole.SHA256, r.Manifest.Clusters[0].Resources[0].SHA256, "no prefix, no revision is in a digest")
	require.NoError(t, archive.Check(t.Context(), openFile(t, r.out), r.Manifest))
}

// TestExtractTwice checks that the same input gives the same bytes; a dry run gives everything
// except the file.
func TestExtractTwice(t *testing.T) {
	in := root(t)
	before, err := os.ReadFile(in)
	require.NoError(t, err)
	first := extract(t, in, family).written()
	for range 2 {
		second := extract(t, in, family).written()
		require.Equal(t, first.Output.SHA256, second.Output.SHA256)
		info, err := os.Stat(second.out)
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
	}
	after, err := os.ReadFile(in)
	require.NoError(t, err)
	require.True(t, bytes.Equal(before, after))

	dry := extract(t, in, family, dryRun)
	require.NoError(t, dry.err)
	require.Equal(t, transform.Planned, dry.Outcome)
	require.NoFileExists(t, dry.out)
	require.Equal(t, first.Manifest, dry.Manifest)
	require.Equal(t, first.Clusters, dry.Clusters)
	dry = extract(t, in, itself, dryRun, func(o *transform.Options) {
		o.Out = filepath.Join(t.TempDir(),
			"an archive")
	})
	dry.requireSteps("/an archive' DESTINATION",
		"take it out here: etcdshift kcp purge "+consumer+" "+in+" ORIGIN-OUT --to-shard NEW-SHARD")
}

// TestExtractLeases checks that an Event keeps its lease and TTL. A record with a missing lease
// keeps the lease ID, and the archive has no TTL for the lease.
func TestExtractLeases(t *testing.T) {
	r := extract(t, root(t), itself).written()
	granted, kept := leasesOf(t, r.in), leasesOf(t, r.out)
	require.Len(t, kept, len(r.Manifest.Leases))
	for id, ttl := range kept {
		require.Equal(t, granted[id], ttl)
		require.Positive(t, ttl)
	}
	in := build(t, snapshot.Content{Records: openFile(t, r.in).Live(t.Context(), nil), Revision: 796})
	r = extract(t, in, itself).written()
	require.Equal(t, []archive.Lease{{ID: "6bb5a1fa600bfdc9", TTL: 0, Keys: 1}}, r.Manifest.Leases)
	require.Empty(t, leasesOf(t, r.out))
	m, err := archive.OpenChecked(t.Context(), openFile(t, r.out))
	require.NoError(t, err)
	require.Equal(t, r.Manifest, m)
}

// TestExtractOfHistory checks that the archive has no overwritten value and no deleted record.
func TestExtractOfHistory(t *testing.T) {
	old := valueIn(t, root(t), itsSettings)
	in := root(t, swap(itsSettings, "1", "2"), drop(configMaps+consumer+"/team-a/settings"), put(itsSettings+"2", "x"),
		drop(itsSettings+"2"), derive(itsSettings, itsSettings+"2", "settings", "settingX"), drop(itsSettings+"2"))
	r := extract(t, in, itself).written()
	require.Equal(t, 35, r.Manifest.Clusters[0].Keys)
	r.requireExactly(consumer)
	text, err := os.ReadFile(r.out)
	require.NoError(t, err)
	require.NotContains(t, string(text), old)
	require.NotContains(t, string(text), "settingX")
	status, err := openFile(t, r.out).Status(t.Context())
	require.NoError(t, err)
	require.Zero(t, status.Tombstones)
	require.Equal(t, status.Keys, status.Records)
	require.Empty(t, status.Members)
}
