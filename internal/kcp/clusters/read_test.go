package clusters

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/snapshot"
)

// reader reads the file at path.
func reader(t testing.TB, path string, decrypter inspect.Decrypter, prefixes ...string) *inspect.Reader {
	t.Helper()
	s, err := snapshot.Open(context.Background(), path, snapshot.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return inspect.NewReader(s, decrypter, prefixes...)
}

// readFile is what ReadChecked finds in the file at path.
func readFile(t *testing.T, path string) *File {
	t.Helper()
	f, err := ReadChecked(context.Background(), reader(t, path, nil))
	require.NoError(t, err)
	return f
}

func theShard(t *testing.T, f *File) *Shard {
	t.Helper()
	s, err := f.Shard(nil)
	require.NoError(t, err)
	return s
}

func theCache(t *testing.T, f *File) *Cache {
	t.Helper()
	c, err := f.Cache(nil)
	require.NoError(t, err)
	return c
}

func counted(clusters []*Cluster) map[string]int {
	out := map[string]int{}
	for _, c := range clusters {
		out[c.Name] = c.Keys
	}
	return out
}

// TestOneOwner: each key of a recorded shard is counted once, under the logical cluster that it is
// of. What is expected was counted from the keys with awk; other has a namespace named like
// consumer, of which nothing is counted for consumer.
func TestOneOwner(t *testing.T) {
	for file, want := range map[string]map[string]int{
		kcptest.Root: {
			kcptest.Other: 38, kcptest.Child: 26, kcptest.Consumer: 36, kcptest.Provider: 19, "root": 65,
			"system:admin": 155, "system:bound-crds": 13, "system:shard": 9, "system:system-crds": 8,
		},
		kcptest.Shard1: {kcptest.Consumer1: 31, "system:admin": 155, "system:bound-crds": 13, "system:shard": 10, "system:system-crds": 8},
	} {
		path := kcptest.Recorded(t, file)
		f := readFile(t, path)
		s := theShard(t, f)
		require.Equal(t, want, counted(s.Clusters), file)
		require.Empty(t, s.Orphans)
		require.Len(t, f.Unknown, 1)
		require.Equal(t, "compact_rev_key", f.Unknown[0].Key)
		r := reader(t, path, nil)
		keys, bytes := 0, int64(0)
		for e, err := range r.Live(context.Background(), nil) {
			require.NoError(t, err)
			keys, bytes = keys+1, bytes+int64(len(e.Key)+len(e.Stored))
		}
		keys, bytes = keys-1, bytes-f.Unknown[0].Bytes
		for _, c := range s.Clusters {
			require.Empty(t, c.Problems, c.Name)
			require.Zero(t, c.Undecryptable)
			inResources := Amount{}
			for _, r := range c.Resources {
				inResources.Keys, inResources.Bytes = inResources.Keys+r.Keys, inResources.Bytes+r.Bytes
			}
			require.Equal(t, c.Amount, inResources)
			keys, bytes = keys-c.Keys, bytes-c.Bytes
		}
		require.Zero(t, keys)
		require.Zero(t, bytes)
	}
}

// TestCluster: what the values of a recorded shard say.
func TestCluster(t *testing.T) {
	s := theShard(t, readFile(t, kcptest.Recorded(t, kcptest.Root)))
	require.Equal(t, "root", s.Name)
	require.Equal(t, []RegisteredShard{
		{"root", "us-east-2", "https://127.0.0.1:6443"}, {"shard-1", "us-east-1", "https://127.0.0.1:6443"},
	}, s.Registered)
	c := s.Cluster(kcptest.Consumer)
	require.Equal(t, "root:consumer", c.Path)
	require.Equal(t, "Ready", c.Phase)
	require.Equal(t, "root", c.ShardName)
	require.Equal(t, "4c9388ec-573b-45bf-92ae-362ceb107e97", c.UID)
	owner := Owner{"tenancy.kcp.io/v1alpha1", "workspaces", "root", "consumer", "cca45fce-d305-4471-ab7a-4500afb71a0b"}
	require.Equal(t, &owner, c.Owner)
	require.False(t, c.System || c.Inactive)
	require.Empty(t, c.Terminating+c.Migrating)
	require.Len(t, c.Bindings, 3)
	require.Equal(t, ExportRef{kcptest.Provider, "root:provider", "example.dev"}, c.Bindings[0].Export)
	require.Len(t, c.Bindings[0].Bound, 3)
	bound := c.Bindings[0].Bound[2]
	require.Equal(t, "pods", bound.Resource.String())
	require.Equal(t, "v1.pods.core", bound.Schema)
	require.Equal(t, "f2a5dd18-487f-4b1f-9943-72fc51c30cb6", bound.UID)
	require.True(t, strings.HasPrefix(bound.Identity, "ae72113263cf"))
	require.Equal(t, []string{"v1"}, bound.StorageVersions)
	require.False(t, bound.Virtual)
	require.Equal(t, []Workspace{{
		Key:  "/registry/tenancy.kcp.io/workspaces/" + kcptest.Tenancy + "/" + kcptest.Consumer + "/child",
		Name: "child", Identity: kcptest.Tenancy,
		UID: "3ec03c53-f65c-4d1d-ac75-0278750e152d", Cluster: kcptest.Child, ShardName: "root", Region: "us-east-2",
	}}, c.Workspaces)
	require.Equal(t, []*Cluster{s.Cluster(kcptest.Child)}, s.Children(kcptest.Consumer))
	require.Len(t, s.Cluster(kcptest.Provider).Exports, 1)
	require.Equal(t, "example.dev", s.Cluster(kcptest.Provider).Exports[0].Name)
	require.Len(t, s.Definitions, 13)
	d := s.Definition(bound.UID)
	require.Equal(t, "pods", d.Resource.String())
	require.Equal(t, ExportRef{Cluster: kcptest.Provider, Name: "v1.pods.core"}, d.Schema)
	require.Equal(t, []string{"v1"}, d.Versions)
	require.Equal(t, []string{"v1"}, d.StoredVersions)
	require.Len(t, s.System, 8)
	require.Equal(t, "apibindings.apis.kcp.io", s.System[0].Resource.String())
	require.Equal(t, []string{"v1alpha1", "v1alpha2"}, s.System[0].Versions)
	require.True(t, s.Cluster("root").System)
}

// TestCopies: a cache's copies are by the shard that wrote them, and its own definitions are none.
func TestCopies(t *testing.T) {
	c := theCache(t, readFile(t, kcptest.Recorded(t, kcptest.Cache)))
	got := map[string]int{}
	for _, copied := range c.Copies {
		got[copied.Shard+"|"+copied.Cluster] = copied.Amount.Keys
		require.Len(t, copied.Keys, copied.Amount.Keys)
		require.Empty(t, copied.Problems)
	}
	require.Equal(t, map[string]int{
		"root|" + kcptest.Other: 1, "root|" + kcptest.Child: 1, "root|" + kcptest.Consumer: 1, "root|" + kcptest.Provider: 7,
		"root|root": 44, "shard-1|" + kcptest.Consumer1: 1,
	}, got)
	require.Equal(t, 21, c.Own.Keys)
	require.Len(t, c.Exports, 6)
	require.Len(t, c.Registered, 2)
}

// TestReadAtOnce: values decoded many at a time, in parallel, tell what they tell one by one.
func TestReadAtOnce(t *testing.T) {
	path := kcptest.Many(t, 60)
	f := readFile(t, path)
	require.Equal(t, checkedBy(t, reader(t, path, nil)), f)
}
