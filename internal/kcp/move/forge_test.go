package move_test

import (
	"context"
	"iter"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/archive"
	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/kcp/move"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

func sequence(records []*snapshot.Record) iter.Seq2[*snapshot.Record, error] {
	return func(yield func(*snapshot.Record, error) bool) {
		for _, rec := range records {
			if !yield(rec, nil) {
				return
			}
		}
	}
}

func build(t testing.TB, content snapshot.Content) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "built.db")
	_, err := snapshot.Build(context.Background(), out, content, nil)
	require.NoError(t, err)
	return out
}

// rebuilt returns a file with the live records of path, changed by change, with the leases changed
// by relet, and with the notes for these records.
func rebuilt(t testing.TB, path string, change func(rec *snapshot.Record), relet func(leases map[int64]int64),
	notes func(records []*snapshot.Record, leases map[int64]int64) map[string][]byte,
) string {
	t.Helper()
	ctx, from := context.Background(), openFile(t, path)
	info, err := from.Info(ctx)
	require.NoError(t, err)
	var records []*snapshot.Record
	for rec, err := range from.Live(ctx, nil) {
		require.NoError(t, err)
		one := *rec
		change(&one)
		records = append(records, &one)
	}
	content, leases := snapshot.Content{Revision: info.Revision, Records: sequence(records)}, leasesOf(t, path)
	if relet != nil {
		relet(leases)
	}
	for id, ttl := range leases {
		content.Leases = append(content.Leases, snapshot.Lease{ID: id, TTL: ttl})
	}
	if notes != nil {
		content.Notes = notes(records, leases)
	}
	return build(t, content)
}

