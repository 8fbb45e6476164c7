package move_test

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/kcp/archive"
	"github.com/etcdshift/etcdshift/internal/kcp/move"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// rebuilt is a file with the live records of another as change leaves them, with other leases where
// relet says so, and the notes that are made of them.
func rebuilt(t testing.TB, path string, change func(rec *snapshot.Record), relet func(leases map[int64]int64),
	notes func(records []*snapshot.Record, leases map[int64]int64) map[string][]byte,
) string {
	t.Helper()
	ctx, from := context.Background(), openFile(t, path)
	info, err := from.Info(ctx)
	require.NoError(t, err)
	content := snapshot.Content{Revision: info.Revision}
	var records []*snapshot.Record
	for rec, err := range from.Live(ctx, nil) {
		require.NoError(t, err)
		one := *rec
		change(&one)
		records = append(records, &one)
	}
	leases, err := from.Leases(ctx)
	require.NoError(t, err)
	if relet != nil {
		relet(leases)
	}
	for id, ttl := range leases {
		content.Leases = append(content.Leases, snapshot.Lease{ID: id, TTL: ttl})
	}
	content.Records = func(yield func(*snapshot.Record, error) bool) {
		for _, rec := range records {
			if !yield(rec, nil) {
				return
			}
		}
	}
	if notes != nil {
		content.Notes = notes(records, leases)
	}
	out := filepath.Join(t.TempDir(), "rebuilt.db")
	_, err = snapshot.Build(ctx, out, content, nil)
	require.NoError(t, err)
	return out
}

// reforged is an archive whose records change has changed, and whose manifest says so.
func reforged(t testing.TB, path string, change func(rec *snapshot.Record)) string {
	t.Helper()
	m, err := archive.Open(context.Background(), openFile(t, path))
	require.NoError(t, err)
	return rebuilt(t, path, change, nil, func(records []*snapshot.Record, leases map[int64]int64) map[string][]byte {
		tally := archive.NewTally(m.Origin.Prefix, leases)
		for _, rec := range records {
			k, err := keys.KCPShard{Prefix: m.Origin.Prefix}.Parse(rec.Key)
			require.NoError(t, err)
			if k.Cluster == kcp.BoundCRDs {
				tally.AddDefinition(rec, k.Name)
			} else {
				tally.Add(rec, k.Cluster, archive.ResourceOf(k, rec.Key))
			}
		}
		tally.Fill(m)
		notes, err := m.Notes()
		require.NoError(t, err)
		return notes
	})
}

// with sets the value of one key.
func with(key, value string) func(rec *snapshot.Record) {
	return func(rec *snapshot.Record) {
		if string(rec.Key) == key {
			rec.Value = []byte(value)
		}
	}
}

// TestImportTakesNobodyAlong: another tenant's record that names a lease which is gone stays as it
// is, whatever id the archive's lease has; and where it would not, the proof finds it.
func TestImportTakesNobodyAlong(t *testing.T) {
	ctx, from, theirs := context.Background(), consumerArchive(t), "/registry/core/configmaps/"+kcptest.Consumer1+"/default/settings"
	leases, err := openFile(t, from).Leases(ctx)
	require.NoError(t, err)
	require.Len(t, leases, 1)
	gone := slices.Collect(maps.Keys(leases))[0]
	shard := rebuilt(t, kcptest.Recorded(t, kcptest.Shard1), func(rec *snapshot.Record) {
		if string(rec.Key) == theirs {
			rec.Lease = gone
		}
	}, nil, nil)
	a := importInto(t, from, shard, move.Import{}, transform.Options{}).written()
	granted, err := openFile(t, a.out).Leases(ctx)
	require.NoError(t, err)
	require.NotContains(t, granted, gone)

	event := "/registry/core/events/" + kcptest.Consumer + "/default/ev1"
	wrong := rebuilt(t, a.out, func(rec *snapshot.Record) {
		if string(rec.Key) == event {
			rec.Lease = gone
		}
	}, func(all map[int64]int64) { all[gone] = leases[gone] }, nil)
	file := openFile(t, from)
	m, err := archive.OpenChecked(ctx, file)
	require.NoError(t, err)
	run := transform.Options{In: shard, Out: filepath.Join(t.TempDir(), "out.db")}
	i := &impostor{&move.Import{Archive: file, Manifest: m}, t, map[string]string{"theirs would expire": wrong}}
	_, err = transform.Run(ctx, run, i)
	require.NoError(t, err)
}

