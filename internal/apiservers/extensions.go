package apiservers

import (
	"cmp"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"path/filepath"
	"runtime/debug"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apiextensions-apiserver/pkg/cmd/server/options"
	"k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/etcdshift/etcdshift/internal/sandbox"
	"github.com/etcdshift/etcdshift/internal/serve"
)

// Store describes an API server's storage in etcd.
type Store struct {
	Etcd       string `json:"etcd"`       // the endpoint, such as unix:///path
	Prefix     string `json:"prefix"`     // key prefix, as in keys.Storage
	Encryption string `json:"encryption"` // EncryptionConfiguration file, or ""
}

// prefix returns the value of --etcd-prefix.
func (s Store) prefix() string { return cmp.Or(s.Prefix, "/") }

// Serve runs an apiextensions-apiserver on a store until ctx ends or the server fails. It supports
// custom resources as a kube-apiserver does. Every client that connects has all rights; there is no
// TLS.
func (s Store) Serve(ctx context.Context, l net.Listener) error {
	config, err := s.config(l.Addr())
	if err != nil {
		return err
	}
	completed := config.Complete()
	completed.GenericConfig.EnableDiscovery = true // normally done by the aggregator
	extensions, err := completed.New(genericapiserver.NewEmptyDelegate())
	if err != nil {
		return err
	}
	prepared := extensions.GenericAPIServer.PrepareRun()
	defer prepared.Destroy()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	server := &http.Server{Handler: prepared.Handler}
	defer server.Close()
	go func() { cancel(server.Serve(l)) }()
	// does not return once started: it has no listener of its own
	go func() { cancel(prepared.RunWithContext(ctx)) }()
	<-ctx.Done()
	if cause := context.Cause(ctx); cause != ctx.Err() {
		return cause
	}
	return nil
}

// config returns the configuration of the server. Nothing is cached: a snapshot may exceed the
// memory, and an undecodable object must not fail requests for other objects.
func (s Store) config(addr net.Addr) (*apiserver.Config, error) {
	generic := genericapiserver.NewRecommendedConfig(apiserver.Codecs)
	generic.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	generic.ExternalAddress = address + ":80"
	generic.LoopbackClientConfig = clientOf(addr)
	generic.Authentication.Authenticator = authenticator.RequestFunc(anyone)
	generic.Authorization.Authorizer = authorizerfactory.NewAlwaysAllowAuthorizer()
	generic.AdmissionControl = admission.NewChainHandler()
	generic.EnableProfiling, generic.EnableMetrics = false, false
	generic.MergedResourceConfig = apiserver.DefaultAPIResourceConfigSource()
	generic.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(openapi.GetOpenAPIDefinitions,
		openapinamer.NewDefinitionNamer(apiserver.Scheme, scheme.Scheme))

	etcd := s.options()
	if err := etcd.ApplyTo(&generic.Config); err != nil {
		return nil, err
	}
	return &apiserver.Config{GenericConfig: generic, ExtraConfig: apiserver.ExtraConfig{
		CRDRESTOptionsGetter: options.NewCRDRESTOptionsGetter(*etcd, generic.ResourceTransformers,
			generic.StorageObjectCountTracker),
		ServiceResolver: webhook.NewDefaultServiceResolver(),
		AuthResolverWrapper: func(r webhook.AuthenticationInfoResolver) webhook.AuthenticationInfoResolver {
			return r
		},
	}}, nil
}

// options returns the storage options, without background work in etcd.
func (s Store) options() *genericoptions.EtcdOptions {
	codec := apiserver.Codecs.LegacyCodec(v1beta1.SchemeGroupVersion, v1.SchemeGroupVersion) // stores v1beta1
	etcd := genericoptions.NewEtcdOptions(storagebackend.NewDefaultConfig(s.prefix(), codec))
	etcd.StorageConfig.Transport.ServerList = []string{s.Etcd}
	etcd.StorageConfig.CompactionInterval = 0
	etcd.StorageConfig.CountMetricPollPeriod = 0
	etcd.StorageConfig.DBMetricPollInterval = 0
	etcd.EncryptionProviderConfigFilepath = s.Encryption
	etcd.EnableWatchCache = false
	return etcd
}

// anyone authenticates every request: access to the connection is sufficient.
func anyone(*http.Request) (*authenticator.Response, bool, error) {
	admin := &user.DefaultInfo{Name: "etcdshift:rehearsal",
		Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}}
	return &authenticator.Response{User: admin}, true, nil
}

// address is the host name of a server behind a socket; it is never resolved.
const address = "localhost"

// clientOf returns a client configuration for a server on addr without TLS.
func clientOf(addr net.Addr) *rest.Config {
	return &rest.Config{
		Host: "http://" + address, QPS: -1, WarningHandler: rest.NoWarnings{},
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, addr.Network(), addr.String())
		},
	}
}

// PartName is the name by which a sandbox starts [Part].
const PartName = "apiserver"

// partConfig is the configuration of Part.
type partConfig struct {
	Store  Store  `json:"store"`
	Socket string `json:"socket"`
}

// Part is the part started by Store.Start; sandbox.Main must have it.
func Part(ctx context.Context, config []byte) error {
	var c partConfig
	if err := json.Unmarshal(config, &c); err != nil {
		return err
	}
	// Lists produce much garbage: collecting it took a third of the CPU time.
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(1 << 30)
	l, err := net.Listen("unix", c.Socket)
	if err != nil {
		return err
	}
	return c.Store.Serve(ctx, l)
}

// Server is an API server in a sandbox.
type Server struct {
	Config *rest.Config // for clients with all rights
	*sandbox.Process
	dir      string         // of a kube-apiserver
	endpoint serve.Endpoint // of a kube-apiserver
}

// Start runs Serve as a part of a sandbox, with a socket in the sandbox's folder.
func (s Store) Start(ctx context.Context, box *sandbox.Sandbox) (*Server, error) {
	socket := filepath.Join(box.Path(), "api.sock")
	p, err := box.Start(ctx, "apiextensions-apiserver", PartName, partConfig{s, socket})
	if err != nil {
		return nil, err
	}
	return &Server{Config: clientOf(&net.UnixAddr{Net: "unix", Name: socket}), Process: p}, nil
}

// Ready calls Wait, and also ends with the server.
func (s *Server) Ready(ctx context.Context) (Serving, error) {
	ctx, cancel := s.While(ctx)
	defer cancel()
	serving, err := Wait(ctx, s.Config)
	return serving, sandbox.Explain(err, s.Process)
}
