package kcp_test

import (
	"context"
	"iter"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/kcp/archive"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/snapshot"
)

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
