package apiservers

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/etcdshift/etcdshift/internal/sandbox"
	"github.com/etcdshift/etcdshift/internal/serve"
)

// portTries is the maximum number of starts of a kube-apiserver whose port is taken.
const portTries = 3

// Kube is the user's kube-apiserver, of any release.
type Kube struct {
	Store
	Binary   string
	Services string // --service-cluster-ip-range, from ServiceRange; "" for a default
}

// Start runs the kube-apiserver in a sandbox until it answers; Server.Ready waits for readiness.
func (k Kube) Start(ctx context.Context, box *sandbox.Sandbox) (*Server, error) {
	token := rand.Text()
	dir, err := k.prepare(box, token)
	if err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		name := "kube-apiserver" + strings.Repeat("+", try-1)
		s := &Server{dir: dir}
		if s.Process, err = box.Command(ctx, name, k.Binary,
			append(k.flags(dir), "--secure-port="+port)...); err != nil {
			return nil, err
		}
		err = s.Until(ctx, func(context.Context) error { return s.connect(token, "127.0.0.1:"+port) })
		if err == nil {
			return s, nil
		}
		if try == portTries || !portTaken(err) {
			return nil, err
		}
	}
}

// prepare writes the server's files in the sandbox.
func (k Kube) prepare(box *sandbox.Sandbox, token string) (dir string, err error) {
	dir = filepath.Join(box.Path(), "kube-apiserver")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	der, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return "", err
	}
	return dir, errors.Join(
		os.WriteFile(filepath.Join(dir, "tokens.csv"),
			[]byte(token+`,etcdshift:rehearsal,etcdshift:rehearsal,"system:masters"`+"\n"), 0o600),
		os.WriteFile(filepath.Join(dir, "egress.yaml"), egress(dir), 0o600),
		os.WriteFile(filepath.Join(dir, "sa.key"), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}),
			0o600),
	)
}

// egress redirects connections to kubelets, Pods and Services, as for "kubectl logs", to a socket
// without a listener: addresses in the snapshot may belong to live machines.
func egress(dir string) []byte {
	return fmt.Appendf(nil, `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection: {proxyProtocol: HTTPConnect, transport: {uds: {udsName: %q}}}
`, filepath.Join(dir, "no-cluster.sock"))
}

// flags returns the minimal flags of a kube-apiserver. It calls no webhook and cannot be
// discovered: the advertised address is in TEST-NET, and its endpoint is not written.
func (k Kube) flags(dir string) []string {
	key := filepath.Join(dir, "sa.key")
	flags := []string{
		"--etcd-servers=" + k.Etcd, "--etcd-prefix=" + k.prefix(),
		"--etcd-compaction-interval=0", "--etcd-count-metric-poll-period=0", "--watch-cache=false",
		"--bind-address=127.0.0.1", "--advertise-address=192.0.2.1", "--endpoint-reconciler-type=none",
		"--egress-selector-config-file=" + filepath.Join(dir, "egress.yaml"), "--cert-dir=" + dir,
		"--allow-privileged=true", "--anonymous-auth=false", "--profiling=false",
		"--token-auth-file=" + filepath.Join(dir, "tokens.csv"), "--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + key, "--service-account-signing-key-file=" + key,
		"--service-cluster-ip-range=" + cmp.Or(k.Services, "10.96.0.0/16"),
		"--disable-admission-plugins=MutatingAdmissionWebhook,ValidatingAdmissionWebhook",
	}
	if k.Encryption != "" {
		flags = append(flags, "--encryption-provider-config="+k.Encryption)
	}
	return flags
}

// connect configures clients once the server answers at the address with its own certificate.
func (s *Server) connect(token, address string) error {
	certificate, err := os.ReadFile(filepath.Join(s.dir, "apiserver.crt"))
	if err != nil {
		return err
	}
	s.endpoint = serve.Endpoint{Name: "rehearsal", Address: address,
		Credentials: &serve.Credentials{Token: token, Certificate: certificate}}
	s.Config = &rest.Config{
		Host: "https://" + address, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: certificate},
		QPS: -1, WarningHandler: rest.NoWarnings{},
	}
	client, err := discovery.NewDiscoveryClientForConfig(s.Config)
	if err != nil {
		return err // the certificate is incomplete
	}
	_, err = client.ServerVersion()
	return err
}

// Collect starts only the garbage collector of a kube-controller-manager.
func (s *Server) Collect(ctx context.Context, box *sandbox.Sandbox, binary string) (*sandbox.Process, error) {
	kubeconfig, err := serve.Kubeconfig([]serve.Endpoint{s.endpoint})
	if err != nil {
		return nil, err
	}
	path := filepath.Join(s.dir, "kubeconfig")
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		return nil, err
	}
	return box.Command(ctx, "kube-controller-manager", binary, "--kubeconfig="+path,
		"--controllers=garbage-collector-controller", "--leader-elect=false", "--secure-port=0", "--v=2")
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}

// portTaken reports whether a server died because its port was taken.
func portTaken(err error) bool {
	var died *sandbox.Died
	return errors.As(err, &died) && slices.ContainsFunc(died.Log,
		func(line string) bool { return strings.Contains(line, "address already in use") })
}
