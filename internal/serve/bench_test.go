package serve_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/serve"
)

// BenchmarkList lists the resources with many objects.
func BenchmarkList(b *testing.B) {
	for name, change := range map[string]func(*serve.Config){"redacted": func(*serve.Config) {}, "secrets": secrets} {
		b.Run(name, func(b *testing.B) {
			s := start(b, everyKey, change)
			for b.Loop() {
				for _, path := range []string{"/api/v1/pods", "/apis/apps/v1/deployments",
					"/apis/rbac.authorization.k8s.io/v1/clusterroles", "/api/v1/services"} {
					req, err := http.NewRequestWithContext(b.Context(), "GET", s.Host+path, nil)
					require.NoError(b, err)
					req.Header.Set("Authorization", "Bearer "+token)
					resp, err := s.server.Client().Do(req)
					require.NoError(b, err)
					n, err := io.Copy(io.Discard, resp.Body)
					require.NoError(b, err)
					b.SetBytes(n)
					require.NoError(b, resp.Body.Close())
				}
			}
		})
	}
}
