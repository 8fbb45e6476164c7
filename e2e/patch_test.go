package e2e

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// edit is a patch of testdata/patches.txt, for a live server and "etcdshift patch".
type edit struct{ resource, namespace, name, kind, body string }

// edits returns the lines of testdata/patches.txt: resource, [namespace/]name, type and body. For
// each kind they change valid content, set zero values that are not stored, and remove defaults.
// Later lines depend on earlier lines.
func edits(t testing.TB) (all []edit) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "patches.txt"))
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		f := strings.SplitN(strings.TrimSpace(line), " ", 4)
		require.Len(t, f, 4, line)
		namespace, name, in := strings.Cut(f[1], "/")
		if !in {
			namespace, name = "", f[1]
		}
		all = append(all, edit{f[0], namespace, name, f[2], f[3]})
	}
	return all
}

// patchOffline runs "etcdshift patch" on a file.
func patchOffline(t testing.TB, in string, e edit) (out string) {
	t.Helper()
	out = filepath.Join(t.TempDir(), "patched.db")
	args := []string{"patch", "-q", in, out, e.resource, e.name, "--type", e.kind, "-p", e.body}
	if e.namespace != "" {
		args = append(args, "-n", e.namespace)
	}
	said, err := exec.Command(etcdshift(t), args...).CombinedOutput()
	if err != nil {
		t.Errorf("%q: %s", e, said)
		return in
	}
	return out
}

// resources returns the served resources by "plural.group".
func (c *cluster) resources(t testing.TB) map[string]resource {
	t.Helper()
	all := map[string]resource{}
	for _, r := range c.kinds(t) {
		all[strings.TrimSuffix(r.Resource+"."+r.Group, ".")] = r
	}
	return all
}

// patchLive patches like "kubectl patch".
func (c *cluster) patchLive(t testing.TB, r resource, e edit) {
	t.Helper()
	kind := map[string]types.PatchType{"json": types.JSONPatchType, "merge": types.MergePatchType,
		"strategic": types.StrategicMergePatchType}[e.kind]
	_, err := c.client(r.GroupVersionResource, e.namespace).Patch(context.Background(), e.name, kind, []byte(e.body),
		metav1.PatchOptions{})
	if err != nil {
		t.Errorf("%q: %v", e, err)
	}
}

// contents returns the fields of all objects, by "kind namespace/name: field", without
// managedFields and resourceVersion: etcdshift writes at other revisions.
func (c *cluster) contents(t testing.TB) map[string]any {
	t.Helper()
	out := map[string]any{}
	for gvk, r := range c.kinds(t) {
		if !r.listed || slices.Contains([]string{"Event", "ComponentStatus"}, gvk.Kind) {
			continue
		}
		list, err := c.client(r.GroupVersionResource, "").List(context.Background(), metav1.ListOptions{})
		require.NoError(t, err, r.String())
		for _, object := range list.Items {
			if restless("/registry/"+r.Resource+"/"+object.GetNamespace()) && object.GetNamespace() != "shop" {
				continue
			}
			object.SetResourceVersion("")
			object.SetManagedFields(nil)
			fields(gvk.GroupVersion().String()+" "+gvk.Kind+" "+object.GetNamespace()+"/"+object.GetName()+": ",
				object.Object, out)
		}
	}
	return out
}

// fields adds the leaves of an object to out.
func fields(at string, value any, out map[string]any) {
	object, is := value.(map[string]any)
	if !is || len(object) == 0 {
		out[at] = value
		return
	}
	for name, field := range object {
		fields(at+"."+name, field, out)
	}
}

// accepts requires that a server accepts an unchanged update of the object, and would store the
// same fields.
func (c *cluster) accepts(t testing.TB, r resource, e edit) {
	t.Helper()
	client := c.client(r.GroupVersionResource, e.namespace)
	object, err := client.Get(context.Background(), e.name, metav1.GetOptions{})
	require.NoError(t, err, "%q", e)
	updated, err := client.Update(context.Background(), object,
		metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		t.Errorf("no server can update %s %s/%s: %v", e.resource, e.namespace, e.name, err)
		return
	}
	require.Equal(t, object.GetGeneration(), updated.GetGeneration(), "%q", e)
}

