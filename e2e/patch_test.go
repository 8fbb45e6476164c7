package e2e

import (
	"context"
	"maps"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// patched are command lines behind "patch", that a live server takes too: each type of patch, and a
// change of what is wanted of each kind that has a generation.
func patched() []string {
	return []string{
		`deploy d -n a -p {"spec":{"template":{"spec":{"containers":[{"name":"more","image":"x:1"}]}}}}`,
		`deploy d -n a --type merge -p {"spec":{"replicas":4}}`,
		`deploy d -n a --type json -p [{"op":"add","path":"/metadata/annotations","value":{"a":"b"}}]`,
		`ds ds -n a -p {"spec":{"template":{"metadata":{"annotations":{"a":"b"}}}}}`,
		`ds ds -n a --type merge -p {"spec":{"minReadySeconds":7}}`,
		`sts,rs,rc -n a --all --type merge -p {"spec":{"replicas":3}}`,
		`cronjob -n a --all -p {"spec":{"suspend":true}}`,
		`job -n a --all -p {"spec":{"activeDeadlineSeconds":99}}`,
		`svc -n a --all --type merge -p {"spec":{"sessionAffinity":"None","publishNotReadyAddresses":true}}`,
		`endpointslice es -n a --type json -p [{"op":"replace","path":"/endpoints/0/conditions","value":{"ready":false}}]`,
		`netpol,ing,pdb,hpa -n a --all --type merge -p {"metadata":{"annotations":{"c":"d"}}}`,
		`netpol -n a --all --type merge -p {"spec":{"podSelector":{"matchLabels":{"x":"y"}}}}`,
		`ing -n a --all --type merge -p {"spec":{"ingressClassName":"other"}}`,
		`hpa -n a --all -p {"spec":{"maxReplicas":77}}`,
		`cm -n a --all --type merge -p {"data":{"more":"x"}}`,
		`secret -n a --all -p {"stringData":{"more":"x"}}`,
		`node n1 -p {"spec":{"taints":[{"key":"k","effect":"NoSchedule","value":"v"}]}}`,
		`node n2 --type json -p [{"op":"add","path":"/spec/unschedulable","value":true}]`,
		`pv pv1 -p {"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`,
		`pod run -n a -p {"spec":{"containers":[{"name":"NAME","image":"x:2"}]}}`,
		`clusterrole view -p {"rules":null}`,
		`crd gizmos.example.com -p {"spec":{"names":{"shortNames":["gz"]}}}`,
		`gizmos.example.com new --type merge -p {"spec":{"size":9}}`,
		`gizmos.example.com new --type json -p [{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`,
	}
}

// patchOffline runs "etcdshift patch" on a file.
func patchOffline(t testing.TB, in string, args ...string) (out string) {
	t.Helper()
	out = filepath.Join(t.TempDir(), "patched.db")
	said, err := exec.Command(etcdshift(t), append([]string{"patch", in, out}, args...)...).CombinedOutput()
	require.NoError(t, err, "%q: %s", args, said)
	return out
}

// arguments splits a line of patched; a patch has no blanks.
func arguments(line, container string) []string {
	return strings.Fields(strings.ReplaceAll(line, "NAME", container))
}

// contents are the objects of all kinds, without what another time or place makes different.
func (c *cluster) contents(t testing.TB) map[string]any {
	t.Helper()
	out := map[string]any{}
	for gvk, r := range c.kinds(t) {
		if !r.listed || slices.Contains([]string{"Event", "Lease", "APIService", "ComponentStatus"}, gvk.Kind) {
			continue
		}
		list, err := c.client(r.GroupVersionResource, "").List(context.Background(), metav1.ListOptions{})
		require.NoError(t, err, r.String())
		for _, object := range list.Items {
			object.SetResourceVersion("")
			object.SetManagedFields(nil)
			unstructured.RemoveNestedField(object.Object, "status", "conditions")
			out[gvk.String()+" "+object.GetNamespace()+"/"+object.GetName()] = object.Object
		}
	}
	return out
}

// patchLive runs the patches of patched with kubectl, on the objects that etcdshift chooses by
// --all one by one.
func (c *cluster) patchLive(t testing.TB, args []string) {
	t.Helper()
	k := c.kubectl(t)
	all := slices.Index(args, "--all")
	if all < 0 {
		said, ok := k.run(t, append([]string{"patch"}, args...)...)
		require.True(t, ok, "%q: %s", args, said)
		return
	}
	names, ok := k.run(t, "get", args[0], "-n", "a", "-o", "name")
	require.True(t, ok, names)
	for _, name := range strings.Fields(names) {
		said, ok := k.run(t, slices.Concat([]string{"patch", name}, args[1:all], args[all+1:])...)
		require.True(t, ok, "%s %q: %s", name, args, said)
	}
}

// labelLive patches the metadata of every object. Three kinds differ by design: a conversion of an
// autoscaler between versions sorts its metrics, a Job without labels gets those of its template as
// a default before the patch, and gizmos are stored at an old version, which a server changes too.
func (c *cluster) labelLive(t testing.TB, body string) (kinds []string) {
	t.Helper()
	ctx, seen := context.Background(), map[string]bool{}
	apart := []string{"Event", "Lease", "APIService", "HorizontalPodAutoscaler", "Job", "Gizmo"}
	for gvk, r := range c.kinds(t) {
		if !r.listed || !r.updated || seen[gvk.Kind] || slices.Contains(apart, gvk.Kind) {
			continue
		}
		list, err := c.client(r.GroupVersionResource, "").List(ctx, metav1.ListOptions{})
		require.NoError(t, err)
		for _, object := range list.Items {
			seen[gvk.Kind] = true
			_, err := c.client(r.GroupVersionResource, object.GetNamespace()).Patch(ctx, object.GetName(), types.MergePatchType, []byte(body), metav1.PatchOptions{})
			require.NoError(t, err, "%s %s", gvk, object.GetName())
		}
		if len(list.Items) > 0 {
			kinds = append(kinds, strings.TrimSuffix(r.Resource+"."+r.Group, "."))
		}
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// TestPatched: what "etcdshift patch" makes of a snapshot is served as what kubectl patch makes of
// the cluster, generations and defaults included.
func TestPatched(t *testing.T) {
	t.Parallel()
	live, _ := everyKind(t)
	said, ok := live.kubectl(t).run(t, "delete", "apiservice", "v1.gone.example.com") // discovery fails with it
	require.True(t, ok, said)
	live.createGizmos(t)
	live.store.waitQuiet(t)
	file := live.store.save(t)
	pod, err := live.client(configMaps().GroupVersion().WithResource("pods"), "a").Get(context.Background(), "run", metav1.GetOptions{})
	require.NoError(t, err)
	containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", "containers")
	container := containers[0].(map[string]any)["name"].(string)
	for _, line := range patched() {
		live.patchLive(t, arguments(line, container))
		file = patchOffline(t, file, arguments(line, container)...)
	}
	for _, body := range []string{`{"metadata":{"labels":{"patched":"yes"}}}`, `{"metadata":{"annotations":{"patched":"yes"}}}`} {
		kinds := live.labelLive(t, body)
		require.Greater(t, len(kinds), 40)
		file = patchOffline(t, file, strings.Join(kinds, ","), "--all", "-A", "--type", "merge", "-p", body)
	}
	offline := startCluster(t, restoreAsIs(t, file))
	want, got := live.contents(t), offline.contents(t)
	require.Equal(t, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got)))
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if !reflect.DeepEqual(want[name], got[name]) {
			t.Errorf("%s\nlive    %v\noffline %v", name, want[name], got[name])
		}
	}
}
