// Package apitest provides tests with a real API server for custom resources:
// apiextensions-apiserver, in process, on an etcd of package etcdtest, and with KMS v2 plugins. The
// server has no core API and no namespaces; its client is cluster-admin. The package links the API
// server; only tests import it.
//
// Invariants:
//   - Keys are below /registry, as on a kubeadm cluster.
//   - The server ends before its etcd, which was started earlier.
//   - Two servers can run in one process, and packages can run concurrently: ports are free ports
//     and no setting is passed through the environment.
package apitest

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	servertesting "k8s.io/apiextensions-apiserver/pkg/cmd/server/testing"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

const (
	establishTimeout = 60 * time.Second
	pollInterval     = 20 * time.Millisecond
)

// API is a running API server and its clients.
type API struct {
	Config     *rest.Config        // for custom clients; without rate limit
	Dynamic    dynamic.Interface   // reads and writes custom resources
	Extensions clientset.Interface // reads and writes CustomResourceDefinitions
	Close      func()              // stops the server but not its etcd
}

// Start runs an API server on the etcd at etcdURL until the test ends. Flags are those of
// apiextensions-apiserver; feature gates are global to the process, so their tests must not be
// parallel.
func Start(t testing.TB, etcdURL string, flags ...string) *API {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "unused.kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, []byte(unusedKubeconfig), 0o600))
	server, err := servertesting.StartTestServer(t, nil, append(defaultFlags(etcdURL, kubeconfig), flags...), nil)
	require.NoError(t, err)

	api := &API{Config: rest.CopyConfig(server.ClientConfig), Close: sync.OnceFunc(server.TearDownFn)}
	t.Cleanup(api.Close)
	api.Config.QPS = -1
	api.Dynamic, err = dynamic.NewForConfig(api.Config)
	require.NoError(t, err)
	api.Extensions, err = clientset.NewForConfig(api.Config)
	require.NoError(t, err)
	return api
}

// defaultFlags returns the flags of apiextensions-apiserver's own integration fixture
// (test/integration/fixtures), without admission plugins that call a kube-apiserver.
func defaultFlags(etcdURL, kubeconfig string) []string {
	return []string{
		"--etcd-prefix=/registry",
		"--etcd-servers=" + etcdURL,
		"--authentication-skip-lookup",
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--kubeconfig=" + kubeconfig,
		"--enable-priority-and-fairness=false",
		"--disable-admission-plugins=NamespaceLifecycle,MutatingAdmissionWebhook," +
			"ValidatingAdmissionWebhook,ValidatingAdmissionPolicy,MutatingAdmissionPolicy",
	}
}

// unusedKubeconfig must parse, but no client connects to its server.
const unusedKubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: unused, cluster: {server: "http://127.1.2.3:12345"}}]
users: [{name: unused, user: {username: unused, password: unused}}]
contexts: [{name: unused, context: {cluster: unused, user: unused}}]
current-context: unused
`

// WaitEstablished waits until each CRD is Established and its served versions can be listed. (The
// server then delays the first create of a new kind by two seconds.)
func WaitEstablished(t testing.TB, api *API, crdNames ...string) {
	t.Helper()
	for _, name := range crdNames {
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			crd, err := api.Extensions.ApiextensionsV1().CustomResourceDefinitions().Get(t.Context(), name,
				metav1.GetOptions{})
			require.NoError(c, err)
			require.True(c, established(crd) && listable(t.Context(), api, crd), "status %+v", crd.Status)
		}, establishTimeout, pollInterval, "CRD %s", name)
	}
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	})
}

// listable reports whether all served versions can be listed, shortly after the condition is set.
func listable(ctx context.Context, api *API, crd *apiextensionsv1.CustomResourceDefinition) bool {
	return !slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		gvr := schema.GroupVersionResource{Group: crd.Spec.Group, Version: v.Name, Resource: crd.Spec.Names.Plural}
		if !v.Served {
			return false
		}
		_, err := api.Dynamic.Resource(gvr).List(ctx, metav1.ListOptions{Limit: 1})
		return err != nil
	})
}
