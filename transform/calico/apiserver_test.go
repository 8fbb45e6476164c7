package calico_test

import (
	"compress/gzip"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/etcdshift/etcdshift/internal/apitest"
	"github.com/etcdshift/etcdshift/internal/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
	"github.com/etcdshift/etcdshift/transform/calico"
)

// v3Plurals are the 22 resources an API server must serve, and whether they are namespaced.
func v3Plurals() map[string]bool {
	return map[string]bool{
		"tiers": false, "felixconfigurations": false, "bgpconfigurations": false, "kubecontrollersconfigurations": false,
		"ippools": false, "ipreservations": false, "bgppeers": false, "bgpfilters": false, "globalnetworkpolicies": false,
		"networkpolicies": true, "stagedglobalnetworkpolicies": false, "stagednetworkpolicies": true,
		"stagedkubernetesnetworkpolicies": true, "hostendpoints": false, "globalnetworksets": false, "networksets": true,
		"ipamconfigurations": false, "blockaffinities": false, "ipamblocks": false, "ipamhandles": false,
		"caliconodestatuses": false, "clusterinformations": false,
	}
}

// migrateRecorded migrates the recorded cluster and returns the output's path.
func migrateRecorded(t *testing.T) string {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "testdata", "calico", "before.db.gz"))
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	b, err := io.ReadAll(z)
	require.NoError(t, err)
	dir := t.TempDir()
	in, out := filepath.Join(dir, "before.db"), filepath.Join(dir, "after.db")
	require.NoError(t, os.WriteFile(in, b, 0o600))
	r, err := transform.Run(context.Background(), transform.Options{Command: "migrate calico-v3", In: in, Out: out},
		calico.New(calico.Options{SetAPIGroup: true}))
	require.NoError(t, err, "%+v", r.Problems)
	require.Equal(t, transform.Written, r.Outcome)
	return out
}

// TestServed restores the migrated cluster with etcdutl's library, starts a real etcd on it and a real API server on that, and
// uses every object as clients do: list, an update that changes nothing, one that changes something, and a create of the like.
func TestServed(t *testing.T) {
	out := migrateRecorded(t)
	etcd := etcdtest.Start(t, etcdtest.Restore(t, out))
	sameAsRead(t, out, etcd)
	api := apitest.Start(t, etcd.URL)
	var names []string
	for plural := range v3Plurals() {
		names = append(names, plural+".projectcalico.org")
	}
	slices.Sort(names)
	apitest.WaitEstablished(t, api, names...)

	ctx, served := context.Background(), 0
	for plural, namespaced := range v3Plurals() {
		resource := api.Dynamic.Resource(schema.GroupVersionResource{Group: "projectcalico.org", Version: "v3", Resource: plural})
		list, err := resource.List(ctx, metav1.ListOptions{})
		require.NoError(t, err, plural)
		require.NotEmpty(t, list.Items, plural)
		for i := range list.Items {
			obj := &list.Items[i]
			client := dynamic.ResourceInterface(resource)
			if namespaced {
				client = resource.Namespace(obj.GetNamespace())
			}
			useObject(t, client, obj)
			served++
		}
	}
	require.Equal(t, 63, served)
	gone, err := api.Extensions.ApiextensionsV1().CustomResourceDefinitions().List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	for _, crd := range gone.Items {
		require.NotEqual(t, "crd.projectcalico.org", crd.Spec.Group)
	}
}

// useObject: an update that changes nothing must be elided, which a server does only where the stored bytes are those it would
// write itself; a changed one is validated as a whole; and so, without regard to what was stored before, is a new object.
func useObject(t *testing.T, client dynamic.ResourceInterface, obj *unstructured.Unstructured) {
	t.Helper()
	ctx, name := context.Background(), obj.GetKind()+" "+obj.GetName()
	same, err := client.Update(ctx, obj.DeepCopy(), metav1.UpdateOptions{})
	require.NoError(t, err, name)
	require.Equal(t, obj.GetResourceVersion(), same.GetResourceVersion(), "%s: an update without a change was written", name)

	changed := same.DeepCopy()
	changed.SetAnnotations(map[string]string{"example.com/touched": "yes"})
	changed, err = client.Update(ctx, changed, metav1.UpdateOptions{})
	require.NoError(t, err, name)
	require.NotEqual(t, obj.GetResourceVersion(), changed.GetResourceVersion(), name)
	require.Equal(t, obj.GetUID(), changed.GetUID(), name)

	like := &unstructured.Unstructured{Object: map[string]any{"apiVersion": obj.GetAPIVersion(), "kind": obj.GetKind(), "spec": obj.Object["spec"]}}
	like.SetName("copy-of-" + obj.GetName())
	like.SetNamespace(obj.GetNamespace())
	_, err = client.Create(ctx, like, metav1.CreateOptions{})
	require.NoError(t, err, name)
	require.NoError(t, client.Delete(ctx, like.GetName(), metav1.DeleteOptions{}), name)
}

// sameAsRead compares what the restored etcd serves with our own reading of the file, record by record.
func sameAsRead(t *testing.T, path string, etcd *etcdtest.Server) {
	t.Helper()
	ctx := context.Background()
	s, err := snapshot.Open(ctx, path, snapshot.Config{})
	require.NoError(t, err)
	defer s.Close()
	rev, err := s.Revision(ctx)
	require.NoError(t, err)
	require.Equal(t, rev, etcdtest.Revision(t, etcd))
	got := map[string]etcdtest.KV{}
	for _, kv := range etcdtest.Dump(t, etcd, 0) {
		got[string(kv.Key)] = kv
	}
	n := 0
	for rec, err := range s.Live(ctx, nil) {
		require.NoError(t, err)
		n++
		kv := got[string(rec.Key)]
		require.Equal(t, string(rec.Value), string(kv.Value), "%s", rec.Key)
		require.Equal(t, []int64{rec.CreateRevision, rec.ModRevision, rec.Version, rec.Lease},
			[]int64{kv.CreateRevision, kv.ModRevision, kv.Version, kv.Lease}, "%s", rec.Key)
	}
	require.Len(t, got, n)
}