// TestImportUnfitDefinition: nothing comes into system:bound-crds but what a binding names, and
// what is as kcp makes it.
func TestImportUnfitDefinition(t *testing.T) {
	shard := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Shard1), func(client *clientv3.Client) { kcptest.Delete(t, client, widgetsDefinition) })
	from := consumerArchive(t)
	fits := arrival{t: t, out: from}.value(widgetsDefinition)
	replaced := func(old, now string) string {
		require.Contains(t, fits, old)
		return strings.ReplaceAll(fits, old, now)
	}
	for name, c := range map[string]struct{ value, reason string }{
		"no definition":  {`{"kind":"Secret","apiVersion":"v1","metadata":{"name":"x"}}`, "cannot be read"},
		"garbage":        {"\x00\x01", "cannot be read"},
		"encrypted":      {"k8s:enc:aescbc:v1:k:0123456789abcdef0123456789abcdef", "cannot be told"},
		"another's name": {replaced(`"metadata":{"name":"af5b5003`, `"metadata":{"name":"bf5b5003`), "its name"},
		"a tenant's":     {replaced(`"apis.kcp.io/bound-crd":"",`, ""), "apis.kcp.io/bound-crd"},
		"another type":   {replaced(`"plural":"widgets"`, `"plural":"gadgets"`), "it defines gadgets.example.dev"},
		"another group":  {replaced(`"group":"example.dev"`, `"group":"example.org"`), "it defines widgets.example.org"},
	} {
		t.Run(name, func(t *testing.T) {
			bad := reforged(t, from, with(widgetsDefinition, c.value))
			found := importInto(t, bad, shard, move.Import{}, transform.Options{Allow: []string{"encrypted"}}).refused("missing-definition")
			require.Equal(t, widgetsDefinition, found[0].Key)
			require.Contains(t, found[0].Reason, c.reason)
			a := importInto(t, bad, shard, move.Import{}, transform.Options{Allow: []string{"encrypted", "missing-definition"}}).written()
			require.Equal(t, 36, a.report.Changes.Created, "all but the definition")
		})
	}
}

// TestImportUnwantedDefinition: what no binding of the archive names does not come in, however much
// it looks like a definition.
func TestImportUnwantedDefinition(t *testing.T) {
	from := consumerArchive(t)
	binding := "/registry/apis.kcp.io/apibindings/customresources/" + kcptest.Consumer + "/example.dev"
	value := arrival{t: t, out: from}.value(binding)
	require.Contains(t, value, "af5b5003")
	bad := reforged(t, from, with(binding, strings.ReplaceAll(value, "af5b5003", "bf5b5003")))
	shard := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Shard1), func(client *clientv3.Client) { kcptest.Delete(t, client, widgetsDefinition) })
	found := importInto(t, bad, shard, move.Import{}, transform.Options{}).refused("definition-differs")
	require.Equal(t, widgetsDefinition, found[0].Key)
	require.Contains(t, found[0].Reason, "no APIBinding of the archive")
	a := importInto(t, bad, shard, move.Import{}, transform.Options{Allow: []string{"definition-differs", "missing-definition"}}).written()
	require.Equal(t, 36, a.report.Changes.Created)
}

// TestPutBackUnfitDefinition: the rules are those of an import; the bindings are those of where the
// logical cluster lives.
func TestPutBackUnfitDefinition(t *testing.T) {
	const pods = boundDir + "f2a5dd18-487f-4b1f-9943-72fc51c30cb6"
	root, shard1 := kcptest.LiveMigrated(t)
	root = kcptest.Edit(t, root, func(client *clientv3.Client) { kcptest.Delete(t, client, pods) })
	a := putBack(t, shard1, root, move.PutBack{}, transform.Options{}).written()
	require.Equal(t, 4, a.report.Changes.Created, "one that is as kcp makes it comes along")
	bad := rebuilt(t, shard1, with(pods, "{"), nil, nil)
	found := putBack(t, bad, root, move.PutBack{}, transform.Options{}).refused("missing-definition")
	require.Equal(t, pods, found[0].Key)
	require.Contains(t, found[0].Reason, "cannot be read")
	a = putBack(t, bad, root, move.PutBack{}, transform.Options{Allow: []string{"missing-definition"}}).written()
	require.Equal(t, 3, a.report.Changes.Created)
}

