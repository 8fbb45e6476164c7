package conversion

import (
	"context"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

// TestEndsInTime checks that silence, trickling and endless answers end with the timeout, the
// context or the size limit.
func TestEndsInTime(t *testing.T) {
	release := make(chan struct{}) // the context of a request may end early
	defer close(release)
	hang := func(w http.ResponseWriter, r *http.Request) {
		readReview(r.Body)
		<-release
	}
	trickle := func(w http.ResponseWriter, r *http.Request) {
		for {
			if _, err := w.Write([]byte(" ")); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			time.Sleep(5 * time.Millisecond)
		}
	}
	for name, handler := range map[string]http.HandlerFunc{"hang": hang, "trickle": trickle} {
		s := serve(t, handler)
		start := time.Now()
		_, err := s.convert(t, 200*time.Millisecond, objects(t, 8)...)
		require.ErrorIs(t, err, ErrUnusable, name)
		require.ErrorContains(t, err, "no whole answer within 200ms", name)
		require.EqualValues(t, 1, s.calls.Load(), name)
		require.Less(t, time.Since(start), 5*time.Second, name)

		c, err := Webhook(WebhookOptions{URL: s.URL, CA: s.ca})
		require.NoError(t, err)
		for _, deadline := range []bool{false, true} {
			ctx, cancel := context.WithCancel(t.Context())
			expected := context.Canceled
			if deadline {
				ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
				expected = context.DeadlineExceeded
			} else {
				time.AfterFunc(100*time.Millisecond, cancel)
			}
			_, err = c.Convert(ctx, widgets(apiextensionsv1.WebhookClientConfig{}), "v2", objects(t, 8))
			cancel()
			require.ErrorIs(t, err, expected, name)
			require.NotErrorIs(t, err, ErrUnusable, name)
		}
	}
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for chunk := make([]byte, 1<<20); ; {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}))
	_, err := s.convert(t, 0, objects(t, 2)...)
	require.ErrorIs(t, err, ErrUnusable)
	require.ErrorContains(t, err, "the answer is longer than 1677")
}

// TestTrust checks the accepted certificates: of the given CA for the URL's host, or of the webhook
// in the CRD.
func TestTrust(t *testing.T) {
	type config = apiextensionsv1.WebhookClientConfig
	service := func(name string) *apiextensionsv1.ServiceReference {
		return &apiextensionsv1.ServiceReference{Name: name, Namespace: "system", Port: ptr.To[int32](443)}
	}
	other, _ := selfSigned(t, "other")
	s := serve(t, reviewer(func(in reviewIn) m { return good(in, nil) }), "hook.system.svc", "hook.example.com")
	for name, tc := range map[string]struct {
		ca     []byte
		config config
		want   string
	}{
		"own CA":               {s.ca, config{}, ""},
		"own CA before bundle": {s.ca, config{CABundle: other, Service: service("nobody")}, ""},
		"other CA":             {other, config{CABundle: s.ca}, "(verified with the CA given)"},
		"bundle and service":   {nil, config{CABundle: s.ca, Service: service("hook")}, ""},
		"bundle with blanks":   {nil, config{CABundle: append([]byte("\n "), s.ca...), Service: service("hook")}, ""},
		"bundle and URL":       {nil, config{CABundle: s.ca, URL: ptr.To("https://hook.example.com:8443/x")}, ""},
		"other service":        {nil, config{CABundle: s.ca, Service: service("nobody")}, "not nobody.system.svc"},
		"other host": {nil, config{CABundle: s.ca, URL: ptr.To("https://nobody.example.com/")},
			"not nobody.example.com"},
		"other bundle": {nil, config{CABundle: other, Service: service("hook")}, "Definition's caBundle)"},
		"system's roots": {nil, config{CABundle: []byte(" \n"), Service: service("hook")},
			"(verified with the system's roots)"},
	} {
		c, err := Webhook(WebhookOptions{URL: s.URL, CA: tc.ca})
		require.NoError(t, err)
		calls := s.calls.Load()
		results, err := c.Convert(t.Context(), widgets(tc.config), "v2", objects(t, 2))
		if tc.want == "" {
			require.NoError(t, err, name)
			require.NoError(t, results[0].Err, name)
		} else {
			require.ErrorIs(t, err, ErrUnusable, name)
			require.ErrorContains(t, err, tc.want, name)
			require.Equal(t, calls, s.calls.Load(), name)
		}
	}
}