// reforged returns an archive with records changed by change and a matching manifest.
func reforged(t testing.TB, path string, change func(rec *snapshot.Record)) string {
	t.Helper()
	m := manifestOf(t, path)
	return rebuilt(t, path, change, nil, func(records []*snapshot.Record, leases map[int64]int64) map[string][]byte {
		tally := archive.NewClusterTally(m.Origin.Prefix, leases)
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

func manifestOf(t testing.TB, path string) *archive.Manifest {
	t.Helper()
	m, err := archive.Open(context.Background(), openFile(t, path))
	require.NoError(t, err)
	return m
}

// with sets the value of one key.
func with(key, value string) func(rec *snapshot.Record) {
	return func(rec *snapshot.Record) {
		if string(rec.Key) == key {
			rec.Value = []byte(value)
		}
	}
}

// withLease sets the lease of the record of one key.
func withLease(key string, lease int64) func(rec *snapshot.Record) {
	return func(rec *snapshot.Record) {
		if string(rec.Key) == key {
			rec.Lease = lease
		}
	}
}

// forged returns an archive that passes archive.Check: one record, and a manifest with any
// statement about the record.
func forged(
	t *testing.T, key string, of archive.Resource, cluster string, definition *archive.Definition,
) *snapshot.Snapshot {
	t.Helper()
	rec := &snapshot.Record{
		Revision: snapshot.Revision{Main: 7}, Key: []byte("/registry" + key), Value: []byte(`{"kind":"ConfigMap"}`),
		CreateRevision: 7, ModRevision: 7, Version: 1,
	}
	nothing := archive.NewDigest().Sum()
	m := &archive.Manifest{
		APIVersion: archive.APIVersion, Kind: archive.KindClusters, Format: archive.Format, Name: cluster,
		Origin:   archive.Origin{Prefix: "/registry", SHA256: nothing.SHA256, Revision: 9, Rest: nothing},
		Clusters: []archive.Cluster{{Name: cluster}}, Definitions: []archive.Definition{},
		Missing:    []archive.Definition{},
		Identities: []archive.Identity{},
	}
	tally := archive.NewClusterTally("/registry", nil)
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
	s := openFile(t, build(t, snapshot.Content{Records: sequence([]*snapshot.Record{rec}), Revision: 9, Notes: notes}))
	require.NoError(t, archive.Check(context.Background(), s, m))
	return s
}

// TestOpenChecked checks that a manifest cannot assign a record to another logical cluster or type,
// even with matching sums.
func TestOpenChecked(t *testing.T) {
	id, crd := kcptest.ExampleDev, "/apiextensions.k8s.io/customresourcedefinitions/"
	settings := archive.Resource{Resource: "configmaps", Dir: "/core/configmaps/" + consumer + "/"}
	widgets := archive.Resource{Resource: "widgets.example.dev", Identity: id,
		Dir: "/example.dev/widgets/" + id + "/" + consumer + "/"}
	namespaces := archive.Resource{Resource: "namespaces", Dir: "/core/namespaces/" + consumer + "/"}
	others := archive.Resource{Resource: "configmaps", Dir: "/core/configmaps/" + other + "/" + consumer + "/"}
	asSecret, custom, bare := settings, settings, widgets
	asSecret.Resource, custom.Custom, bare.Identity = "secrets", true, ""
	for name, c := range map[string]struct {
		key   string
		of    archive.Resource
		uid   string // of a definition
		sound bool
	}{
		"a namespaced object":  {settings.Dir + "default/a", settings, "", true},
		"a cluster-scoped one": {namespaces.Dir + "a", namespaces, "", true},
		"of an identity":       {widgets.Dir + "default/a", widgets, "", true},
		"a definition":         {crd + "system:bound-crds/u", archive.Resource{}, "u", true},
		"another's namespace":  {others.Dir + "a", others, "", false},
		"of another type":      {settings.Dir + "default/a", asSecret, "", false},
		"of another identity":  {widgets.Dir + "default/a", bare, "", false},
		"custom":               {settings.Dir + "default/a", custom, "", false},
		"too deep":             {settings.Dir + "a/b/c/d", settings, "", false},
		"no definition":        {"/core/secrets/" + other + "/u", archive.Resource{}, "u", false},
		"another's definition": {crd + other + "/u", archive.Resource{}, "u", false},
	} {
		t.Run(name, func(t *testing.T) {
			var definition *archive.Definition
			if c.uid != "" {
				definition = &archive.Definition{UID: c.uid, Key: c.key}
			}
			m, err := archive.OpenChecked(t.Context(), forged(t, c.key, c.of, consumer, definition))
			require.NotNil(t, m)
			if c.sound {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, archive.ErrDamaged)
			}
		})
	}
	_, err := archive.OpenChecked(t.Context(), openFile(t, root(t)))
	require.ErrorIs(t, err, archive.ErrNotArchive)
}

// TestImportTakesNobodyAlong checks that another tenant's record with a missing lease stays, for
// any ID of the archive's lease; the proof finds an output in which the record would expire.
func TestImportTakesNobodyAlong(t *testing.T) {
	from := archiveOf(t, root(t))
	var gone int64
	for gone = range leasesOf(t, from) {
	}
	require.NotZero(t, gone)
	shard := rebuilt(t, shard1(t), withLease(another, gone), nil, nil)
	a := importInto(t, from, shard, move.Import{}).written()
	require.NotContains(t, leasesOf(t, a.out), gone)
	wrong := rebuilt(t, a.out, withLease(itsEvent, gone), func(all map[int64]int64) {
		all[gone] = leasesOf(t, from)[gone]
	}, nil)
	requireProof(t, from, shard, move.Import{}, map[string]string{"theirs would expire": wrong})
}

// TestImportTellsWhatCannotBeRead checks that unreadable records are copied as stored, with a
// warning, including built-in types and the logical cluster's own definitions.
func TestImportTellsWhatCannotBeRead(t *testing.T) {
	gizmos := definitions + consumer + "/gizmos.crd.example.org"
	from := archiveOf(t, root(t))
	for key, value := range map[string]string{
		itsSettings: "\x00garbage", gizmos: `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}`,
		itsGizmo: "{",
	} {
		a := importInto(t, reforged(t, from, with(key, value)), shard1(t), move.Import{},
			allow("missing-definition")).written()
		at := slices.IndexFunc(a.Problems, func(p finding.Finding) bool { return p.Code.Name == "undecodable" })
		require.Equal(t, []any{key, finding.Warning}, []any{a.Problems[at].Key, a.Problems[at].Level})
		require.Contains(t, a.Problems[at].Reason, "1 record of")
		require.Equal(t, value, a.value(key))
	}
}
