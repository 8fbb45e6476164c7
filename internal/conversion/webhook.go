package conversion

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// idleTimeout closes idle connections between batches, before the server closes them without
// notice.
const idleTimeout = 10 * time.Second

// maxHeader bounds the headers of an answer, in bytes.
const maxHeader = 1 << 20

// WebhookOptions are the options of Webhook.
type WebhookOptions struct {
	// URL is the present address of the webhook, instead of the CRD's: https://HOST[:PORT][/PATH].
	// Without a path (or with "/") the path of each CRD is used.
	URL string
	// CA, PEM, verifies the webhook's certificate for the host in URL. Without CA the webhook must
	// prove its identity as to an API server: with a certificate of the caBundle (or of the
	// system's roots) for NAME.NAMESPACE.svc of the service, or for the host of the CRD's URL.
	CA []byte
	// ClientCert and ClientKey, PEM, authenticate the client; both or neither.
	ClientCert, ClientKey []byte
	// Timeout limits one call, from connecting to the last byte; 0 means 30 s, as in an API server.
	Timeout time.Duration
}

// Webhook returns a Converter for an HTTPS server. Webhook checks only the options.
func Webhook(o WebhookOptions) (*Converter, error) {
	u, err := checkURL(o.URL)
	if err != nil {
		return nil, fmt.Errorf("conversion webhook: %w", err)
	}
	w := &hook{url: u, transports: make(map[trust]*http.Transport)}
	if len(o.CA) > 0 {
		if w.roots, err = pool(o.CA); err != nil {
			return nil, fmt.Errorf("conversion webhook %s: CA: %w", u, err)
		}
	}
	if len(o.ClientCert) > 0 || len(o.ClientKey) > 0 {
		// The errors of X509KeyPair quote no PEM block.
		cert, err := tls.X509KeyPair(o.ClientCert, o.ClientKey)
		if err != nil {
			return nil, fmt.Errorf("conversion webhook %s: client certificate: %w", u, err)
		}
		w.certs = []tls.Certificate{cert}
	}
	return &Converter{name: u.String(), timeout: o.Timeout, at: w.at}, nil
}

// checkURL accepts the URLs that a CRD may have for its webhook
// (k8s.io/apiserver/pkg/util/webhook/validation.go, ValidateWebhookURL). Errors quote no password.
func checkURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	var parse *url.Error
	switch {
	case errors.As(err, &parse) && strings.Contains(text, "@"):
		return nil, errors.New("not a URL")
	case errors.As(err, &parse): // url.Parse returns all errors in this type
		return nil, fmt.Errorf("not a URL: %w", parse.Err)
	case u.User != nil:
		return nil, errors.New("a URL with a user name or password is not taken")
	case u.Scheme != "https":
		return nil, fmt.Errorf("URL %q does not start with https://", text)
	case u.Opaque != "" || u.Hostname() == "":
		return nil, fmt.Errorf("URL %q names no host", text)
	case u.RawQuery != "" || u.ForceQuery || strings.Contains(text, "#"):
		return nil, fmt.Errorf("URL %q has a query or a fragment", text)
	}
	if port := u.Port(); port != "" || strings.HasSuffix(u.Host, ":") {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, fmt.Errorf("URL %q has a port that is not 1 to 65535", text)
		}
	}
	return u, nil
}

func pool(pem []byte) (*x509.CertPool, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, errors.New("no certificate in PEM found")
	}
	return roots, nil
}

// hook is the webhook of an endpoint.
type hook struct {
	url        *url.URL
	roots      *x509.CertPool // of WebhookOptions.CA
	certs      []tls.Certificate
	transports map[trust]*http.Transport
}

// trust is the expected certificate of a connection.
type trust struct{ bundle, serverName string }

func (h *hook) at(crd *apiextensionsv1.CustomResourceDefinition) (endpoint, error) {
	path, serverName, bundle := "", "", ""
	if config := crd.Spec.Conversion.Webhook.ClientConfig; config != nil {
		bundle = strings.TrimSpace(string(config.CABundle)) // blank means none, as in a server
		switch {
		case config.Service != nil:
			serverName = config.Service.Name + "." + config.Service.Namespace + ".svc"
			if config.Service.Path != nil {
				path = *config.Service.Path
			}
		case config.URL != nil:
			own, err := url.Parse(*config.URL)
			if err != nil {
				return endpoint{}, fmt.Errorf("%s: clientConfig.url is not a URL", crd.Name)
			}
			path, serverName = own.Path, own.Hostname()
		}
	}
	there := *h.url
	if strings.Trim(there.Path, "/") == "" {
		there.Path, there.RawPath = path, ""
	}
	against := "the system's roots"
	switch {
	case h.roots != nil:
		bundle, serverName, against = "", h.url.Hostname(), "the CA given"
	case bundle != "":
		against = "the CustomResourceDefinition's caBundle"
	}
	transport, err := h.transport(trust{bundle, serverName})
	if err != nil {
		return endpoint{}, fmt.Errorf("%s: caBundle: %w", crd.Name, err)
	}
	return endpoint{url: there.String(), send: func(req *http.Request, limit int64) (answer, error) {
		return post(transport, req, limit, against)
	}}, nil
}

func (h *hook) transport(t trust) (*http.Transport, error) {
	if transport, ok := h.transports[t]; ok {
		return transport, nil
	}
	roots := h.roots
	if t.bundle != "" {
		var err error
		if roots, err = pool([]byte(t.bundle)); err != nil {
			return nil, err
		}
	}
	transport := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment, // as in client-go; never for a loopback address
		TLSClientConfig:        &tls.Config{RootCAs: roots, ServerName: t.serverName, Certificates: h.certs},
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeader,
	}
	h.transports[t] = transport
	return transport, nil
}

// post sends the request and reads the answer. A failure before a connection with a verified
// certificate is not about the objects. against names the roots.
func post(transport *http.Transport, req *http.Request, limit int64, against string) (answer, error) {
	var connected atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}
	ctx := httptrace.WithClientTrace(req.Context(), trace)
	resp, err := transport.RoundTrip(req.WithContext(ctx))
	var untrusted *tls.CertificateVerificationError
	if errors.As(err, &untrusted) {
		return answer{}, failed(broken, "%s (verified with %s)", err, against)
	}
	if err != nil && !connected.Load() {
		return answer{}, failed(broken, "%s", err)
	}
	if err != nil {
		return answer{}, failed(garbled, "connection lost before an answer: %s", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode < http.StatusOK || resp.StatusCode > http.StatusPartialContent {
		return answer{}, rejected(ctx, resp)
	}
	body := &bounded{limit: limit}
	switch _, err := io.Copy(body, resp.Body); {
	case body.over:
		return answer{}, tooLong(limit)
	case err != nil:
		return answer{}, failed(garbled, "connection lost in the middle of an answer: %s", err)
	}
	return answer{contentType: resp.Header.Get("Content-Type"), body: body.data.Bytes()}, nil
}

// rejected returns the error for another HTTP status, with the text of a text/plain answer.
func rejected(ctx context.Context, resp *http.Response) error {
	status := fmt.Sprintf("answered HTTP status %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		return failed(broken, "%s, and a redirect is not followed", status)
	}
	said := ""
	if mediaType, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err == nil &&
		mediaType == "text/plain" {
		text, err := io.ReadAll(io.LimitReader(resp.Body, maxSaid))
		if err != nil && ctx.Err() != nil {
			return err
		}
		said = ": " + string(text)
	}
	return failed(garbled, "%s%s", strings.TrimSpace(status), said)
}
