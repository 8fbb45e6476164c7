package collect

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// tool is a program that "make e2e" builds. Without it the test is skipped.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "..", "e2e", "bin", name))
	require.NoError(t, err)
	if _, err := os.Stat(path); err != nil {
		t.Skip("make e2e builds " + path)
	}
	return path
}

// program is a running program.
type program struct {
	done chan struct{}
	err  error
}

func (p *program) Done() <-chan struct{} { return p.done }
func (p *program) Err() error            { return p.err }

// start runs a program until the test ends.
func start(t *testing.T, name string, args ...string) *program {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), name+".log"))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, tool(t, name), args...)
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(t, cmd.Start())
	p := &program{done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		cancel()
		<-p.done
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("%s: %s", name, text[max(0, len(text)-4000):])
		}
	})
	return p
}

// startServer runs a kube-apiserver on an etcd.
func startServer(t *testing.T, etcd string) *rest.Config {
	t.Helper()
	dir := t.TempDir()
	file := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, content, 0o600))
		return path
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalECPrivateKey(private)
	require.NoError(t, err)
	token := rand.Text()
	key := file("sa.key", pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, l.Close())
	server := start(t, "kube-apiserver", "--etcd-servers="+etcd, "--bind-address=127.0.0.1", "--secure-port="+port,
		"--advertise-address=192.0.2.1", "--endpoint-reconciler-type=none", "--cert-dir="+dir, "--authorization-mode=RBAC",
		"--token-auth-file="+file("tokens", []byte(token+`,admin,admin,"system:masters"`)), "--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+key, "--service-account-signing-key-file="+key, "--service-cluster-ip-range=10.96.0.0/16",
		"--watch-cache=false") // with it, the server waits a minute for the cache of a kind that cannot be read
	config := &rest.Config{Host: "https://127.0.0.1:" + port, BearerToken: token, QPS: -1, WarningHandler: rest.NoWarnings{},
		TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(dir, "apiserver.crt")}}
	require.Eventually(t, func() bool {
		select {
		case <-server.Done():
			t.Errorf("kube-apiserver: %v", server.Err())
			return true
		default:
		}
		client, err := discovery.NewDiscoveryClientForConfig(config)
		if err != nil {
			return false // no certificate yet
		}
		_, err = client.RESTClient().Get().AbsPath("/readyz").DoRaw(t.Context())
		return err == nil
	}, 3*time.Minute, 200*time.Millisecond)
	return config
}

// startCollector runs the garbage collector of a kube-controller-manager.
func startCollector(t *testing.T, of *rest.Config) Process {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["a"] = &clientcmdapi.Cluster{Server: of.Host, CertificateAuthority: of.CAFile}
	config.AuthInfos["a"] = &clientcmdapi.AuthInfo{Token: of.BearerToken}
	config.Contexts["a"] = &clientcmdapi.Context{Cluster: "a", AuthInfo: "a"}
	config.CurrentContext = "a"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, path))
	return start(t, "kube-controller-manager", "--kubeconfig="+path, "--controllers=garbage-collector-controller", "--leader-elect=false", "--secure-port=0")
}