// The server receives the client certificate; the CRD's path is used unless the URL has a path.
func TestClientCertificateAndPath(t *testing.T) {
	var paths, subjects []string
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paths = append(paths, r.URL.RequestURI())
		subjects = append(subjects, r.TLS.PeerCertificates[0].DNSNames...)
		reviewer(func(in reviewIn) m { return good(in, nil) })(w, r)
	}))
	cert, key := selfSigned(t, "me")
	for _, suffix := range []string{"", "/", "/own"} {
		c, err := Webhook(WebhookOptions{URL: s.URL + suffix, CA: s.ca, ClientCert: cert, ClientKey: key})
		require.NoError(t, err)
		for _, config := range []apiextensionsv1.WebhookClientConfig{
			{},
			{Service: &apiextensionsv1.ServiceReference{Path: ptr.To("/convert")}},
			{URL: ptr.To("https://x/there")},
		} {
			_, err = c.Convert(t.Context(), widgets(config), "v2", objects(t, 1))
			require.NoError(t, err)
		}
	}
	require.Equal(t, []string{"/", "/convert", "/there", "/", "/convert", "/there", "/own", "/own", "/own"}, paths)
	require.Equal(t, strings.Fields(strings.Repeat("me ", 9)), subjects)
}

func TestRefusesOptions(t *testing.T) {
	cert, key := selfSigned(t, "me")
	_, otherKey := selfSigned(t, "me")
	for _, tc := range []struct {
		options WebhookOptions
		want    string
	}{
		{WebhookOptions{}, `URL "" does not start with https://`},
		{WebhookOptions{URL: "http://localhost"},
			`conversion webhook: URL "http://localhost" does not start with https://`},
		{WebhookOptions{URL: "ftp://localhost"}, `does not start with https://`},
		{WebhookOptions{URL: "localhost:8443"}, `URL "localhost:8443" does not start with https://`},
		{WebhookOptions{URL: "127.0.0.1:8443"}, "not a URL: first path segment in URL cannot contain colon"},
		{WebhookOptions{URL: "https:host"}, "names no host"},
		{WebhookOptions{URL: "https://"}, "names no host"},
		{WebhookOptions{URL: "https:///path"}, "names no host"},
		{WebhookOptions{URL: "https://:8443"}, "names no host"},
		{WebhookOptions{URL: "https://host:"}, "has a port that is not 1 to 65535"},
		{WebhookOptions{URL: "https://host:0"}, "has a port that is not 1 to 65535"},
		{WebhookOptions{URL: "https://host:65536"}, "has a port that is not 1 to 65535"},
		{WebhookOptions{URL: "https://host:x"}, "not a URL: invalid port"},
		{WebhookOptions{URL: "https://me:hunter2@host"}, "a URL with a user name or password is not taken"},
		{WebhookOptions{URL: "https://me:hunter2@host:x"}, "not a URL"},
		{WebhookOptions{URL: "https://host/?a=b"}, "has a query or a fragment"},
		{WebhookOptions{URL: "https://host?"}, "has a query or a fragment"},
		{WebhookOptions{URL: "https://host/#"}, "has a query or a fragment"},
		{WebhookOptions{URL: "https://host\n"}, "not a URL: net/url: invalid control character in URL"},
		{WebhookOptions{URL: "https://host", CA: []byte("x")}, "CA: no certificate in PEM found"},
		{WebhookOptions{URL: "https://host", ClientCert: cert},
			"client certificate: tls: failed to find any PEM data in key input"},
		{WebhookOptions{URL: "https://host", ClientKey: key}, "tls: failed to find any PEM data in certificate input"},
		{WebhookOptions{URL: "https://host", ClientCert: cert, ClientKey: otherKey},
			"private key does not match public key"},
	} {
		c, err := Webhook(tc.options)
		require.ErrorContains(t, err, tc.want)
		require.NotContains(t, err.Error(), "hunter2")
		require.Nil(t, c)
	}
	_, err := Webhook(WebhookOptions{URL: "HTTPS://[::1]:8443/convert", CA: cert, ClientCert: cert, ClientKey: key})
	require.NoError(t, err)
}

func TestNobodyListens(t *testing.T) {
	s := serve(t, http.NotFoundHandler())
	s.Close()
	_, err := s.convert(t, 0, objects(t, 8)...)
	require.ErrorIs(t, err, ErrUnusable)
	require.ErrorContains(t, err, "connection refused")

	plain := serve(t, http.NotFoundHandler())
	c, err := Webhook(WebhookOptions{URL: strings.Replace(plain.URL, "127.0.0.1", "localhost", 1), CA: plain.ca})
	require.NoError(t, err)
	_, err = c.Convert(t.Context(), widgets(apiextensionsv1.WebhookClientConfig{}), "v2", objects(t, 8))
	require.ErrorIs(t, err, ErrUnusable)
	require.ErrorContains(t, err, "localhost")
	require.Zero(t, plain.calls.Load())
}

// settled waits until at most before goroutines run.
func settled(t testing.TB, before int) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	if left := runtime.NumGoroutine(); left > before {
		stacks := make([]byte, 1<<16)
		require.Fail(t, "goroutines are left", "%d, %d before\n%s", left, before, stacks[:runtime.Stack(stacks, true)])
	}
}