// baseFlags returns the flags of the servers that wrote base.db.
func baseFlags() []string { return []string{"--service-cluster-ip-range=10.0.0.0/24"} }

// base returns the recorded control plane without an APIService whose server is missing, because
// discovery would fail.
func base(t testing.TB) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "base.db")
	unzip(t, filepath.Join("..", "testdata", "reports", "base.db.gz"), path)
	path, _ = deleteOffline(t, path, "apiservice v1beta1.metrics.k8s.io")
	return path
}

// differencesOfPatch returns fields that differ from a server's, with reasons; each must occur.
func differencesOfPatch() map[string]string {
	finalizers := "a server changes the finalizers of a namespace through /finalize alone; offline they can be " +
		"changed, as status can"
	allocated := "a server allocates the node ports of a Service with its next update"
	made := "a server makes a missing IPAddress at its start"
	return map[string]string{
		"v1 Namespace /shop: .spec": finalizers, "v1 Namespace /shop: .spec.finalizers": finalizers,
		"v1 Service billing/manual: .spec.ports":                                 allocated,
		"networking.k8s.io/v1 IPAddress /10.0.0.99: .metadata.uid":               made,
		"networking.k8s.io/v1 IPAddress /10.0.0.99: .metadata.creationTimestamp": made,
	}
}

// TestPatched checks that a snapshot changed by "etcdshift patch" is served like the live cluster
// after the same patches, including generations and dropped fields, and that a server can update
// the objects.
func TestPatched(t *testing.T) {
	t.Parallel()
	live := startCluster(t, restoreAsIs(t, base(t)), baseFlags()...)
	live.store.waitQuiet(t)
	file, resources, kinds := live.store.save(t), live.resources(t), map[string]bool{}
	for _, e := range edits(t) {
		require.Contains(t, resources, e.resource)
		live.patchLive(t, resources[e.resource], e)
		file = patchOffline(t, file, e)
		kinds[e.resource] = true
	}
	require.Greater(t, len(kinds), 40)
	offline := startCluster(t, restoreAsIs(t, file), baseFlags()...)
	want, got := live.contents(t), offline.contents(t)
	all, differs := maps.Clone(want), differencesOfPatch()
	maps.Copy(all, got)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		_, listed := differs[name]
		if reflect.DeepEqual(want[name], got[name]) == listed {
			t.Errorf("%s, listed %v\nlive    %v\noffline %v", name, listed, want[name], got[name])
		}
	}
	for _, e := range edits(t) {
		offline.accepts(t, resources[e.resource], e)
	}
}

