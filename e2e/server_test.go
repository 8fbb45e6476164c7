package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

const adminToken = "admin-of-a-throw-away-cluster"

// cluster is a running etcd with a kube-apiserver, and clients with all rights.
type cluster struct {
	store     *store
	config    *rest.Config
	objects   dynamic.Interface
	metadata  metadata.Interface
	discovery *discovery.DiscoveryClient
	process   *process
	unready   error // the last answer of readyz, which names failed checks
}

// startCluster runs etcd and kube-apiserver, with additional flags, on a restored data directory.
func startCluster(t testing.TB, dataDir string, more ...string) *cluster {
	t.Helper()
	return startServer(t, serverName(builtRelease), dataDir, more...)
}

// startServer is startCluster for a kube-apiserver by its name in bin.
func startServer(t testing.TB, name, dataDir string, more ...string) *cluster {
	t.Helper()
	return startOn(t, startStore(t, dataDir), name, more...)
}

// startOn is startServer for a running etcd.
func startOn(t testing.TB, s *store, name string, more ...string) *cluster {
	t.Helper()
	c := &cluster{store: s}
	dir := t.TempDir()
	flags := append(serverFlags(t, dir, c.store.url), more...)
	defer func() {
		if c.unready != nil {
			t.Logf("%s is not ready: %v", name, c.unready)
		}
	}()
	c.process, _ = startReady(t, name, func(port string) bool { return c.connect(t, dir, port) },
		func(port string) []string { return append(flags, "--secure-port="+port) })
	return c
}

// stop ends first the API server, then etcd; the data directory is complete afterwards.
func (c *cluster) stop() {
	c.process.stop()
	_ = c.store.Close()
	c.store.process.stop()
}

// serverFlags returns the minimal flags of a kube-apiserver; admission and feature gates have their
// defaults. The advertised address is in TEST-NET: the machine may have no network.
func serverFlags(t testing.TB, dir, etcd string) []string {
	t.Helper()
	tokens, key := filepath.Join(dir, "tokens.csv"), filepath.Join(dir, "sa.key")
	require.NoError(t, os.WriteFile(tokens, []byte(adminToken+`,admin,admin,"system:masters"`+"\n"), 0o600))
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalECPrivateKey(private)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600))
	return []string{
		"--etcd-servers=" + etcd,
		"--bind-address=127.0.0.1", "--advertise-address=192.0.2.1", "--endpoint-reconciler-type=none",
		"--cert-dir=" + dir, "--allow-privileged=true",
		"--token-auth-file=" + tokens, "--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + key, "--service-account-signing-key-file=" + key,
		"--service-cluster-ip-range=10.96.0.0/16",
	}
}

// connect creates the clients and reports whether the server is ready.
func (c *cluster) connect(t testing.TB, dir, port string) bool {
	t.Helper()
	path := filepath.Join(dir, "apiserver.crt") // created by the server
	certificate, err := os.ReadFile(path)
	if err != nil || len(certificate) == 0 {
		return false
	}
	c.config = &rest.Config{
		Host: "https://127.0.0.1:" + port, BearerToken: adminToken,
		// clients of the path alone would keep what the server had written when the first one began
		TLSClientConfig: rest.TLSClientConfig{CAFile: path, CAData: certificate},
		QPS:             -1, WarningHandler: rest.NoWarnings{},
	}
	c.discovery, err = discovery.NewDiscoveryClientForConfig(c.config)
	if err != nil {
		return false // the certificate is incomplete
	}
	_, c.unready = c.discovery.RESTClient().Get().AbsPath("/readyz").DoRaw(context.Background())
	if c.unready != nil {
		return false
	}
	c.objects, err = dynamic.NewForConfig(c.config)
	require.NoError(t, err)
	c.metadata, err = metadata.NewForConfig(c.config)
	require.NoError(t, err)
	return true
}

// client returns a client for the objects of one namespace, or for cluster-scoped objects.
func (c *cluster) client(r schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return c.objects.Resource(r)
	}
	return c.objects.Resource(r).Namespace(namespace)
}
