package e2e

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// cropped lists the types of the objects in TestCropped.
func cropped() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{
		{Version: "v1", Resource: "configmaps"}, {Version: "v1", Resource: "secrets"},
		{Version: "v1", Resource: "services"}, {Version: "v1", Resource: "persistentvolumeclaims"},
		{Group: "apps", Version: "v1", Resource: "deployments"}, notes(), pods(),
		{Group: "apps", Version: "v1", Resource: "replicasets"},
		{Group: "apps", Version: "v1", Resource: "statefulsets"},
	}
}

func notes() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "notes"}
}

// createPart creates namespace a with owned objects, a Service, a bound claim, custom resources and
// rights, and what they name.
func (c *cluster) createPart(t testing.TB) {
	t.Helper()
	c.createFamily(t)
	ctx := context.Background()
	create := func(r schema.GroupVersionResource, namespace, kind, name string, content map[string]any) {
		obj := &unstructured.Unstructured{Object: content}
		obj.SetAPIVersion(r.GroupVersion().String())
		obj.SetKind(kind)
		obj.SetName(name)
		eventually(t, serveTimeout, "create "+name, func() error {
			_, err := c.client(r, namespace).Create(ctx, obj, metav1.CreateOptions{})
			return err
		})
	}
	core := func(resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Version: "v1", Resource: resource}
	}
	create(definitions(), "", "CustomResourceDefinition", "notes.example.com", map[string]any{"spec": map[string]any{
		"group": "example.com", "scope": "Namespaced", "names": map[string]any{"plural": "notes", "kind": "Note"},
		"versions": []any{gizmoVersion("v1", true)}}})
	create(notes(), "a", "Note", "note", map[string]any{})
	create(schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}, "",
		"StorageClass", "fast", map[string]any{"provisioner": "example.com/none"})
	create(core("persistentvolumes"), "", "PersistentVolume", "pv", map[string]any{"spec": map[string]any{
		"capacity": map[string]any{"storage": "1Gi"}, "accessModes": []any{"ReadWriteOnce"}, "storageClassName": "fast",
		"hostPath": map[string]any{"path": "/x"}, "claimRef": map[string]any{"namespace": "a", "name": "data"}}})
	create(core("persistentvolumeclaims"), "a", "PersistentVolumeClaim", "data", map[string]any{"spec": map[string]any{
		"accessModes": []any{"ReadWriteOnce"}, "storageClassName": "fast", "volumeName": "pv",
		"resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}}}})
	k := c.kubectl(t)
	for _, line := range []string{
		"create service clusterip web -n a --tcp=80:80", "create service clusterip other -n b --tcp=80:80",
		"create deployment web -n a --image=example.com/none", "create serviceaccount sa -n a",
		"create clusterrole reads --verb=get --resource=secrets",
		"create clusterrolebinding of-sa --clusterrole=reads --serviceaccount=a:sa",
	} {
		text, ok := k.run(t, strings.Fields(line)...)
		require.True(t, ok, text)
	}
}

// part returns the objects of namespace a as served, by type and name.
func (c *cluster) part(t testing.TB) map[string]unstructured.Unstructured {
	t.Helper()
	return c.inSpace(t, cropped())
}

// inSpace returns the objects of some types in namespace a, by type and name.
func (c *cluster) inSpace(t testing.TB, types []schema.GroupVersionResource) map[string]unstructured.Unstructured {
	t.Helper()
	all := map[string]unstructured.Unstructured{}
	for _, r := range types {
		eventually(t, serveTimeout, r.Resource, func() error {
			list, err := c.client(r, "a").List(context.Background(), metav1.ListOptions{})
			if err != nil {
				return err
			}
			for _, item := range list.Items {
				all[r.Resource+"/"+item.GetName()] = item
			}
			return nil
		})
	}
	return all
}

// TestCropped checks that a namespace with its needs is a snapshot that etcd restores and an API
// server serves: the same objects with UIDs, versions and times; that a garbage collector deletes
// none of them; and that the store has nothing else.
func TestCropped(t *testing.T) {
	t.Parallel()
	c := startCluster(t, filepath.Join(t.TempDir(), "live"))
	c.createPart(t)
	served, live := c.part(t), c.store.waitQuiet(t)
	require.Greater(t, len(served), 15)
	saved := c.store.save(t)
	c.stop()
	r := runMigration(t, "crop", saved, "-n", "a", "--needed")

	store := startStore(t, restoreAsIs(t, r.path))
	inside := store.records(t)
	needed := []string{"/registry/namespaces/a",
		"/registry/apiextensions.k8s.io/customresourcedefinitions/notes.example.com", "/registry/storageclasses/fast",
		"/registry/persistentvolumes/pv", "/registry/clusterroles/reads",
		"/registry/clusterrolebindings/of-sa", "/registry/ipaddresses/"}
	for key, is := range inside {
		require.Equal(t, live[key], is, key)
		belongs := strings.Contains(key, "/a/")
		for _, prefix := range needed {
			belongs = belongs || strings.HasPrefix(key, prefix)
		}
		require.True(t, belongs, key)
	}
	for key := range live {
		if strings.Contains(key, "/a/") {
			require.Contains(t, inside, key)
		}
	}
	require.NoError(t, store.Close())

	c = startCluster(t, r.restore(t))
	require.Equal(t, served, c.part(t))
	require.Empty(t, c.collect(t, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "a"))
	text, ok := c.kubectl(t).run(t, "create", "service", "clusterip", "new", "-n", "a", "--tcp=80:80")
	require.True(t, ok, text)
	services := c.part(t)
	at := func(name string) any {
		ip, _, _ := unstructured.NestedString(services["services/"+name].Object, "spec", "clusterIP")
		return ip
	}
	require.NotEmpty(t, at("new"))
	require.NotEqual(t, at("web"), at("new"))
}

// TestDivided checks that extract and purge divide a cluster: etcd restores the purged snapshot
// with all records but those of the namespace, an API server serves it, a garbage collector deletes
// nothing, and the namespace can be created again. etcd also restores the archive.
func TestDivided(t *testing.T) {
	t.Parallel()
	c := startCluster(t, filepath.Join(t.TempDir(), "live"))
	c.createPart(t)
	live := c.store.waitQuiet(t)
	saved := c.store.save(t)
	c.stop()
	archive := runMigration(t, "extract", saved, "-n", "a")
	r := runMigration(t, "purge", saved, "-n", "a", "--archive", archive.path)

	isPart := func(key string) bool { return strings.Contains(key, "/a/") || key == "/registry/namespaces/a" }
	part, rest := map[string]record{}, map[string]record{}
	for key, is := range live {
		if isPart(key) {
			part[key] = is
		} else {
			rest[key] = is
		}
	}
	require.Greater(t, len(part), 20)
	for path, want := range map[string]map[string]record{archive.path: part, r.path: rest} {
		store := startStore(t, restoreAsIs(t, path))
		require.Equal(t, want, store.records(t))
		require.NoError(t, store.Close())
	}

	c = startCluster(t, r.restore(t))
	require.Empty(t, c.part(t))
	require.Empty(t, c.collect(t, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "b"))
	k := c.kubectl(t)
	for _, line := range []string{
		"get secret two -n b", "create namespace a", "create service clusterip web -n a --tcp=80:80",
	} {
		text, ok := k.run(t, strings.Fields(line)...)
		require.True(t, ok, text)
	}
	text, ok := k.run(t, "get", "deployment", "web", "-n", "a")
	require.False(t, ok, text)
}

// secondPrefix is the --etcd-prefix of a second API server on one etcd.
const secondPrefix = "/tenant"

// sharedManifest has the objects of each of two API servers on one etcd.
const sharedManifest = `
{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"}}
{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"root","namespace":"a"},"data":{"a":"b"}}
{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"a"},"data":{"a":"Yg=="}}
{"apiVersion":"v1","kind":"Service","metadata":{"name":"np","namespace":"a"},"spec":{"type":"NodePort","ports":[{"port":80,"nodePort":30123}]}}
{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"a"},"spec":{"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"c","image":"example.com/none"}]}}}}
`

// TestRejoined checks that extract and purge split two API servers on one etcd, and that import
// joins them, below another storage prefix, too: each serves its objects with their UIDs.
func TestRejoined(t *testing.T) {
	t.Parallel()
	types := slices.DeleteFunc(cropped(), func(r schema.GroupVersionResource) bool { return r == notes() })
	second := func(s *store, prefix string) *cluster {
		return startOn(t, s, serverName(builtRelease), "--etcd-prefix="+prefix)
	}
	served := func(c *cluster) map[string]unstructured.Unstructured {
		objects := c.inSpace(t, types)
		space, err := c.client(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "").Get(
			context.Background(), "a", metav1.GetOptions{})
		require.NoError(t, err)
		objects["namespace"] = *space
		return withoutVersions(objects)
	}
	a := startCluster(t, filepath.Join(t.TempDir(), "live"))
	b := second(a.store, secondPrefix)
	a.create(t, sharedManifest)
	b.create(t, sharedManifest)
	a.store.waitQuiet(t)
	ofA, ofB := served(a), served(b)
	require.Len(t, ofB, 5)
	require.NotEqual(t, uids(ofA), uids(ofB))
	both := a.store.save(t)
	b.process.stop()
	a.stop()

	archive := extracted(t, both, "--prefix", secondPrefix)
	rest := runMigration(t, "purge", both, "--prefix", secondPrefix, "--archive", archive)
	b = second(startStore(t, restoreAsIs(t, archive)), secondPrefix)
	require.Equal(t, ofB, served(b))
	require.Zero(t, b.store.count(t, "/registry/"))
	b.stop()
	a = startCluster(t, rest.restore(t))
	require.Equal(t, ofA, served(a))
	require.Zero(t, a.store.count(t, secondPrefix+"/"))
	a.stop()

	for prefix, flags := range map[string][]string{
		secondPrefix: nil, "/tenants/b": {"--prefix", secondPrefix, "--to-prefix", "/tenants/b"},
	} {
		r, codes := imports(t, rest.path, archive, flags...)
		require.Equal(t, "written", r.Outcome, "%v", codes)
		a = startCluster(t, r.restore(t))
		b = second(a.store, prefix)
		require.Equal(t, ofA, served(a), prefix)
		require.Equal(t, ofB, served(b), prefix)
		for _, c := range []*cluster{a, b} { // each has its own allocators
			require.Contains(t, c.ranOn(t, false, "create service nodeport x -n a --tcp=80:80 --node-port=30123"),
				"provided port is already allocated")
			c.ranOn(t, true, "create service nodeport x -n a --tcp=80:80 --node-port=30124")
		}
		b.process.stop()
		a.stop()
	}
}
