package storageversion_test

import (
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/etcdshift/etcdshift/internal/storageversion"
	"github.com/etcdshift/etcdshift/internal/test/apitest"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/internal/test/transformtest"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// The tests in server_*_test.go write with a real API server on a real etcd, migrate the snapshot
// with this package, and check the result with a real server on the restored snapshot.

const (
	group   = "demo.example.com"
	oldName = "v1alpha1"
	newName = "v1beta1"
	crdDir  = "/registry/apiextensions.k8s.io/customresourcedefinitions/"
)

// cluster is an API server on an etcd.
type cluster struct {
	etcd   *etcdtest.Server
	api    *apitest.API
	flags  []string
	broken bool // the test expects failing lists
}

func startCluster(t *testing.T, dataDir string, flags ...string) *cluster {
	t.Helper()
	if dataDir == "" {
		dataDir = filepath.Join(t.TempDir(), "new.etcd")
	}
	c := &cluster{etcd: etcdtest.Start(t, dataDir), flags: flags}
	c.api = apitest.Start(t, c.etcd.URL, flags...)
	return c
}

// restore starts a cluster on a snapshot.
func restore(t *testing.T, path string, flags ...string) *cluster {
	t.Helper()
	c := startCluster(t, etcdtest.Restore(t, path), flags...)
	c.establish(t)
	return c
}

// restart makes the storage version effective: a running server uses a new storage version only a
// moment after the answer to the update.
func (c *cluster) restart(t *testing.T) {
	t.Helper()
	c.close()
	c.api = apitest.Start(t, c.etcd.URL, c.flags...)
	c.establish(t)
}

// close begins to stop the API server, which takes a second; the end of the test waits for the
// stop, and then stops etcd.
func (c *cluster) close() { go c.api.Close() }

// save takes a snapshot.
func (c *cluster) save(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "saved.db")
	etcdtest.Save(t, c.etcd, path)
	return path
}

// establish waits until all CRDs are served.
func (c *cluster) establish(t *testing.T) {
	t.Helper()
	list, err := c.api.Extensions.ApiextensionsV1().CustomResourceDefinitions().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, crd := range list.Items {
		c.waitServed(t, &crd)
	}
}

// waitServed waits until the handler uses the CRD.
func (c *cluster) waitServed(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	for _, v := range crd.Spec.Versions {
		path := "/apis/" + crd.Spec.Group + "/" + v.Name + "/" + crd.Spec.Names.Plural + "?limit=1&timeout=2s"
		ready := func(code int) bool { return code == 200 || c.broken && code > 404 }
		if !v.Served {
			ready = func(code int) bool { return code == 404 }
		}
		require.Eventually(t, func() bool { return ready(c.status(path)) }, 30*time.Second, 20*time.Millisecond, path)
	}
}

// status returns the HTTP status of a GET; 0 without an answer.
func (c *cluster) status(path string) (code int) {
	client, err := rest.HTTPClientFor(c.api.Config)
	if err != nil {
		return 0
	}
	answer, err := client.Get(strings.TrimSuffix(c.api.Config.Host, "/") + path)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}

// crd reads a CRD.
func (c *cluster) crd(t *testing.T, name string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd, err := c.api.Extensions.ApiextensionsV1().CustomResourceDefinitions().Get(t.Context(), name,
		metav1.GetOptions{})
	require.NoError(t, err)
	return crd
}

// updateCRD changes a CRD as kubectl edit would.
func (c *cluster) updateCRD(t *testing.T, name string, change func(*apiextensionsv1.CustomResourceDefinition)) error {
	t.Helper()
	for {
		crd := c.crd(t, name)
		change(crd)
		_, err := c.api.Extensions.ApiextensionsV1().CustomResourceDefinitions().Update(t.Context(), crd,
			metav1.UpdateOptions{FieldManager: "admin"})
		if !apierrors.IsConflict(err) { // the server's controllers write its status
			return err
		}
	}
}

// dropVersion removes a version from spec.versions, and waits until the server uses the change.
func (c *cluster) dropVersion(t *testing.T, name, version string) error {
	t.Helper()
	err := c.updateCRD(t, name, withoutVersion(version))
	if err == nil {
		crd := c.crd(t, name)
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{Name: version})
		c.waitServed(t, crd)
	}
	return err
}

