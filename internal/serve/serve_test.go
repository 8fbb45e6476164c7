package serve_test

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/serve"
	"github.com/etcdshift/etcdshift/snapshot"
)

const (
	token    = "made-up"
	everyKey = "../../testdata/kubectl/all.db.gz"     // each built-in kind, and a custom one
	flipped  = "../../testdata/storage/flipped.db.gz" // custom resources at two versions
	calico   = "../../testdata/calico/before.db.gz"
)

func TestMain(m *testing.M) {
	klog.SetLogger(klog.Logger{}) // like the program
	os.Exit(m.Run())
}

// served is a server of a recorded snapshot, with clients.
type served struct {
	*rest.Config
	server *httptest.Server
	source *inspect.Reader

	mu       sync.Mutex
	reported []string
}

func start(t testing.TB, path string, change ...func(*serve.Config)) *served {
	t.Helper()
	s, err := snapshot.Open(t.Context(), path, snapshot.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return startReader(t, inspect.NewReader(s, nil), change...)
}

func startReader(t testing.TB, r *inspect.Reader, change ...func(*serve.Config)) *served {
	t.Helper()
	out := &served{source: r}
	cfg := serve.Config{Address: "127.0.0.1:443", Token: token, Report: func(line string) {
		out.mu.Lock()
		defer out.mu.Unlock()
		out.reported = append(out.reported, line)
	}}
	for _, fn := range change {
		fn(&cfg)
	}
	ctx, cancel := context.WithCancel(context.Background())
	server, err := serve.New(ctx, r, cfg)
	require.NoError(t, err)
	out.server = httptest.NewUnstartedServer(server)
	out.server.Config.BaseContext = nil
	out.server.TLS = &tls.Config{NextProtos: []string{"h2", "http/1.1"}}
	out.server.StartTLS()
	t.Cleanup(func() {
		cancel()
		out.server.CloseClientConnections()
		out.server.Close()
	})
	out.Config = &rest.Config{Host: out.server.URL, BearerToken: token, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	return out
}

func secrets(c *serve.Config) { c.Secrets = true }

func (s *served) typed(t testing.TB) *kubernetes.Clientset {
	t.Helper()
	c, err := kubernetes.NewForConfig(s.Config)
	require.NoError(t, err)
	return c
}

func (s *served) dynamic(t testing.TB) *dynamic.DynamicClient {
	t.Helper()
	c, err := dynamic.NewForConfig(s.Config)
	require.NoError(t, err)
	return c
}

// resources returns the listable resources of discovery.
func (s *served) resources(t testing.TB) (all []schema.GroupVersionResource) {
	t.Helper()
	c, err := discovery.NewDiscoveryClientForConfig(s.Config)
	require.NoError(t, err)
	lists, err := c.ServerPreferredResources()
	require.NoError(t, err)
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "watch"}}, lists) {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		require.NoError(t, err)
		for _, r := range list.APIResources {
			all = append(all, gv.WithResource(r.Name))
		}
	}
	return all
}

// do sends a request with the token, and returns the answer and its body.
func (s *served) do(t testing.TB, method, path, body string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.Host+path, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
	}
	resp, err := s.server.Client().Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp, string(text)
}

func objectPath(gvr schema.GroupVersionResource) string {
	if gvr.Group == "" {
		return "/api/" + gvr.Version + "/" + gvr.Resource
	}
	return "/apis/" + gvr.Group + "/" + gvr.Version + "/" + gvr.Resource
}
