package inspect

import (
	"compress/gzip"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

// recordedKCP returns a recorded snapshot of kcp.
func recordedKCP(t *testing.T, name string) *snapshot.Snapshot {
	t.Helper()
	in, err := os.Open("../testdata/kcp/" + name + ".db.gz")
	require.NoError(t, err)
	defer in.Close()
	unzipped, err := gzip.NewReader(in)
	require.NoError(t, err)
	data, err := io.ReadAll(unzipped)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, data, 0o600))
	s, err := snapshot.Open(context.Background(), path, snapshot.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// TestKCP checks that each object of a recorded kcp is counted under its resource and identity, and
// no kcp prefix is reported as a Kubernetes prefix.
func TestKCP(t *testing.T) {
	ctx := context.Background()
	for file, flavour := range map[string]keys.Flavour{"root-before": keys.FlavourKCPShard,
		"shard1-before": keys.FlavourKCPShard, "cache-before": keys.FlavourKCPCache} {
		s := recordedKCP(t, file)
		r := NewReader(s, nil)
		prefixes, err := r.Prefixes(ctx)
		require.NoError(t, err)
		require.Empty(t, prefixes)
		c, err := Survey(ctx, r)
		require.NoError(t, err)
		require.Equal(t, flavour, c.Flavour)
		require.Len(t, c.Prefixes, 1)
		require.Equal(t, flavour, c.Prefixes[0].Flavour)
		require.Equal(t, 1, c.Other, "compact_rev_key")
		count, err := s.Keys(ctx)
		require.NoError(t, err)
		sum := c.Other
		for _, res := range c.Resources {
			sum += res.Objects
			require.Nil(t, res.Definition)
			require.False(t, res.Orphans)
			for _, v := range res.Versions {
				require.NotEmpty(t, v.APIVersion, res.Resource)
				require.Empty(t, v.Standing)
			}
		}
		require.Equal(t, count, sum)
	}
}

// TestKCPVersions checks that versions come from the values, for all logical clusters together.
func TestKCPVersions(t *testing.T) {
	ctx := context.Background()
	r := NewReader(recordedKCP(t, "root-before"), nil)
	c, err := Survey(ctx, r)
	require.NoError(t, err)
	require.Equal(t, []Version{{APIVersion: "apis.kcp.io/v1alpha2", Kind: "APIBinding", Objects: 18}},
		c.resource(t, "apibindings.apis.kcp.io").Versions)
	require.Equal(t, []Version{{APIVersion: "crd.example.org/v2", Kind: "Gizmo", Objects: 7}},
		c.resource(t, "gizmos.crd.example.org").Versions)
	widgets := c.resource(t, "widgets.example.dev")
	require.Equal(t, 5, widgets.Objects)
	require.True(t, strings.HasPrefix(widgets.Identity, "ae72113263cf"))
	require.Equal(t, 28, c.resource(t, "configmaps").Objects)

	gr, err := r.Resource(ctx, []byte("/registry/core/secrets/2y3qvnqz5ga11oc4/default/sec"))
	require.NoError(t, err)
	require.Equal(t, "secrets", gr.String(), "what an encryption configuration names")
}

// TestPrefixOfKCPNamed checks that a prefix named by the caller is searched too.
func TestPrefixOfKCPNamed(t *testing.T) {
	ctx := context.Background()
	r := NewReader(recordedKCP(t, "cache-before"), nil, "/cache", "/none")
	layouts, err := r.Layouts(ctx)
	require.NoError(t, err)
	require.Equal(t, keys.FlavourKCPCache, layouts.Storages()[0].Flavour)
	prefixes, err := r.Prefixes(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"/none"}, prefixes)
}

// TestKCPOwners checks that values and parsed keys agree. The agreement proves the position of
// namespace and logical cluster in the key.
func TestKCPOwners(t *testing.T) {
	ctx := context.Background()
	said := 0
	for _, file := range []string{"root-before", "shard1-before", "cache-before"} {
		r := NewReader(recordedKCP(t, file), nil)
		layouts, err := r.Layouts(ctx)
		require.NoError(t, err)
		for e, err := range r.Live(ctx, nil) {
			require.NoError(t, err)
			key, _, err := layouts.Parse(e.Key)
			if err != nil {
				require.Equal(t, "compact_rev_key", string(e.Key))
				continue
			}
			meta, err := encoding.ReadMeta(e.Value)
			require.NoError(t, err)
			require.Equal(t, []string{key.Name, key.Namespace}, []string{meta.Name, meta.Namespace}, string(e.Key))
			// only objects that were updated after their creation have the annotation
			if cluster, ok := meta.Annotations["kcp.io/cluster"]; ok {
				require.Equal(t, key.Cluster, cluster, string(e.Key))
				said++
			}
			if shard, ok := meta.Annotations["kcp.io/shard"]; ok {
				require.Equal(t, key.Shard, shard, string(e.Key))
			}
		}
	}
	require.Greater(t, said, 100)
}
