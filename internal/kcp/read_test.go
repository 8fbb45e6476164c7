package kcp

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/etcdshift/etcdshift/finding"
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

// readFile returns the result of ReadChecked for the file at path.
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

// TestOneOwner checks that each key of a recorded shard is counted once, under its logical cluster.
// The expected numbers were counted from the keys with awk; other has a namespace named like
// consumer, which does not count for consumer.
func TestOneOwner(t *testing.T) {
	for file, want := range map[string]map[string]int{
		kcptest.Root: {
			kcptest.Other: 38, kcptest.Child: 26, kcptest.Consumer: 36, kcptest.Provider: 19, "root": 65,
			"system:admin": 155, "system:bound-crds": 13, "system:shard": 9, "system:system-crds": 8,
		},
		kcptest.Shard1: {kcptest.Consumer1: 31, "system:admin": 155, "system:bound-crds": 13, "system:shard": 10,
			"system:system-crds": 8},
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

// TestCluster checks the fields read from the values of a recorded shard.
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

// TestCopies checks that a cache's copies are listed by their shard, without the cache's own
// definitions.
func TestCopies(t *testing.T) {
	c := theCache(t, readFile(t, kcptest.Recorded(t, kcptest.Cache)))
	got := map[string]int{}
	for _, copied := range c.Copies {
		got[copied.Shard+"|"+copied.Cluster] = copied.Amount.Keys
		require.Len(t, copied.Keys, copied.Amount.Keys)
		require.Empty(t, copied.Problems)
	}
	require.Equal(t, map[string]int{
		"root|" + kcptest.Other: 1, "root|" + kcptest.Child: 1, "root|" + kcptest.Consumer: 1,
		"root|" + kcptest.Provider: 7,
		"root|root":                44, "shard-1|" + kcptest.Consumer1: 1,
	}, got)
	require.Equal(t, 21, c.Own.Keys)
	require.Len(t, c.Exports, 6)
	require.Len(t, c.Registered, 2)
}

// TestReadAtOnce checks that parallel decoding gives the same result as sequential decoding.
func TestReadAtOnce(t *testing.T) {
	path := kcptest.Many(t, 60)
	f := readFile(t, path)
	require.Equal(t, checkedBy(t, reader(t, path, nil)), f)
}

// TestFind checks that a name is found, and the error for any other text suggests names.
func TestFind(t *testing.T) {
	rootPath, shard1Path := kcptest.LiveMigrated(t)
	root, shard1 := theShard(t, readFile(t, rootPath)), theShard(t, readFile(t, shard1Path))
	purged := theShard(t, edited(t, func(client *clientv3.Client) {
		for _, key := range []string{kcptest.LogicalClusterKey(kcptest.Child),
			kcptest.LogicalClusterKey(kcptest.Provider)} {
			kcptest.Delete(t, client, key)
		}
	}))
	purged.orphans = nil
	c, err := root.Find(kcptest.Other)
	require.NoError(t, err)
	require.Equal(t, "root:other", c.Path)
	for name, c := range map[string]struct {
		shard *Shard
		says  string
	}{
		"root:other":     {root, `"root:other" is the path of "11iehthilu5atzgl", which is the name to give`},
		kcptest.Consumer: {root, `"2y3qvnqz5ga11oc4" lives on shard "shard-1", as its Workspace "consumer" says`},
		"root:consumer": {root,
			`"root:consumer" is the path of "2y3qvnqz5ga11oc4", which lives on shard "shard-1", as its Workspace ` +
				`"consumer" says`},
		kcptest.Other: {shard1,
			`"11iehthilu5atzgl" does not live on this shard; keys of it that are left here (orphans): 4`},
		kcptest.Provider: {purged,
			`"zgf51depsgjhepex" does not live on this shard, where its Workspace "provider" is`},
		"root:consumer:child": {purged,
			`"root:consumer:child" is the path of "1n7wq48mavio4f0j", which does not live on this shard, where its ` +
				`Workspace "child" is`},
		"other":                {root, `"other"; there is "11iehthilu5atzgl" (root:other)`},
		"11iehthi":             {root, `"11iehthi"; there is "11iehthilu5atzgl" (root:other)`},
		"11iehthilu5atzgl\x1b": {root, `"11iehthilu5atzgl\x1b"; there is "11iehthilu5atzgl" (root:other)`},
		"nothing-like-it":      {root, `"nothing-like-it"`},
		"":                     {root, `""`},
	} {
		_, err := c.shard.Find(name)
		require.ErrorIs(t, err, ErrNoCluster)
		require.Equal(t, "no such logical cluster: "+c.says, err.Error())
	}
}

// TestShardAndCache checks that a file is recognized as a shard or a cache.
func TestShardAndCache(t *testing.T) {
	shard, cache := readFile(t, kcptest.Recorded(t, kcptest.Root)), readFile(t, kcptest.Recorded(t, kcptest.Cache))
	_, err := cache.Shard(nil)
	require.ErrorIs(t, err, ErrNoShard)
	require.ErrorContains(t, err, `the file holds kcp-cache below "/cache"`)
	_, err = shard.Cache(nil)
	require.ErrorIs(t, err, ErrNoCache)
	require.ErrorContains(t, err, `the file holds kcp-shard below "/registry"`)
	_, err = shard.Shard([]string{"/elsewhere"})
	require.ErrorIs(t, err, ErrNoShard)
	_, err = (&File{}).Shard(nil)
	require.EqualError(t, err, "no shard of kcp: nothing that is known lies in the file")
	s, err := shard.Shard([]string{"/elsewhere", "/registry"})
	require.NoError(t, err)
	require.Equal(t, "root", s.Name)
	_, err = (&File{Caches: []*Cache{{Prefix: "/a"}, {Prefix: "/b"}}}).Cache(nil)
	require.ErrorIs(t, err, ErrSeveralCaches)
	require.ErrorContains(t, err, `below "/a" and "/b"`)
}

// inProtobuf returns a ConfigMap as kcp stores it.
func inProtobuf(t testing.TB, name, namespace string, annotations map[string]string) []byte {
	t.Helper()
	o := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Annotations: annotations},
	}
	scheme := runtime.NewScheme()
	require.NoError(t, corev1.AddToScheme(scheme))
	var out strings.Builder
	require.NoError(t, protobuf.NewSerializer(scheme, scheme).Encode(o, &out))
	return []byte(out.String())
}

