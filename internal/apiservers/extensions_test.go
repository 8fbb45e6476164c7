package apiservers

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/etcdshift/etcdshift/internal/sandbox"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

// apiServer is a running API server on a store.
type apiServer struct {
	etcd    *clientv3.Client
	store   Store
	serving Serving
	dynamic.Interface
}

// restored runs etcd on a recorded snapshot.
func restored(t testing.TB, name string) *etcdtest.Server {
	t.Helper()
	packed, err := os.Open(filepath.Join("../../testdata", name))
	require.NoError(t, err)
	defer packed.Close()
	plain, err := gzip.NewReader(packed)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "snapshot.db")
	etcdtest.WriteNew(t, path, plain)
	return etcdtest.Start(t, etcdtest.Restore(t, path))
}

// unixOf returns a unix endpoint for an etcd.
func unixOf(t testing.TB, etcd *etcdtest.Server) string {
	t.Helper()
	l, err := net.Listen("unix", socket(t))
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", strings.TrimPrefix(etcd.URL, "http://"))
			if err != nil {
				_ = in.Close()
				continue
			}
			go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
			go func() { _, _ = io.Copy(in, out); _ = in.Close() }()
		}
	}()
	return "unix://" + l.Addr().String()
}

// socket returns a short path, because the path of a test folder is too long for a socket.
func socket(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "s")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// start serves a store until the test ends, and waits for readiness.
func start(t testing.TB, etcd *etcdtest.Server, store Store) *apiServer {
	t.Helper()
	store.Etcd = unixOf(t, etcd)
	l, err := net.Listen("unix", socket(t))
	require.NoError(t, err)
	r := &apiServer{etcd: etcd.Client, store: store}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- store.Serve(ctx, l) }()
	t.Cleanup(func() {
		if len(r.serving.Unready) > 0 {
			return // the library exits the process if stopped before readiness
		}
		cancel()
		require.NoError(t, <-ended)
	})
	r.serving, err = Wait(t.Context(), clientOf(l.Addr()))
	require.NoError(t, err)
	r.Interface, err = dynamic.NewForConfig(clientOf(l.Addr()))
	require.NoError(t, err)
	return r
}

// Each custom resource of a recorded cluster is listed at every served version of its CRD.
func TestListsRecordedClusters(t *testing.T) {
	total := 0
	for _, name := range []string{"storage/flipped.db.gz", "calico/before.db.gz", "calico/after.db.gz"} {
		r := start(t, restored(t, name), Store{Prefix: "/registry"})
		require.Empty(t, r.serving.Unserved, name)
		require.Empty(t, r.serving.Unready, name)
		require.NotEmpty(t, r.serving.Versions, name)
		for _, gvr := range r.serving.Versions {
			list, err := r.Resource(gvr).List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err, "%s: %s", name, gvr)
			stored, err := r.etcd.Get(t.Context(), "/registry/"+gvr.Group+"/"+gvr.Resource+"/", clientv3.WithPrefix(),
				clientv3.WithCountOnly())
			require.NoError(t, err)
			require.Len(t, list.Items, int(stored.Count), "%s: %s", name, gvr)
			total += len(list.Items)
		}
	}
	require.Greater(t, total, 100)
}

// Dry runs of an empty apply and of an update without changes succeed and write nothing.
func TestAnswersDryRuns(t *testing.T) {
	r := start(t, restored(t, "storage/flipped.db.gz"), Store{Prefix: "/registry"})
	list, err := r.Resource(widgets("v1beta1")).List(t.Context(), metav1.ListOptions{Limit: 1})
	require.NoError(t, err)
	w := list.Items[0]
	before, err := r.etcd.Get(t.Context(), "\x00", clientv3.WithFromKey(), clientv3.WithCountOnly())
	require.NoError(t, err)

	in := r.Resource(widgets("v1beta1")).Namespace(w.GetNamespace())
	_, err = in.Update(t.Context(), &w, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
	require.NoError(t, err)
	empty := &unstructured.Unstructured{}
	empty.SetAPIVersion(w.GetAPIVersion())
	empty.SetKind(w.GetKind())
	text, err := empty.MarshalJSON()
	require.NoError(t, err)
	_, err = in.Patch(t.Context(), w.GetName(), types.ApplyPatchType, text,
		metav1.PatchOptions{FieldManager: "test", DryRun: []string{metav1.DryRunAll}})
	require.NoError(t, err)

	after, err := r.etcd.Get(t.Context(), "\x00", clientv3.WithFromKey(), clientv3.WithCountOnly())
	require.NoError(t, err)
	require.Equal(t, before.Header.Revision, after.Header.Revision)
}

// Values are encrypted and decrypted with the configuration, below a custom prefix.
func TestDecryptsBelowAPrefix(t *testing.T) {
	etcd := etcdtest.Start(t, filepath.Join(t.TempDir(), "api.etcd"))
	store := Store{Prefix: "/some/where", Encryption: encryptionConfig(t)}
	start(t, etcd, store).createWidgets(t, nil, "one", "two")
	for _, key := range []string{"/some/where/demo.example.com/widgets/one",
		"/some/where/apiextensions.k8s.io/customresourcedefinitions/widgets.demo.example.com"} {
		got, err := etcd.Client.Get(t.Context(), key)
		require.NoError(t, err)
		require.Len(t, got.Kvs, 1, key)
		require.Contains(t, string(got.Kvs[0].Value), "k8s:enc:secretbox:v1:a:", key)
	}

	list, err := start(t, etcd, store).Resource(widgets("v2")).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 2)
}

