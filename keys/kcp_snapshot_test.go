package keys_test

import (
	"compress/gzip"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

// recorded returns the keys of a recorded snapshot.
func recorded(t *testing.T, name string) (all []string) {
	t.Helper()
	in, err := os.Open("../testdata/" + name + ".db.gz")
	require.NoError(t, err)
	defer in.Close()
	unzipped, err := gzip.NewReader(in)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "s.db")
	out, err := os.Create(path)
	require.NoError(t, err)
	_, err = io.Copy(out, unzipped)
	require.NoError(t, err)
	require.NoError(t, out.Close())
	ctx := context.Background()
	s, err := snapshot.Open(ctx, path, snapshot.Config{})
	require.NoError(t, err)
	defer s.Close()
	for rec, err := range s.Live(ctx, nil) {
		require.NoError(t, err)
		all = append(all, string(rec.Key))
	}
	return all
}

func detected(all []string) keys.Layouts {
	d := keys.NewDetector()
	for _, k := range all {
		d.Add([]byte(k))
	}
	return d.Layouts()
}

// TestKCPSnapshots checks that each key of a recorded kcp has one owner, except etcd's own key. The
// expected numbers were counted from the keys with awk.
func TestKCPSnapshots(t *testing.T) {
	for _, c := range []struct {
		file, prefix         string
		flavour              keys.Flavour
		clusters, identities map[string]int
		shards               map[string]int
	}{
		{"kcp/root-before", "/registry", keys.FlavourKCPShard, map[string]int{
			"11iehthilu5atzgl": 38, "1n7wq48mavio4f0j": 26, "2y3qvnqz5ga11oc4": 36, "zgf51depsgjhepex": 19, "root": 65,
			"system:admin": 155, "system:bound-crds": 13, "system:shard": 9, "system:system-crds": 8,
		}, map[string]int{
			"884102f8 shards.core.kcp.io": 2, "ae721132 sprockets.example.dev": 2, "ae721132 widgets.example.dev": 5,
			"ae721132 pods":                      3,
			"32415327 workspaces.tenancy.kcp.io": 5, "32415327 workspacetypes.tenancy.kcp.io": 5,
		}, map[string]int{}},
		{"kcp/shard1-before", "/registry", keys.FlavourKCPShard, map[string]int{
			"1vi0m2lj7drncrhe": 31, "system:admin": 155, "system:bound-crds": 13, "system:shard": 10,
			"system:system-crds": 8,
		}, map[string]int{"ae721132 sprockets.example.dev": 1, "ae721132 widgets.example.dev": 2, "ae721132 pods": 1},
			map[string]int{}},
		{"kcp/cache-before", "/cache", keys.FlavourKCPCache, map[string]int{
			"11iehthilu5atzgl": 1, "1n7wq48mavio4f0j": 1, "1vi0m2lj7drncrhe": 1, "2y3qvnqz5ga11oc4": 1,
			"zgf51depsgjhepex": 7, "root": 44,
			"system:system-crds": 21,
		}, map[string]int{}, map[string]int{"root": 54, "shard-1": 1, "system:cache:server": 21}},
	} {
		t.Run(c.file, func(t *testing.T) {
			all := recorded(t, c.file)
			l := detected(all)
			require.Equal(t, []keys.Storage{{Prefix: c.prefix, Flavour: c.flavour, Layout: c.flavour.Layout(c.prefix)}},
				l.Storages())
			require.Equal(t, c.flavour, l.Flavour())
			var unknown []string
			clusters, identities, shards := map[string]int{}, map[string]int{}, map[string]int{}
			for _, k := range all {
				key, layout, err := l.Parse([]byte(k))
				if err != nil {
					unknown = append(unknown, k)
					continue
				}
				require.Equal(t, k, string(layout.Format(key)))
				clusters[key.Cluster]++
				if key.Identity != "" {
					identities[key.Identity[:8]+" "+key.Resource.String()]++
				}
				if key.Shard != "" {
					shards[key.Shard]++
				}
			}
			require.Equal(t, []string{"compact_rev_key"}, unknown)
			require.Equal(t, c.clusters, clusters)
			require.Equal(t, c.identities, identities)
			require.Equal(t, c.shards, shards)
		})
	}
}

// TestTrap checks that a namespace named like a logical cluster is not mistaken for a logical
// cluster, in any form of key.
func TestTrap(t *testing.T) {
	const consumer, other = "2y3qvnqz5ga11oc4", "11iehthilu5atzgl"
	all := recorded(t, "kcp/root-before")
	l := detected(all)
	trapped := map[string]int{}
	for _, k := range all {
		if !strings.Contains(k, "/"+other+"/"+consumer) {
			continue
		}
		key, _, err := l.Parse([]byte(k))
		require.NoError(t, err)
		require.Equal(t, other, key.Cluster, k)
		require.True(t, key.Namespace == consumer || key.Name == consumer && key.Resource.Resource == "namespaces", k)
		trapped[key.Resource.String()]++
	}
	require.Equal(t, map[string]int{"configmaps": 2, "namespaces": 1, "serviceaccounts": 1, "gizmos.crd.example.org": 1,
		"widgets.example.dev": 1, "pods": 1}, trapped)
}

// TestOtherRecordedSnapshots checks that snapshots of other clusters are not detected as kcp.
func TestOtherRecordedSnapshots(t *testing.T) {
	for file, prefix := range map[string]string{"calico/before": "/registry", "calico/after": "/registry",
		"storage/before": "/registry"} {
		l := detected(recorded(t, file))
		require.Equal(t, []keys.Storage{{Prefix: prefix, Flavour: keys.FlavourKubernetes,
			Layout: keys.Kubernetes{Prefix: prefix}}}, l.Storages(), file)
	}
}
