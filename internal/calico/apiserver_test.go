package calico

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/etcdshift/etcdshift/internal/test/apitest"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// v3Plurals returns the 22 resources an API server must serve; the value reports whether they are
// namespaced.
func v3Plurals() map[string]bool {
	return map[string]bool{
		"tiers": false, "felixconfigurations": false, "bgpconfigurations": false,
		"kubecontrollersconfigurations": false,
		"ippools":                       false, "ipreservations": false, "bgppeers": false, "bgpfilters": false,
		"globalnetworkpolicies": false,
		"networkpolicies":       true, "stagedglobalnetworkpolicies": false, "stagednetworkpolicies": true,
		"stagedkubernetesnetworkpolicies": true, "hostendpoints": false, "globalnetworksets": false,
		"networksets":        true,
		"ipamconfigurations": false, "blockaffinities": false, "ipamblocks": false, "ipamhandles": false,
		"caliconodestatuses": false, "clusterinformations": false,
	}
}

// unusualRecords adds unusual records to the recorded cluster: from older releases, being deleted,
// owned by v3 clients, or in conflict with existing v3 objects. It removes the v3 CRDs, since the
// manifest adds them.
func unusualRecords(t *testing.T) (path string, o Options) {
	const deleting = `"deletionTimestamp":"2026-02-02T00:00:00Z","deletionGracePeriodSeconds":0,`
	in := newInput(t)
	for i, r := range []v1{
		{kind: "GlobalNetworkSet", name: "managed", spec: `{"nets":["192.0.2.0/24"]}`,
			inner: `{"ownerReferences":[` + ref(apiVersionV1, "Tier", "security", tierStored) + `],"managedFields":[` +
				`{"manager":"kubectl","operation":"Apply","apiVersion":"projectcalico.org/v3",` +
				`"time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{` +
				`"f:metadata":{"f:ownerReferences":{".":{},"k:{\"uid\":\"` + tierSeen +
				`\"}":{}}},"f:spec":{"f:nets":{}}}}]}`},
		{kind: "GlobalNetworkPolicy", name: "held", inner: `{"name":"held","finalizers":["example.com/inner"]}`,
			meta: deleting + `"finalizers":["example.com/outer"],`},
		{kind: "IPAMHandle", name: "k8s-pod-network.abc", inner: "{}",
			spec: `{"handleID":"k8s-pod-network.ABC","block":null}`},
		{kind: "IPAMBlock", name: "10-9-0-0-30", inner: `{"annotations":{"a":"1"}}`,
			meta: `"labels":{"l":"1"},"finalizers":["example.com/f"],`,
			spec: `{"cidr":"10.9.0.0/30","allocations":[0,null,null,null],"unallocated":[1,2,3],` +
				`"attributes":[{"handle_id":"h\r","releasedAt":"2026-01-01T00:00:00Z"}],` +
				`"strictAffinity":true,"sequenceNumber":1795202899322387071,` +
				`"sequenceNumberForAllocation":{"0":1795202899322387071},"deleted":false}`},
		{kind: "BlockAffinity", name: "node-a-10-9-0-0-30", inner: "{}",
			spec: `{"cidr":"10.9.0.0/30","node":"node-a","state":"confirmed","deleted":"1"}`},
		{kind: "GlobalNetworkPolicy", name: "default.strange", inner: `{}`,
			spec: `{"policyTypes":["Egress"],"egress":[{"action":"Allow"}],"types":[],"order":100.0,"selector":""}`},
		{kind: "BGPConfiguration", name: "empty", inner: "{}", spec: `null`},
		{kind: "Tier", name: "between", inner: "{}", spec: `{"order":1.5}`},
	} {
		r.uid = fmt.Sprintf("aaaaaa%02d-0000-4000-8000-000000000000", i)
		in.record(r)
	}
	in.put(secure, there("Tier", "security", `"finalizers":["projectcalico.org/tier-controller"],`,
		`{"order":42,"defaultAction":"Deny"}`))
	for _, kd := range kinds() {
		in.del(crdDir + kd.Plural + "." + groupV3)
	}
	return in.write(), Options{Conflicts: TakeV1, V3CRDs: manifestOf(t, in.from, "")}
}

// TestServed restores the migrated cluster with etcdutl's library, starts a real etcd and API
// server on it, and uses every object like a client: list, update without a change, update with a
// change, and create of a similar object.
func TestServed(t *testing.T) {
	t.Run("recorded", func(t *testing.T) { serve(t, recorded(t, "before.db"), Options{SetAPIGroup: true}, 63) })
	t.Run("strangers", func(t *testing.T) {
		path, o := unusualRecords(t)
		serve(t, path, o, 63+8)
	})
}

func serve(t *testing.T, in string, o Options, records int) {
	out := filepath.Join(t.TempDir(), "after.db")
	r, err := transform.Run(context.Background(), transform.Options{Command: "migrate calico-v3", In: in, Out: out},
		New(o))
	require.NoError(t, err, "%+v", r.Problems)
	require.Equal(t, transform.Written, r.Outcome)
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
		resource := api.Dynamic.Resource(schema.GroupVersionResource{Group: "projectcalico.org", Version: "v3",
			Resource: plural})
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
	require.Equal(t, records, served)
	gone, err := api.Extensions.ApiextensionsV1().CustomResourceDefinitions().List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	for _, crd := range gone.Items {
		require.NotEqual(t, "crd.projectcalico.org", crd.Spec.Group)
	}
}

// useObject checks that an update without a change is elided (a server does this only if the stored
// bytes equal its own), and that a changed and a new object pass the server's validation.
func useObject(t *testing.T, client dynamic.ResourceInterface, obj *unstructured.Unstructured) {
	t.Helper()
	ctx, name := context.Background(), obj.GetKind()+" "+obj.GetName()
	same, err := client.Update(ctx, obj.DeepCopy(), metav1.UpdateOptions{})
	require.NoError(t, err, name)
	require.Equal(t, obj.GetResourceVersion(), same.GetResourceVersion(), "%s: an update without a change was written",
		name)

	changed := same.DeepCopy()
	changed.SetAnnotations(map[string]string{"example.com/touched": "yes"})
	changed, err = client.Update(ctx, changed, metav1.UpdateOptions{})
	require.NoError(t, err, name)
	require.NotEqual(t, obj.GetResourceVersion(), changed.GetResourceVersion(), name)
	require.Equal(t, obj.GetUID(), changed.GetUID(), name)

	like := &unstructured.Unstructured{Object: map[string]any{"apiVersion": obj.GetAPIVersion(), "kind": obj.GetKind(),
		"spec": obj.Object["spec"]}}
	like.SetName("copy-of-" + obj.GetName())
	like.SetNamespace(obj.GetNamespace())
	_, err = client.Create(ctx, like, metav1.CreateOptions{})
	require.NoError(t, err, name)
	require.NoError(t, client.Delete(ctx, like.GetName(), metav1.DeleteOptions{}), name)
}

// sameAsRead compares the data served by the restored etcd with our own reading of the file, record
// by record.
func sameAsRead(t *testing.T, path string, etcd *etcdtest.Server) {
	t.Helper()
	ctx := context.Background()
	s, err := snapshot.Open(ctx, path, snapshot.Config{})
	require.NoError(t, err)
	defer s.Close()
	rev, err := s.Revision(ctx)
	require.NoError(t, err)
	require.Equal(t, rev, etcdtest.Revision(t, etcd))
	ours, err := s.Restored(ctx, 0)
	require.NoError(t, err)
	theirs, _, _ := etcdtest.HashKV(t, etcd, rev)
	require.Equal(t, theirs, ours.HashKV, "HashKV")
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