// TestImportUnreadState: without its LogicalCluster or an APIBinding nobody knows the state of a
// logical cluster and what it needs; nothing allows that.
func TestImportUnreadState(t *testing.T) {
	from, encrypted := consumerArchive(t), "k8s:enc:aescbc:v1:k:0123456789abcdef0123456789abcdef"
	home, binding := kcptest.LogicalClusterKey(kcptest.Consumer), "/registry/apis.kcp.io/apibindings/customresources/"+kcptest.Consumer+"/example.dev"
	for name, c := range map[string]struct{ key, value, code string }{
		"encrypted LogicalCluster": {home, encrypted, "encrypted"},
		"encrypted APIBinding":     {binding, encrypted, "encrypted"},
		"odd LogicalCluster":       {home, `{"apiVersion":"core.kcp.io/v1alpha1","kind":"LogicalCluster","metadata":{"annotations":[]}}`, kcp.CodeUndecodable.Name},
		"no APIBinding":            {binding, `{"apiVersion":"v1","kind":"Secret"}`, kcp.CodeUndecodable.Name},
	} {
		t.Run(name, func(t *testing.T) {
			bad := reforged(t, from, with(c.key, c.value))
			found := importInto(t, bad, kcptest.Recorded(t, kcptest.Shard1), move.Import{}, transform.Options{Allow: append(finding.Allowable(move.ImportSpec.Codes), c.code)}).refused(c.code)
			require.Len(t, found, 1)
			require.Equal(t, []any{c.key, finding.Error, finding.Refused}, []any{found[0].Key, found[0].Level, found[0].Outcome})
		})
	}
}

// TestPutBackUnreadState: as for what it is put back into.
func TestPutBackUnreadState(t *testing.T) {
	root, shard1 := kcptest.LiveMigrated(t)
	home := kcptest.LogicalClusterKey(kcptest.Other)
	for _, value := range []string{"{", "k8s:enc:aescbc:v1:k:0123456789abcdef0123456789abcdef"} {
		a := putBack(t, shard1, rebuilt(t, root, with(home, value), nil, nil), move.PutBack{}, transform.Options{Allow: finding.Allowable(move.ImportSpec.Codes)})
		require.ErrorIs(t, a.err, transform.ErrRefused)
		refused := a.report.Problems[slices.IndexFunc(a.report.Problems, func(p finding.Finding) bool { return p.Outcome == "refused" })]
		require.Equal(t, home, refused.Key)
	}
}

// TestImportCutArchive: an archive without its digest is taken, as a database file, and that is
// told.
func TestImportCutArchive(t *testing.T) {
	from := consumerArchive(t)
	info, err := os.Stat(from)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(from, info.Size()-32))
	a := importInto(t, from, kcptest.Recorded(t, kcptest.Shard1), move.Import{}, transform.Options{}).written()
	require.Equal(t, []string{"raw-file"}, codes(a.report))
	require.Contains(t, a.report.Problems[0].Reason, from+": no digest")
}

