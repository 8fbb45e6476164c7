package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// importManifest has the objects of namespace a beside those of createPart.
const importManifest = `
{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"db","namespace":"a"},"spec":{"serviceName":"web","replicas":1,"selector":{"matchLabels":{"app":"db"}},"template":{"metadata":{"labels":{"app":"db"}},"spec":{"containers":[{"name":"c","image":"example.com/none"}]}}}}
{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"leader","namespace":"a"},"spec":{"holderIdentity":"x","leaseDurationSeconds":15}}
{"apiVersion":"v1","kind":"Service","metadata":{"name":"np","namespace":"a"},"spec":{"type":"NodePort","ports":[{"port":80,"nodePort":30123}]}}
`

// manyManifest returns the manifest of 180 objects of namespace a.
func manyManifest() string {
	var b strings.Builder
	for i := range 60 {
		for _, head := range []string{`"v1","kind":"ConfigMap","data":{"a":"b"}`, `"v1","kind":"Secret","data":{"a":"Yg=="}`,
			`"example.com/v1","kind":"Note","spec":{"size":1}`} {
			fmt.Fprintf(&b, `{"apiVersion":%s,"metadata":{"name":"many-%d","namespace":"a"}}`+"\n", head, i)
		}
	}
	return b.String()
}

// ranOn runs a command line of kubectl, and returns what it said.
func (c *cluster) ranOn(t testing.TB, want bool, line string) string {
	t.Helper()
	text, ok := c.kubectl(t).run(t, strings.Fields(line)...)
	require.Equal(t, want, ok, "%s: %s", line, text)
	return text
}

// withoutVersions returns objects without their resourceVersion.
func withoutVersions(objects map[string]unstructured.Unstructured) map[string]unstructured.Unstructured {
	for name, o := range objects {
		o = *o.DeepCopy()
		o.SetResourceVersion("")
		objects[name] = o
	}
	return objects
}

// extracted runs "etcdshift extract", and returns the archive.
func extracted(t testing.TB, in string, flags ...string) (archive string) {
	t.Helper()
	archive = filepath.Join(t.TempDir(), "a.archive")
	args := append([]string{"extract", "-q", in, archive}, flags...)
	said, err := exec.Command(etcdshift(t), args...).CombinedOutput()
	require.NoError(t, err, "%s", said)
	return archive
}

// imports runs "etcdshift import", and returns its report and the path of OUT.
func imports(t testing.TB, in, archive string, flags ...string) (r report, codes map[string]bool) {
	t.Helper()
	r.path = filepath.Join(t.TempDir(), "after.db")
	cmd := exec.Command(etcdshift(t), append([]string{"import", in, archive, r.path, "-o", "json"}, flags...)...)
	text, _ := cmd.Output() // the report has the outcome
	var problems struct {
		Problems []struct{ Code, Level string }
	}
	require.NoError(t, json.Unmarshal(text, &r), "%s", text)
	require.NoError(t, json.Unmarshal(text, &problems))
	codes = map[string]bool{}
	for _, p := range problems.Problems {
		codes[p.Level+" "+p.Code] = true
	}
	return r, codes
}