// TestKeyMismatch checks that a value with another name than its key is reported, in protobuf and
// in JSON, and the key counts.
func TestKeyMismatch(t *testing.T) {
	const (
		maps   = "/registry/core/configmaps/" + kcptest.Consumer + "/default/"
		gizmos = "/registry/crd.example.org/gizmos/customresources/" + kcptest.Consumer + "/default/"
	)
	wrong := map[string]string{
		maps + "p-name": "metadata.name", maps + "p-namespace": "metadata.namespace",
		maps + "p-cluster": "kcp.io/cluster",
		maps + "p-both":    "metadata.name and metadata.namespace",
		gizmos + "j-name":  "metadata.name", gizmos + "j-cluster": "kcp.io/cluster",
		gizmos + "j-none": "metadata.name and metadata.namespace",
	}
	mine, foreign := map[string]string{"kcp.io/cluster": kcptest.Consumer},
		map[string]string{"kcp.io/cluster": kcptest.Other}
	path := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Root), func(client *clientv3.Client) {
		kcptest.Put(t, client, maps+"p-fine", inProtobuf(t, "p-fine", "default", mine))
		kcptest.Put(t, client, maps+"p-name", inProtobuf(t, "other", "default", nil))
		kcptest.Put(t, client, maps+"p-namespace", inProtobuf(t, "p-namespace", "team-a", mine))
		kcptest.Put(t, client, maps+"p-both", inProtobuf(t, "", "", mine))
		kcptest.Put(t, client, maps+"p-cluster", inProtobuf(t, "p-cluster", "default", foreign))
		kcptest.Put(t, client, gizmos+"j-name",
			[]byte(`{"kind":"Gizmo","metadata":{"name":"J-name","namespace":"default"}}`))
		kcptest.Put(t, client, gizmos+"j-cluster",
			[]byte(
				`{"kind":"Gizmo","metadata":{"name":"j-cluster","namespace":"default",`+
					`"annotations":{"kcp.io/cluster":""}}}`))
		kcptest.Put(t, client, gizmos+"j-none", []byte(`{"kind":"Gizmo"}`))
		kcptest.Put(t, client, gizmos+"j-damaged", []byte(`{"kind":"Gizmo"`))
	})
	c := theShard(t, readFile(t, path)).Cluster(kcptest.Consumer)
	require.Equal(t, 36+9, c.Keys)
	got := map[string]string{}
	for _, p := range c.Problems {
		if p.Code == CodeUndecodable {
			require.Equal(t, gizmos+"j-damaged", p.Key)
			continue
		}
		require.Equal(t, CodeKeyMismatch, p.Code)
		got[p.Key] = strings.TrimSuffix(strings.TrimSuffix(p.Reason, " of the value differ from the key"),
			" of the value differs from the key")
	}
	require.Equal(t, wrong, got)
	require.Len(t, c.Problems, len(wrong)+1)
	f, err := Read(context.Background(), reader(t, path, nil))
	require.NoError(t, err)
	require.Empty(t, theShard(t, f).Cluster(kcptest.Consumer).Problems, "Read compares none of these")
}

// TestKeyMismatchOfCopies checks the same for records of a cache and of orphans.
func TestKeyMismatchOfCopies(t *testing.T) {
	const (
		copied = "/cache/rbac.authorization.k8s.io/clusterroles/customresources/root/" + kcptest.Other + "/a"
		own    = "/cache/apiextensions.k8s.io/customresourcedefinitions/system:cache:server/system:system-crds/a.b.c"
		orphan = "/registry/core/configmaps/ghost/default/a"
	)
	f := readFile(t, kcptest.Edit(t, kcptest.Single(t), func(client *clientv3.Client) {
		kcptest.Put(t, client, copied,
			[]byte(`{"kind":"ClusterRole","metadata":{"name":"a","annotations":{"kcp.io/shard":"shard-1"}}}`))
		kcptest.Put(t, client, own, []byte(`{"kind":"CustomResourceDefinition","metadata":{"name":"b"}}`))
		kcptest.Put(t, client, orphan, configMap("b", "default"))
	}))
	var found []finding.Finding
	for _, c := range theCache(t, f).Copies {
		found = append(found, c.Problems...)
	}
	found = append(found, theCache(t, f).Own.Problems...)
	found = append(found, theShard(t, f).Orphans[0].Problems...)
	require.Equal(t, []finding.Finding{
		*CodeKeyMismatch.Because("kcp.io/shard of the value differs from the key").At(copied),
		*CodeKeyMismatch.Because("metadata.name of the value differs from the key").At(own),
		*CodeKeyMismatch.Because("metadata.name of the value differs from the key").At(orphan),
	}, found)
}
