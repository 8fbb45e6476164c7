package serve_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// statuses lists the status codes of reads and refusals in docs/guides/serve.md and the API
// conventions of Kubernetes.
var statuses = []int{200, 201, 301, 304, 307, 400, 401, 403, 404, 405, 406, 409, 410, 413, 414, 415, 422, 429}

// FuzzRequest checks that every request gets a documented status in time and no credential, that a
// request without the token gets nothing, and that only reviews are "created".
func FuzzRequest(f *testing.F) {
	s := start(f, leakyFile(f))
	for _, path := range []string{
		"/", "/api", "/apis", "/version", "/healthz", "/openapi/v2", "/openapi/v3/apis/apps/v1", "/metrics", "/logs/",
		"/debug/pprof/",
		"/api/v1/secrets", "/api/v1/namespaces/a/secrets/cut", "/api/v1/namespaces/a/secrets?limit=1&continue=x",
		"/api/v1/secrets?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
		"/api/v1/pods?fieldSelector=spec.nodeName%3Dx&labelSelector=a+in+(b,c)",
		"/api/v1/namespaces/a/pods/b/exec?command=sh", "/api/v1/namespaces/a/pods/b/log",
		"/api/v1/nodes/a/proxy/x", "/apis/apps/v1/namespaces/a/deployments/b/scale", "/api/v1/watch/secrets",
		"/api/v1/secrets?resourceVersion=1&resourceVersionMatch=Exact",
	} {
		f.Add("GET", path, "application/json", "")
		f.Add("GET", path, "application/json;as=Table;v=v1;g=meta.k8s.io", "")
	}
	f.Add("GET", "/api/v1/secrets", "application/vnd.kubernetes.protobuf", "")
	f.Add("GET", "/api/v1/secrets", "application/yaml, application/cbor", "")
	f.Add("POST", "/api/v1/namespaces/a/secrets", "", `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"x"}}`)
	f.Add("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "",
		`{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1",`+
			`"spec":{"resourceAttributes":{"verb":"get"}}}`)
	f.Add("PATCH", "/api/v1/namespaces/a/secrets/b", "", `[]`)
	f.Add("DELETE", "/api/v1/secrets", "", "")
	f.Fuzz(func(t *testing.T, method, path, accept, body string) {
		answer, _ := s.ask(t, method, path, accept, body, "")
		if answer == nil {
			return
		}
		require.Contains(t, []int{http.StatusUnauthorized, http.StatusMethodNotAllowed, http.StatusBadRequest},
			answer.StatusCode, "without the token")

		answer, text := s.ask(t, method, path, accept, body, token)
		if answer == nil {
			return
		}
		if answer.StatusCode == http.StatusInternalServerError { // an undecodable object
			require.Contains(t, text, "cannot be served")
		} else {
			require.Contains(t, statuses, answer.StatusCode, "%s %q: %.300q", method, path, text)
		}
		if !slices.Contains([]string{"", "GET", "HEAD"}, method) && answer.StatusCode < 300 {
			require.Contains(t, path, "review")
		}
		// otherwise the client sent the secret
		if sent := path + body + accept; !strings.Contains(sent, "hunter2") && !strings.Contains(sent, encoded[:6]) {
			require.NotContains(t, text, secret, "%s %q", method, path)
			require.NotContains(t, text, encoded, "%s %q", method, path)
		}
	})
}

// ask sends a request; the answer is nil if the request cannot be sent. A watch is read for a
// moment; all other answers must end.
func (s *served) ask(t *testing.T, method, path, accept, body, token string) (*http.Response, string) {
	t.Helper()
	patience, endless := 20*time.Second, strings.Contains(path, "watch")
	if endless {
		patience = 200 * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, s.Host+path, strings.NewReader(body))
	if err != nil || !strings.HasPrefix(path, "/") {
		return nil, ""
	}
	req.Header.Set("Content-Type", "application/json")
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	client := *s.server.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.Do(req)
	if err != nil {
		require.True(t, endless || ctx.Err() == nil, "%s %q takes too long", method, path)
		return nil, ""
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body) // for a watch, the part that arrived in time
	return resp, string(text)
}