// TestImported checks that a namespace of one cluster is served by another one after an import: the
// same 200 objects with their UIDs, without a difference to their export. A garbage collector
// deletes none of them, and their IPs and ports are allocated.
func TestImported(t *testing.T) {
	t.Parallel()
	a := startCluster(t, filepath.Join(t.TempDir(), "a"))
	a.createPart(t)
	a.create(t, importManifest+manyManifest())
	controllers := a.controllers(t)
	eventually(t, serveTimeout, "controllers have done their work", func() error {
		pods, err := a.client(pods(), "a").List(context.Background(), metav1.ListOptions{})
		claim, err2 := a.client(claims(), "a").Get(context.Background(), "data", metav1.GetOptions{})
		if err == nil && err2 == nil && len(pods.Items) == 2 && child(claim.Object, "status")["phase"] == "Bound" {
			return nil
		}
		return fmt.Errorf("Pods %v, claim %v %v", pods, err, err2)
	})
	a.store.waitQuiet(t)
	controllers.stop()
	served := withoutVersions(a.part(t))
	require.Greater(t, len(served), 200)
	lease, err := a.client(leases(), "a").Get(context.Background(), "leader", metav1.GetOptions{})
	require.NoError(t, err)
	a.store.waitQuiet(t)
	saved := a.store.save(t)
	a.stop()
	archive := extracted(t, saved, "-n", "a", "--needed")

	b := startCluster(t, filepath.Join(t.TempDir(), "b"))
	b.ranOn(t, true, "create namespace other")
	b.ranOn(t, true, "create service clusterip theirs -n other --tcp=80:80")
	b.ranOn(t, true, "create configmap theirs -n other")
	b.store.waitQuiet(t)
	before := b.store.records(t)
	in := b.store.save(t)

	ip, _, _ := unstructured.NestedString(served["services/web"].Object, "spec", "clusterIP")
	conflicts := b.conflicts(t, ip)
	b.stop()
	r, codes := imports(t, conflicts, archive)
	require.Equal(t, "refused", r.Outcome)
	require.NoFileExists(t, r.path)
	for _, code := range []string{"error key-exists", "error address-in-use", "error quota-exceeded"} {
		require.True(t, codes[code], "%s: %v", code, codes)
	}

	r, codes = imports(t, in, archive)
	require.Equal(t, "written", r.Outcome, "%v", codes)
	c := startCluster(t, r.restore(t))
	require.Equal(t, served, withoutVersions(c.part(t)))
	export := exported(t, saved, "-n", "a")
	text, err := os.ReadFile(export)
	require.NoError(t, err)
	require.Greater(t, strings.Count(string(text), "\nkind: "), 190)
	require.Empty(t, c.ranOn(t, true, "diff -f "+export))
	got, err := c.client(leases(), "a").Get(context.Background(), "leader", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, lease.Object["spec"], got.Object["spec"])
	after := c.store.records(t)
	for key, is := range before {
		if strings.Contains(key, "/other/") {
			require.Equal(t, is.value, after[key].value, key)
		}
	}
	require.Empty(t, c.collect(t, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "a"))

	// Controllers find nothing to do: no rollout, no new Pod, no lost claim.
	c.store.waitQuiet(t)
	controllers = c.controllers(t)
	time.Sleep(2 * calm)
	controllers.stop()
	require.Equal(t, uids(served), uids(c.part(t)))
	require.Equal(t, "Bound", child(c.part(t)["persistentvolumeclaims/data"].Object, "status")["phase"])

	c.ranOn(t, true, "create service clusterip new -n a --tcp=80:80")
	services := c.part(t)
	newIP, _, _ := unstructured.NestedString(services["services/new"].Object, "spec", "clusterIP")
	require.NotEmpty(t, newIP)
	require.NotEqual(t, ip, newIP)
	for _, line := range []string{"create service clusterip x -n other --tcp=80:80 --clusterip=" + ip,
		"create service nodeport x -n other --tcp=80:80 --node-port=30123"} {
		require.Contains(t, c.ranOn(t, false, line), "is already allocated", "the import allocated it")
	}
	c.ranOn(t, true, "delete service web np -n a")
	c.ranOn(t, true, "create service clusterip x -n other --tcp=80:80 --clusterip="+ip)
}

// conflicts returns a snapshot of a cluster with conflicts of TestImported. An API server refuses
// the same.
func (c *cluster) conflicts(t *testing.T, ip string) string {
	c.ranOn(t, true, "create namespace a")
	c.ranOn(t, true, "create service clusterip first -n other --tcp=80:80 --clusterip="+ip)
	require.Contains(t, c.ranOn(t, false, "create service clusterip web -n a --tcp=80:80 --clusterip="+ip),
		"provided IP is already allocated")
	c.ranOn(t, true, "create service nodeport second -n other --tcp=80:80 --node-port=30123")
	require.Contains(t, c.ranOn(t, false, "create service nodeport np -n a --tcp=80:80 --node-port=30123"),
		"provided port is already allocated")
	c.ranOn(t, true, "create configmap web-1 -n a")
	require.Contains(t, c.ranOn(t, false, "create configmap web-1 -n a"), "already exists")
	c.ranOn(t, true, "create quota few -n a --hard=secrets=1")
	c.store.waitQuiet(t)
	return c.store.save(t)
}

// uids returns the UID of each object.
func uids(objects map[string]unstructured.Unstructured) map[string]types.UID {
	all := map[string]types.UID{}
	for name, o := range objects {
		all[name] = o.GetUID()
	}
	return all
}

func claims() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
}

func leases() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
}
