package cli

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"k8s.io/client-go/rest"

	"github.com/etcdshift/etcdshift/internal/render"
	"github.com/etcdshift/etcdshift/internal/serve"
)

// hold makes an API server available to kubectl until the user interrupts, through a loopback
// address with TLS and its own token.
func hold(ctx context.Context, c *cli.Context, api *rest.Config) (err error) {
	credentials, err := serve.NewCredentials("127.0.0.1")
	if err != nil {
		return err
	}
	proxy, err := newProxy(api, credentials.Token)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: proxy, ReadHeaderTimeout: 10 * time.Second}
	defer server.Close()
	path := c.String("kubeconfig")
	written, err := writeKubeconfig(path, serve.Endpoint{Name: "rehearsal", Address: l.Addr().String(),
		Credentials: credentials})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, warnReplaced(c, path, written.Remove())) }()
	fmt.Fprintf(c.App.ErrWriter, "until Ctrl-C: kubectl --kubeconfig %s get namespaces\n", render.Printable(path))
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(credentials.Listener(l)) }()
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	}
}

// newProxy returns a handler that forwards requests with the token to an API server, as its
// administrator.
func newProxy(api *rest.Config, token string) (http.Handler, error) {
	transport, err := rest.TransportFor(api)
	if err != nil {
		return nil, err
	}
	to, err := url.Parse(api.Host)
	if err != nil {
		return nil, err
	}
	proxy := &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Header.Del("Authorization")
	}}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		given, _ := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
		if subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1 {
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		}
		proxy.ServeHTTP(w, req)
	}), nil
}
