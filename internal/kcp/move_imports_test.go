package kcp_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/internal/kcp/carry"
	"github.com/etcdshift/etcdshift/internal/kcp/purge"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/transform"
)

// TestVerifyImports: whatever an import may change, it is found to be the import's, and no more
// than that.
func TestVerifyImports(t *testing.T) {
	root, shard1 := kcptest.Recorded(t, kcptest.Root), kcptest.Recorded(t, kcptest.Shard1)
	for name, c := range map[string]struct {
		origin, destination string
		extract             extraction
		options             carry.Import
		allow               []string
		notes               string // in one of the notes
	}{
		"as it is":                    {origin: root, destination: shard1},
		"definitions brought":         {origin: root, destination: edit1(t, shard1, drop(widgetsDefinition))},
		"stored versions merged":      {origin: root, destination: edit1(t, shard1, swap(widgetsDefinition, `"storedVersions":["v1"]`, `"storedVersions":["v0"]`))},
		"below another prefix":        {origin: root, destination: below(t, shard1, "/shard/one")},
		"out of a live migration":     {origin: migrating(t, root), destination: shard1, extract: extraction{Allow: []string{codeMigrating}}, allow: []string{codeMigrating}},
		"named, owner elsewhere":      {origin: root, destination: shard1, options: carry.Import{AsShard: "shard-1"}},
		"owner fixed, with its child": {origin: root, destination: alsoRoot(t, root, shard1), extract: extraction{WithChildren: true}, options: carry.Import{FixOwner: true}},
		"said to live there before": {
			origin: edit1(t, root, swap(kcptest.LogicalClusterKey(kcptest.Consumer), `"core.kcp.io/shard":"root"`, `"core.kcp.io/shard":"shard-1"`)), destination: shard1,
			notes: `which says "root": mend it with --fix-owner`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.extract.Name = kcptest.Consumer
			m := moveFiles{origin: c.origin, destination: c.destination, archive: extractOf(t, c.origin, c.extract)}
			allow := append(c.allow, codeOwnerPointsHere)
			m.originOut = purgeWith(t, c.origin, purge.Purge{Name: kcptest.Consumer, WithChildren: c.extract.WithChildren}, allow...)
			m.destinationOut = importInto(t, m.archive, c.destination, c.options, transform.Options{}).written().out
			v := m.verdict(t)
			requireSound(t, v)
			require.Equal(t, c.notes != "", strings.Contains(strings.Join(v.Notes, "\n"), "--fix-owner"), "%q", v.Notes)
			require.Contains(t, strings.Join(v.Notes, "\n"), c.notes)
			m.origin, m.destination = "", ""
			requireSound(t, m.verdict(t))
		})
	}
}

func edit1(t *testing.T, path string, change func(*testing.T, *clientv3.Client)) string {
	t.Helper()
	return kcptest.Edit(t, path, func(client *clientv3.Client) { change(t, client) })
}

func migrating(t *testing.T, root string) string {
	t.Helper()
	return edit1(t, root, swap(kcptest.LogicalClusterKey(kcptest.Consumer), `"internal.tenancy.kcp.io/type"`, `"internal.kcp.io/migrating":"root:m","internal.tenancy.kcp.io/type"`))
}

// alsoRoot is a shard that has consumer's Workspace too.
func alsoRoot(t *testing.T, root, shard string) string {
	t.Helper()
	kvs, _ := kcptest.Dump(t, root)
	return edit1(t, shard, func(t *testing.T, client *clientv3.Client) {
		for _, kv := range kvs {
			if key := string(kv.Key); key == kcptest.WorkspaceKey("consumer") || key == kcptest.LogicalClusterKey("root") {
				kcptest.Put(t, client, key, kv.Value)
			}
		}
	})
}

// TestLiveMigrationMended: both shards after kcp's own live migration, which took another tenant's
// objects along, are again as they would be without that damage: the objects are back, no orphan is
// left, nothing else is another.
func TestLiveMigrationMended(t *testing.T) {
	before, _ := kcptest.Dump(t, kcptest.Recorded(t, kcptest.Root))
	root, shard1 := kcptest.LiveMigrated(t)
	mended := putBack(t, shard1, root, carry.PutBack{}, transform.Options{}).written().out
	cleaned := purgeWith(t, shard1, purge.Purge{Orphans: true})

	trapped := func(key []byte) bool {
		return strings.Contains(string(key), "/"+kcptest.Other+"/"+kcptest.Consumer+"/")
	}
	want := valuesOf(before, kcptest.Other)
	remade := kcptest.Trapped()[0] // by root's controller; that one stays
	broken, _ := kcptest.Dump(t, root)
	want[remade] = valuesOf(broken, kcptest.Other)[remade]
	after, _ := kcptest.Dump(t, mended)
	require.Equal(t, want, valuesOf(after, kcptest.Other))
	requireSameRest(t, root, mended, trapped)

	onShard1, _ := kcptest.Dump(t, cleaned)
	require.Empty(t, ofCluster(onShard1, kcptest.Other))
	require.Len(t, ofCluster(onShard1, kcptest.Consumer), 36)
	requireSameRest(t, shard1, cleaned, trapped)

	// And by a move of its own the logical cluster is back where it was.
	back := moveOf(t, kcptest.Consumer, cleaned, mended)
	requireSound(t, back.verdict(t))
	require.Len(t, withTTL(t, back.destinationOut, func(key []byte) bool { return clusterOf(key) == kcptest.Consumer }), 36)
}

// valuesOf are those of a logical cluster, by key.
func valuesOf(kvs []etcdtest.KV, cluster string) map[string]string {
	found := map[string]string{}
	for _, kv := range ofCluster(kvs, cluster) {
		found[string(kv.Key)] = string(kv.Value)
	}
	return found
}
