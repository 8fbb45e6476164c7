package serve

import (
	"context"
	"crypto/subtle"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/compatibility"
	restclient "k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/common"

	"github.com/etcdshift/etcdshift/inspect"
)

// Config configures New.
type Config struct {
	Address string            // HOST:PORT for clients
	Token   string            // required of clients; "" if the connection itself authenticates
	Secrets bool              // show credentials
	Once    bool              // a watch ends after the objects
	Brief   bool              // tables lack what kubectl does not show: managedFields, annotations, descriptions
	Report  func(line string) // called with objects that are not served; calls are serialized
}

const (
	// mostRequests bounds concurrent requests, except watches; further clients are told to retry.
	mostRequests = 100
	// longestQuestion bounds the body of a review, the only body that is read, in bytes.
	longestQuestion = 256 << 10
	// longest bounds the time of an answer, except watches: a list may be large.
	longest = 10 * time.Minute
	// minWatch is the minimal duration of a watch, unless the client asks for less.
	minWatch = 30 * time.Minute
)

// Server serves a snapshot.
type Server struct {
	http.Handler
	end func() // waits until no request reads the snapshot
}

// New returns a server of the snapshot that r reads; ctx bounds background work. The snapshot must
// not be closed before Run has returned. New returns an error for storages of kcp: only those of
// kube-apiserver are served.
func New(ctx context.Context, r *inspect.Reader, cfg Config) (*Server, error) {
	src, err := newSource(ctx, r, cfg)
	if err != nil {
		return nil, err
	}
	if _, err := Storage(src.layouts); err != nil {
		return nil, err
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	c, err := src.catalogue(ctx, scheme)
	if err != nil {
		return nil, err
	}
	codec := newCodec(scheme)
	config := genericConfig(codec, src)
	s, err := config.Complete(nil).New("etcdshift", genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, err
	}
	if err := install(s, codec, c); err != nil {
		return nil, err
	}
	docs := documents{server: s, scheme: scheme, custom: c.custom, etag: strconv.FormatInt(src.revision, 10),
		report: src.report}
	if err := docs.install(); err != nil {
		return nil, err
	}
	s.PrepareRun()
	s.RunPostStartHooks(ctx)
	return &Server{checkHost(s.Handler, cfg.Address), src.end}, nil
}

// genericConfig returns the configuration of the generic server of k8s.io/apiserver.
func genericConfig(c *codec, src *source) *genericapiserver.Config {
	// for the server's own answers, which have no CBOR
	config := genericapiserver.NewConfig(serializer.NewCodecFactory(c.scheme))
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	config.ExternalAddress = src.Address
	config.LoopbackClientConfig = &restclient.Config{Host: src.Address} // unused without a token
	config.Authentication.Authenticator = authenticator.RequestFunc(src.authenticate)
	// readOnly refuses requests other than reads
	config.Authorization.Authorizer = authorizerfactory.NewAlwaysAllowAuthorizer()
	config.EnableProfiling, config.EnableMetrics = false, false
	config.MaxRequestsInFlight, config.MaxMutatingRequestsInFlight = mostRequests, mostRequests
	config.MaxRequestBodyBytes = longestQuestion
	config.RequestTimeout, config.MinRequestTimeout = longest, int(minWatch.Seconds())
	// Documents are built later, and nothing is applied: the server needs no schemas of its own.
	config.SkipOpenAPIInstallation = true
	none := func(common.ReferenceCallback) map[string]common.OpenAPIDefinition { return nil }
	config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(none, openapi.NewDefinitionNamer())
	config.OpenAPIV3Config.IgnorePrefixes = []string{"/api", "/apis"}
	config.BuildHandlerChainFunc = func(next http.Handler, cc *genericapiserver.Config) http.Handler {
		return genericapiserver.DefaultBuildHandlerChain(src.readOnly(next, c), cc)
	}
	return config
}

// readerName is the user name of every client.
const readerName = "etcdshift:reader"

// authenticate accepts the token and returns the reader.
func (c Config) authenticate(req *http.Request) (*authenticator.Response, bool, error) {
	token, _ := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
	if c.Token != "" && subtle.ConstantTimeCompare([]byte(token), []byte(c.Token)) != 1 {
		return nil, false, nil
	}
	reader := &user.DefaultInfo{Name: readerName, Groups: []string{user.AllAuthenticated}}
	return &authenticator.Response{User: reader}, true, nil
}

// install installs all served resources.
func install(s *genericapiserver.GenericAPIServer, c *codec, found catalogue) error {
	g := groups{scheme: c.scheme, codec: c}
	if err := g.addResources(found.native); err != nil {
		return err
	}
	all := reviews(newRBAC(found.native))
	for _, gr := range slices.SortedFunc(maps.Keys(all),
		func(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) }) {
		g.add(gr.WithVersion("v1").GroupVersion(), gr.Resource, all[gr])
	}
	if err := g.install(s); err != nil {
		return err
	}
	h, err := newCustom(c, found.custom, s)
	if err != nil {
		return err
	}
	s.Handler.NonGoRestfulMux.HandlePrefix("/apis/", h)
	return nil
}

// checkHost refuses requests for another host, sent by web pages whose host name resolves to this
// machine. It also disables compression: answers seldom leave the machine.
func checkHost(next http.Handler, address string) http.Handler {
	own, _, _ := net.SplitHostPort(address)
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		host := req.Host
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
		if host = strings.Trim(host, "[]"); host != own && host != "localhost" && net.ParseIP(host) == nil {
			http.Error(w, "this host is not served here", http.StatusForbidden)
			return
		}
		w.Header().Set("X-Content-Type-Options", "nosniff") // browsers show values as text
		req.Header.Del("Accept-Encoding")
		next.ServeHTTP(w, req)
	})
}
