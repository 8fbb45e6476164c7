package clusters

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
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
)

// inProtobuf is a ConfigMap as kcp stores it.
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

// TestKeyMismatch: a value that names another object than its key is told of, in protobuf and in
// JSON, and the key is what counts.
func TestKeyMismatch(t *testing.T) {
	const (
		maps   = "/registry/core/configmaps/" + kcptest.Consumer + "/default/"
		gizmos = "/registry/crd.example.org/gizmos/customresources/" + kcptest.Consumer + "/default/"
	)
	wrong := map[string]string{
		maps + "p-name": "metadata.name", maps + "p-namespace": "metadata.namespace", maps + "p-cluster": "kcp.io/cluster",
		maps + "p-both":   "metadata.name and metadata.namespace",
		gizmos + "j-name": "metadata.name", gizmos + "j-cluster": "kcp.io/cluster", gizmos + "j-none": "metadata.name and metadata.namespace",
	}
	mine, foreign := map[string]string{"kcp.io/cluster": kcptest.Consumer}, map[string]string{"kcp.io/cluster": kcptest.Other}
	path := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Root), func(client *clientv3.Client) {
		kcptest.Put(t, client, maps+"p-fine", inProtobuf(t, "p-fine", "default", mine))
		kcptest.Put(t, client, maps+"p-name", inProtobuf(t, "other", "default", nil))
		kcptest.Put(t, client, maps+"p-namespace", inProtobuf(t, "p-namespace", "team-a", mine))
		kcptest.Put(t, client, maps+"p-both", inProtobuf(t, "", "", mine))
		kcptest.Put(t, client, maps+"p-cluster", inProtobuf(t, "p-cluster", "default", foreign))
		kcptest.Put(t, client, gizmos+"j-name", []byte(`{"kind":"Gizmo","metadata":{"name":"J-name","namespace":"default"}}`))
		kcptest.Put(t, client, gizmos+"j-cluster",
			[]byte(`{"kind":"Gizmo","metadata":{"name":"j-cluster","namespace":"default","annotations":{"kcp.io/cluster":""}}}`))
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
		got[p.Key] = strings.TrimSuffix(strings.TrimSuffix(p.Reason, " of the value differ from the key"), " of the value differs from the key")
	}
	require.Equal(t, wrong, got)
	require.Len(t, c.Problems, len(wrong)+1)
	f, err := Read(context.Background(), reader(t, path, nil))
	require.NoError(t, err)
	require.Empty(t, theShard(t, f).Cluster(kcptest.Consumer).Problems, "Read compares none of these")
}

// TestKeyMismatchOfCopies: those of a cache and of orphans are told of too.
func TestKeyMismatchOfCopies(t *testing.T) {
	const (
		copied = "/cache/rbac.authorization.k8s.io/clusterroles/customresources/root/" + kcptest.Other + "/a"
		own    = "/cache/apiextensions.k8s.io/customresourcedefinitions/system:cache:server/system:system-crds/a.b.c"
		orphan = "/registry/core/configmaps/ghost/default/a"
	)
	f := readFile(t, kcptest.Edit(t, kcptest.Single(t), func(client *clientv3.Client) {
		kcptest.Put(t, client, copied, []byte(`{"kind":"ClusterRole","metadata":{"name":"a","annotations":{"kcp.io/shard":"shard-1"}}}`))
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
