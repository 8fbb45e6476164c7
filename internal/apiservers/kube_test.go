package apiservers

import (
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// program returns the path of a program built by "make e2e"; without it the test is skipped.
func program(t testing.TB, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../../e2e/bin", name))
	require.NoError(t, err)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("make e2e builds %s", name)
	}
	return path
}

// startKube runs a kube-apiserver until it is ready.
func startKube(t testing.TB, k Kube) (*apiServer, *Server) {
	t.Helper()
	s, err := k.Start(t.Context(), newBox(t))
	require.NoError(t, err)
	r := &apiServer{store: k.Store}
	r.serving, err = s.Ready(t.Context())
	require.NoError(t, err)
	require.Empty(t, r.serving.Unready)
	r.Interface, err = dynamic.NewForConfig(s.Config)
	require.NoError(t, err)
	return r, s
}

func (r *apiServer) create(
	t testing.TB, gvr schema.GroupVersionResource, kind, namespace, name string, more map[string]any,
) {
	t.Helper()
	more["apiVersion"], more["kind"], more["metadata"] = gvr.GroupVersion().String(), kind, map[string]any{"name": name}
	_, err := r.Resource(gvr).Namespace(namespace).Create(t.Context(), &unstructured.Unstructured{Object: more},
		metav1.CreateOptions{})
	require.NoError(t, err)
}

// dialling creates objects with an address that an API server would dial: an aggregated API and a
// webhook of each kind.
func (r *apiServer) dialling(t testing.TB, at string) {
	t.Helper()
	r.createWidgets(t, webhookAt(at), "one")
	u, err := url.Parse(at)
	require.NoError(t, err)
	port, err := strconv.ParseInt(u.Port(), 10, 64)
	require.NoError(t, err)
	r.create(t, configMaps().GroupVersion().WithResource("services"), "Service", "default", "far", map[string]any{
		"spec": map[string]any{"type": "ExternalName", "externalName": "localhost",
			"ports": []any{map[string]any{"port": port}}},
	})
	r.create(t, schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"},
		"APIService", "", "v1.far.example.com",
		map[string]any{"spec": map[string]any{
			"group": "far.example.com", "version": "v1", "groupPriorityMinimum": int64(100),
			"versionPriority": int64(100), "insecureSkipTLSVerify": true,
			"service": map[string]any{"namespace": "default", "name": "far", "port": port},
		}})
	for _, kind := range []string{"Validating", "Mutating"} {
		resource := map[string]string{"Validating": "validatingwebhookconfigurations",
			"Mutating": "mutatingwebhookconfigurations"}[kind]
		r.create(t, schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1",
			Resource: resource}, kind+"WebhookConfiguration", "", "far",
			map[string]any{"webhooks": []any{map[string]any{
				"name": "far.example.com", "clientConfig": map[string]any{"url": at + "/admit"}, "sideEffects": "None",
				"admissionReviewVersions": []any{"v1"}, "failurePolicy": "Fail",
				"rules": []any{map[string]any{"apiGroups": []any{"*"}, "apiVersions": []any{"*"},
					"resources": []any{"*"}, "operations": []any{"*"}}},
			}}})
	}
}

func configMaps() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
}

// An isolated kube-apiserver on a recorded cluster serves every version, accepts writes, and dials
// no address from the store. Without Isolate, it dials a conversion webhook.
func TestKubeDialsNothing(t *testing.T) {
	binary := program(t, "kube-apiserver")
	etcd := restored(t, "calico/before.db.gz")
	at, dialled := counting(t)
	kube := Kube{Store: Store{Etcd: unixOf(t, etcd), Prefix: "/registry"}, Binary: binary,
		Services: ServiceRange(t.Context(), etcd.Client, "/registry", nil)}
	r, s := startKube(t, kube)
	r.dialling(t, at)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		_, _ = r.Resource(widgets("v2")).List(t.Context(), metav1.ListOptions{})
		require.Positive(c, dialled.Load())
	}, time.Minute, 100*time.Millisecond)
	s.Stop(t.Context())
	require.NoError(t, s.Err())

	relay, err := NewRelay(t.Context(), nil)
	require.NoError(t, err)
	done, err := Isolate(t.Context(), etcd.Client, "/registry", nil, relay)
	require.NoError(t, err)
	require.Empty(t, done.Unreadable)
	require.Equal(t, []Webhook{{CRD: "widgets.demo.example.com"}}, done.Webhooks)
	require.Contains(t, done.Aggregated, "v1.far.example.com")
	dialled.Store(0)

	r, s = startKube(t, kube)
	require.Empty(t, r.serving.Unserved)
	for _, gvr := range r.serving.Versions {
		_, err := r.Resource(gvr).List(t.Context(), metav1.ListOptions{})
		if gvr == widgets("v2") {
			require.ErrorContains(t, err, NotChecked)
		} else {
			require.NoError(t, err, "%s", gvr)
		}
	}
	r.create(t, configMaps(), "ConfigMap", "default", "written", map[string]any{})
	nodes := schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	r.create(t, nodes, "Node", "", "far", map[string]any{"status": map[string]any{"addresses": []any{
		map[string]any{"type": "InternalIP", "address": "192.0.2.7"},
	}}})
	_, err = r.Resource(nodes).Get(t.Context(), "far", metav1.GetOptions{}, "proxy")
	require.ErrorContains(t, err, "no-cluster.sock")
	collector, err := s.Collect(t.Context(), newBox(t), program(t, "kube-controller-manager"))
	require.NoError(t, err)
	time.Sleep(5 * time.Second)
	require.NoError(t, collector.Err())
	require.Zero(t, dialled.Load())
}

// The error for a failed start of a kube-apiserver has the reason.
func TestKubeSaysWhyItEnds(t *testing.T) {
	kube := Kube{Store: Store{Etcd: "unix:///nowhere", Prefix: "/registry", Encryption: "/no-such-file"},
		Binary: program(t, "kube-apiserver")}
	_, err := kube.Start(t.Context(), newBox(t))
	require.ErrorContains(t, err, "kube-apiserver ended: exit status 1")
	require.ErrorContains(t, err, "/no-such-file")
}