func withoutVersion(version string) func(*apiextensionsv1.CustomResourceDefinition) {
	return func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Versions = slices.DeleteFunc(crd.Spec.Versions,
			func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version })
	}
}

func storeAt(version string) func(*apiextensionsv1.CustomResourceDefinition) {
	return func(crd *apiextensionsv1.CustomResourceDefinition) {
		for i := range crd.Spec.Versions {
			crd.Spec.Versions[i].Storage = crd.Spec.Versions[i].Name == version
		}
	}
}

func setServed(version string, served bool) func(*apiextensionsv1.CustomResourceDefinition) {
	return func(crd *apiextensionsv1.CustomResourceDefinition) {
		for i := range crd.Spec.Versions {
			if crd.Spec.Versions[i].Name == version {
				crd.Spec.Versions[i].Served = served
			}
		}
	}
}

// client is a client for one folder of objects; namespace is "" for cluster-scoped ones.
func (c *cluster) client(plural, version, namespace string) dynamic.ResourceInterface {
	client := c.api.Dynamic.Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: plural})
	if namespace == "" {
		return client
	}
	return client.Namespace(namespace)
}

// apply is a server-side apply.
func apply(
	t *testing.T, client dynamic.ResourceInterface, manager string, obj map[string]any,
) (*unstructured.Unstructured, error) {
	t.Helper()
	u := &unstructured.Unstructured{Object: obj}
	data, err := json.Marshal(obj)
	require.NoError(t, err)
	return client.Patch(t.Context(), u.GetName(), types.ApplyPatchType, data,
		metav1.PatchOptions{FieldManager: manager})
}

// applyFails waits for a refused apply: the handler uses an update of the CRD a moment after the
// answer.
func applyFails(t *testing.T, client dynamic.ResourceInterface, manager string, obj map[string]any, why string) {
	t.Helper()
	var err error
	require.Eventually(t, func() bool {
		_, err = apply(t, client, manager, obj)
		return err != nil && strings.Contains(err.Error(), why)
	}, 30*time.Second, 20*time.Millisecond, why)
}

// object decodes JSON as a client does.
func object(t *testing.T, text string) map[string]any {
	t.Helper()
	u := &unstructured.Unstructured{}
	require.NoError(t, u.UnmarshalJSON([]byte(text)), text)
	return u.Object
}

// record returns etcd's value and revision of a key.
func (c *cluster) record(t *testing.T, key string) (value string, revision int64) {
	t.Helper()
	r, err := c.etcd.Client.Get(t.Context(), key)
	require.NoError(t, err)
	require.Len(t, r.Kvs, 1, key)
	return string(r.Kvs[0].Value), r.Kvs[0].ModRevision
}

func (c *cluster) put(t *testing.T, key, value string) {
	t.Helper()
	_, err := c.etcd.Client.Put(t.Context(), key, value)
	require.NoError(t, err)
}

// migrate runs the migration and returns its output.
func migrate(t *testing.T, in string, o storageversion.Options, allow ...string) (out string, r *transform.Report) {
	t.Helper()
	return migrateWith(t, in, transform.Options{Allow: allow}, o)
}

func migrateWith(
	t *testing.T, in string, run transform.Options, o storageversion.Options,
) (out string, r *transform.Report) {
	t.Helper()
	run.Command, run.In, run.Out = "migrate storage-versions", in, filepath.Join(t.TempDir(), "migrated.db")
	r, err := transform.Run(context.Background(), run, storageversion.New(o))
	require.NoError(t, err, "%+v", r.Problems)
	return run.Out, r
}

// values returns a snapshot's live values.
func values(t *testing.T, path string) map[string]string {
	t.Helper()
	s, err := snapshot.Open(t.Context(), path, snapshot.Config{})
	require.NoError(t, err)
	defer s.Close()
	all := map[string]string{}
	for rec, err := range s.Live(t.Context(), nil) {
		require.NoError(t, err)
		all[string(rec.Key)] = string(rec.Value)
	}
	return all
}

// resource returns the row of a CRD in the report.
func resource(t *testing.T, r *transform.Report, name string) storageversion.CustomResource {
	t.Helper()
	for _, k := range transformtest.Section[storageversion.Definitions](r).CustomResources {
		if k.CRD == name {
			return k
		}
	}
	require.Fail(t, "not in the report", name)
	return storageversion.CustomResource{}
}