// TestRefusedServices checks that a server also refuses Services refused by "etcdshift patch".
func TestRefusedServices(t *testing.T) {
	t.Parallel()
	file := base(t)
	live := startCluster(t, restoreAsIs(t, file), baseFlags()...)
	for _, row := range [][3]string{
		{"lb", `{"spec":{"type":"ClusterIP","loadBalancerSourceRanges":["192.0.2.0/24"]}}`, "oadBalancerSourceRanges"},
		{"lb",
			`{"metadata":{"annotations":{"service.beta.kubernetes.io/load-balancer-source-ranges":""}},` +
				`"spec":{"type":"NodePort"}}`, "load-balancer-source-ranges"},
		{"web", `{"spec":{"type":"ClusterIP","ports":[{"name":"http","port":80,"nodePort":30999}]}}`,
			"spec.ports[0].nodePort"},
		{"web", `{"spec":{"loadBalancerClass":"a/b"}}`, "spec.loadBalancerClass"},
		{"db", `{"spec":{"type":"NodePort"}}`, "spec.clusterIPs"},
		{"web", `{"spec":{"type":"ExternalName"}}`, "spec.externalName"},
		{"web", `{"spec":{"clusterIPs":["10.0.0.98"]}}`, "spec.clusterIPs"},
		{"ext", `{"spec":{"type":"ClusterIP","externalName":null,"clusterIP":"None"}}`, ""},
		{"ext", `{"spec":{"type":"ClusterIP","externalName":null,"clusterIP":"10.0.0.97"}}`, "spec.ports"},
	} {
		services := live.client(schema.GroupVersionResource{Version: "v1", Resource: "services"}, shop)
		_, err := services.Patch(context.Background(), row[0], types.MergePatchType, []byte(row[1]),
			metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		said, offline := exec.Command(etcdshift(t), "patch", "--dry-run", file, "none.db", "svc/"+row[0], "-n", shop,
			"--type", "merge", "-p", row[1]).CombinedOutput()
		if row[2] == "" {
			require.NoError(t, err, row[1])
			require.NoError(t, offline, "%s: %s", row[1], said)
			continue
		}
		require.ErrorContains(t, err, row[2], row[1])
		require.EqualError(t, offline, "exit status 3", "%s: %s", row[1], said)
		require.Contains(t, string(said), row[2], row[1])
	}
}

// TestRefused checks that a server refuses objects refused by "etcdshift patch", for the same
// fields.
func TestRefused(t *testing.T) {
	t.Parallel()
	file := base(t)
	live := startCluster(t, restoreAsIs(t, file), baseFlags()...)
	resources := live.resources(t)
	for _, row := range [][3]string{
		{"deployments.apps", "shop/web", `{"spec":{"replicas":-1}}`},
		{"deployments.apps", "shop/web", `{"spec":{"template":{"metadata":{"labels":null}}}}`},
		{"statefulsets.apps", "shop/db", `{"spec":{"minReadySeconds":-1}}`},
		{"pods", "shop/bare", `{"spec":{"activeDeadlineSeconds":-1}}`},
		{"jobs.batch", "shop/once", `{"spec":{"activeDeadlineSeconds":-1}}`},
		{"cronjobs.batch", "shop/nightly", `{"spec":{"schedule":"never"}}`},
		{"horizontalpodautoscalers.autoscaling", "shop/web", `{"spec":{"maxReplicas":0}}`},
		{"poddisruptionbudgets.policy", "shop/web", `{"spec":{"minAvailable":-2}}`},
		{"ingresses.networking.k8s.io", "shop/web", `{"spec":{"rules":[{"host":"A B"}]}}`},
		{"networkpolicies.networking.k8s.io", "shop/deny", `{"spec":{"podSelector":{"matchLabels":{"x":"y z"}}}}`},
		{"endpointslices.discovery.k8s.io", "billing/manual-1", `{"ports":[{"name":"A_B","port":1}]}`},
		{"configmaps", "shop/app-config", `{"data":{"a b":"x"}}`},
		{"secrets", "shop/db-credentials", `{"data":{"a b":"eA=="}}`},
		{"resourcequotas", "shop/q", `{"spec":{"hard":{"pods":"1.5"}}}`},
		{"persistentvolumes", "pv-csi-1", `{"spec":{"accessModes":[]}}`},
		{"nodes", "node-1", `{"spec":{"taints":[{"key":"a b","effect":"NoSchedule"}]}}`},
		{"roles.rbac.authorization.k8s.io", "shop/reader",
			`{"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":[]}]}`},
		{"flowschemas.flowcontrol.apiserver.k8s.io", "shop-flow", `{"spec":{"matchingPrecedence":20000}}`},
		{"leases.coordination.k8s.io", "shop/my-operator", `{"spec":{"leaseDurationSeconds":0}}`},
	} {
		namespace, name, in := strings.Cut(row[1], "/")
		if !in {
			namespace, name = "", row[1]
		}
		require.Contains(t, resources, row[0])
		_, err := live.client(resources[row[0]].GroupVersionResource, namespace).Patch(context.Background(), name,
			types.MergePatchType, []byte(row[2]), metav1.PatchOptions{})
		var status *apierrors.StatusError
		require.ErrorAs(t, err, &status, row)
		require.True(t, apierrors.IsInvalid(err), "%s: %v", row, err)
		args := []string{"patch", "--dry-run", file, "none.db", row[0], name, "--type", "merge", "-p", row[2]}
		if in {
			args = append(args, "-n", namespace)
		}
		said, err := exec.Command(etcdshift(t), args...).CombinedOutput()
		require.EqualError(t, err, "exit status 3", "%s: %s", row, said)
		require.Contains(t, string(said), "invalid-object", row)
		for _, cause := range status.ErrStatus.Details.Causes {
			require.Contains(t, string(said), cause.Field+" (", "%s: %s", row, said)
		}
	}
}