// An undecodable CRD is reported, and the wait ends.
func TestSaysWhatIsNotServed(t *testing.T) {
	etcd := etcdtest.Start(t, filepath.Join(t.TempDir(), "api.etcd"))
	r := start(t, etcd, Store{Prefix: "/registry"})
	r.createWidgets(t, nil, "one")
	r.etcd.Put(t.Context(), "/registry/apiextensions.k8s.io/customresourcedefinitions/bad.example.com",
		`{"kind":"Custom`)
	r = start(t, etcd, Store{Prefix: "/registry"})
	require.Empty(t, r.serving.Versions)
	require.Len(t, r.serving.Unready, 1)
	require.Contains(t, r.serving.Unready[0], "CustomResourceDefinitions: ")
}

// A wait ends with its context, and the error names the missing condition.
func TestWaitEndsWithTheServer(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	context.AfterFunc(t.Context(), func() { cancel(nil) })
	died := errors.New("the server has died")
	time.AfterFunc(200*time.Millisecond, func() { cancel(died) })
	_, err := Wait(ctx, clientOf(&net.UnixAddr{Net: "unix", Name: socket(t)}))
	require.ErrorIs(t, err, died)
	require.ErrorContains(t, err, "no such file")
}

// encryptionConfig writes an EncryptionConfiguration for every resource.
func encryptionConfig(t testing.TB) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "encryption.yaml")
	require.NoError(t, os.WriteFile(path, []byte(`apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources: [{resources: ['*.*'], providers: [{secretbox: {keys: [{name: a, secret: YWJjZGVmZ2hpamtsbW5vcGFiY2RlZmdoaWprbG1ub3A=}]}}, {identity: {}}]}]
`), 0o600))
	return path
}

func widgets(version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "demo.example.com", Version: version, Resource: "widgets"}
}

// createWidgets creates a CRD with the served versions v1 (stored) and v2, and objects.
func (r *apiServer) createWidgets(t testing.TB, conversion map[string]any, names ...string) {
	t.Helper()
	versions := make([]any, 2)
	for i, name := range []string{"v1", "v2"} {
		versions[i] = map[string]any{"name": name, "served": true, "storage": i == 0, "schema": map[string]any{
			"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
		}}
	}
	spec := map[string]any{
		"group": "demo.example.com", "scope": "Cluster", "names": map[string]any{"plural": "widgets", "kind": "Widget"},
		"versions": versions,
	}
	if conversion != nil {
		spec["conversion"] = conversion
	}
	crds := r.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))
	_, err := crds.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "widgets.demo.example.com"}, "spec": spec,
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	for _, name := range names {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "demo.example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": name},
			"size": int64(3),
		}}
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			_, err := r.Resource(widgets("v1")).Create(t.Context(), object, metav1.CreateOptions{})
			require.NoError(c, err)
		}, time.Minute, 100*time.Millisecond)
	}
}

func TestMain(m *testing.M) {
	if code, isPart := sandbox.Main(map[string]sandbox.Part{PartName: Part}, os.Args, os.Stdin, os.Stderr); isPart {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

func newBox(t testing.TB) *sandbox.Sandbox {
	t.Helper()
	box, err := sandbox.New("", 0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, box.Close()) })
	return box
}

// A server in a sandbox becomes ready, and a wait for the server ends when it dies.
func TestPart(t *testing.T) {
	etcd := restored(t, "storage/flipped.db.gz")
	s, err := Store{Etcd: unixOf(t, etcd), Prefix: "/registry"}.Start(t.Context(), newBox(t))
	require.NoError(t, err)
	serving, err := s.Ready(t.Context())
	require.NoError(t, err)
	require.Len(t, serving.Versions, 2)
	s.Stop(t.Context())
	require.NoError(t, s.Err())
	_, err = s.Ready(t.Context())
	require.Error(t, err)

	bad := filepath.Join(t.TempDir(), "no-such-file")
	s, err = Store{Etcd: unixOf(t, etcd), Prefix: "/registry", Encryption: bad}.Start(t.Context(), newBox(t))
	require.NoError(t, err)
	_, err = s.Ready(t.Context())
	require.ErrorContains(t, err, "apiextensions-apiserver ended: exit status 1: ")
	require.ErrorContains(t, err, bad+": no such file or directory")
}