// TestImportTellsWhatCannotBeRead: every record comes as it is, and the ones that nobody can read
// are told, built-in types and the logical cluster's own definitions among them.
func TestImportTellsWhatCannotBeRead(t *testing.T) {
	settings := "/registry/core/configmaps/" + kcptest.Consumer + "/default/settings"
	gizmos := "/registry/apiextensions.k8s.io/customresourcedefinitions/" + kcptest.Consumer + "/gizmos.crd.example.org"
	from := consumerArchive(t)
	for key, value := range map[string]string{settings: "\x00garbage", gizmos: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}`} {
		bad := reforged(t, from, with(key, value))
		a := importInto(t, bad, kcptest.Recorded(t, kcptest.Shard1), move.Import{}, transform.Options{Allow: []string{"missing-definition"}}).written()
		require.Contains(t, codes(a.report), kcp.CodeUndecodable.Name)
		at := slices.IndexFunc(a.report.Problems, func(p finding.Finding) bool { return p.Code.Name == kcp.CodeUndecodable.Name })
		require.Equal(t, []any{key, finding.Warning}, []any{a.report.Problems[at].Key, a.report.Problems[at].Level})
		require.Contains(t, a.report.Problems[at].Reason, "1 record of")
		require.Equal(t, value, a.value(key))
	}
}

// TestImportUndecryptableDefinitions: the reason admits that an undecryptable definition may be the
// missing one.
func TestImportUndecryptableDefinitions(t *testing.T) {
	const encrypted = "k8s:enc:aescbc:v1:k:0123456789abcdef0123456789abcdef"
	from := consumerArchive(t)
	own := reforged(t, from, with("/registry/apiextensions.k8s.io/customresourcedefinitions/"+kcptest.Consumer+"/gizmos.crd.example.org", encrypted))
	found := importInto(t, own, kcptest.Recorded(t, kcptest.Shard1), move.Import{}, transform.Options{}).refused("missing-definition")
	require.Len(t, found, 1)
	require.Contains(t, found[0].Reason, "gizmos.crd.example.org")
	require.Contains(t, found[0].Reason, "as far as can be told")

	system := "/registry/apiextensions.k8s.io/customresourcedefinitions/system:system-crds/apibindings.apis.kcp.io"
	shard := rebuilt(t, kcptest.Recorded(t, kcptest.Shard1), with(system, encrypted), nil, nil)
	found = importInto(t, from, shard, move.Import{}, transform.Options{}).refused("unserved")
	require.Contains(t, found[0].Reason, "as far as can be told")
}

// TestImportDefinitionUnread: where the archive has none, the one of the shard that nobody can read
// is told.
func TestImportDefinitionUnread(t *testing.T) {
	root := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Root), func(client *clientv3.Client) { kcptest.Delete(t, client, widgetsDefinition) })
	from := extractOf(t, root, extraction{Name: kcptest.Consumer})
	shard := rebuilt(t, kcptest.Recorded(t, kcptest.Shard1), with(widgetsDefinition, "{"), nil, nil)
	found := importInto(t, from, shard, move.Import{}, transform.Options{}).refused("definition-differs")
	require.Len(t, found, 1)
	require.Equal(t, widgetsDefinition, found[0].Key)
	require.Contains(t, found[0].Reason, "cannot be told")
}

// TestImportLeavesOutStoredVersion: a stored version of the origin that the definition does not
// list is left out, and told.
func TestImportLeavesOutStoredVersion(t *testing.T) {
	from := consumerArchive(t)
	value := arrival{t: t, out: from}.value(widgetsDefinition)
	bad := reforged(t, from, with(widgetsDefinition, strings.Replace(value, `"storedVersions":["v1"]`, `"storedVersions":["v0","v1"]`, 1)))
	a := importInto(t, bad, kcptest.Recorded(t, kcptest.Shard1), move.Import{}, transform.Options{}).written()
	require.Len(t, a.report.Problems, 1)
	p := a.report.Problems[0]
	require.Equal(t, []any{widgetsDefinition, "unlisted-version", finding.Warning}, []any{p.Key, p.Code.Name, p.Level})
	require.Contains(t, p.Reason, `"v0"`)
	require.Equal(t, transform.Changes{Created: 36}, a.report.Changes)
}

// TestPutBackOdd: an orphan that says that it is somebody else's is not put back just so, and
// Events that would never expire are named.
func TestPutBackOdd(t *testing.T) {
	root, shard1 := kcptest.LiveMigrated(t)
	trap := kcptest.Trapped()[1]
	odd := rebuilt(t, shard1, func(rec *snapshot.Record) {
		if string(rec.Key) == trap {
			rec.Value = []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"other","namespace":"` + kcptest.Consumer + `"}}`)
		}
	}, nil, nil)
	found := putBack(t, odd, root, move.PutBack{}, transform.Options{}).refused("key-mismatch")
	require.Len(t, found, 1)
	require.Equal(t, trap, found[0].Key)
	a := putBack(t, odd, root, move.PutBack{}, transform.Options{Allow: []string{"key-mismatch"}}).written()
	require.Equal(t, 3, a.report.Changes.Created)

	event := "/registry/core/events/" + kcptest.Other + "/" + kcptest.Consumer + "/ev"
	shard1 = kcptest.Edit(t, shard1, func(client *clientv3.Client) {
		kcptest.Put(t, client, event, []byte(`{"apiVersion":"v1","kind":"Event","metadata":{"name":"ev","namespace":"`+kcptest.Consumer+`"}}`))
	})
	a = putBack(t, shard1, root, move.PutBack{}, transform.Options{}).written()
	require.True(t, hasStep(a.report.Steps, "1 Event", "never expire", event), "%q", a.report.Steps)
}
