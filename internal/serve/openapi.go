package serve

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	builder2 "k8s.io/kube-openapi/pkg/builder"
	"k8s.io/kube-openapi/pkg/builder3"
	"k8s.io/kube-openapi/pkg/cached"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/common/restfuladapter"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// documents builds the OpenAPI documents of a server. Each is built at its first request: most
// clients request none, and documents of many definitions are large.
type documents struct {
	server *genericapiserver.GenericAPIServer
	scheme *runtime.Scheme
	custom []*resource
	etag   string
	report func(*unreadable) // called for a definition missing in its document
}

// install serves the paths below /openapi/.
func (d *documents) install() error {
	v3 := handler3.NewOpenAPIService()
	mux := d.server.Handler.NonGoRestfulMux
	if err := v3.RegisterOpenAPIV3VersionedService("/openapi/v3", knownPaths{mux}); err != nil {
		return err
	}
	config := cached.Once(cached.Func(func() (*common.OpenAPIV3Config, string, error) {
		return genericapiserver.DefaultOpenAPIV3Config(definitions(d.scheme), openapi.NewDefinitionNamer(d.scheme)),
			d.etag, nil
	}))
	for i, ws := range d.server.Handler.GoRestfulContainer.RegisteredWebServices() {
		path := strings.TrimPrefix(ws.RootPath(), "/")
		v3.UpdateGroupVersionLazy(path, cached.Once(cached.Func(func() (*spec3.OpenAPI, string, error) {
			c, _, err := config.Get()
			if err != nil {
				return nil, "", err
			}
			services := d.server.Handler.GoRestfulContainer.RegisteredWebServices()
			document, err := builder3.BuildOpenAPISpecFromRoutes(restfuladapter.AdaptWebServices(services[i:i+1]),
				ownExtensions(c))
			return document, d.etag + path, err
		})))
	}
	for path, versions := range d.customVersions() {
		v3.UpdateGroupVersionLazy(path, cached.Once(cached.Func(func() (*spec3.OpenAPI, string, error) {
			document, err := d.customV3(versions)
			return document, d.etag + path, err
		})))
	}
	handler.NewOpenAPIServiceLazy(cached.Once(cached.Func(d.v2))).RegisterOpenAPIVersionedService("/openapi/v2", mux)
	return nil
}

// knownPaths answers requests for missing documents with 404: the handler of kube-openapi writes
// nothing.
type knownPaths struct {
	common.PathHandlerByGroupVersion
}

// HandlePrefix registers a handler of documents.
func (k knownPaths) HandlePrefix(path string, h http.Handler) {
	k.PathHandlerByGroupVersion.HandlePrefix(path, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		answer := &noted{ResponseWriter: w}
		if h.ServeHTTP(answer, req); !answer.begun {
			http.NotFound(w, req)
		}
	}))
}

// noted records whether an answer has begun.
type noted struct {
	http.ResponseWriter
	begun bool
}

// WriteHeader begins the answer.
func (n *noted) WriteHeader(status int) {
	n.begun = true
	n.ResponseWriter.WriteHeader(status)
}

// Write begins the answer.
func (n *noted) Write(p []byte) (int, error) {
	n.begun = true
	return n.ResponseWriter.Write(p)
}

// ownExtensions returns a configuration for one document: the builder changes the extensions of its
// definitions, and documents are built concurrently.
func ownExtensions(c *common.OpenAPIV3Config) *common.OpenAPIV3Config {
	own := *c
	own.Definitions = maps.Clone(c.Definitions)
	for name, d := range own.Definitions {
		d.Schema.Extensions = maps.Clone(d.Schema.Extensions)
		own.Definitions[name] = d
	}
	return &own
}

// definedVersion is a version of a CustomResourceDefinition.
type definedVersion struct {
	*resource
	version string
}

// customVersions returns the custom resources by path.
func (d *documents) customVersions() map[string][]definedVersion {
	out := map[string][]definedVersion{}
	for _, r := range d.custom {
		for _, version := range r.versions {
			if r.CRD != nil {
				path := "apis/" + r.gvk(version).GroupVersion().String()
				out[path] = append(out[path], definedVersion{r, version})
			}
		}
	}
	return out
}

// customV3 builds the document of a version of custom resources. A failing definition, such as a
// second one with the same kind, is left out.
func (d *documents) customV3(versions []definedVersion) (*spec3.OpenAPI, error) {
	document := &spec3.OpenAPI{Version: "3.0.0"}
	for _, v := range versions {
		one, err := builder.BuildOpenAPIV3(v.CRD.Object(), v.version, builder.Options{IncludeSelectableFields: true})
		if err == nil && document.Components != nil {
			one, err = builder.MergeSpecsV3(document, one)
		}
		if err != nil {
			d.reportMissing(v, err)
			continue
		}
		document = one
	}
	return document, nil
}

// reportMissing reports a definition missing in its document.
func (d *documents) reportMissing(v definedVersion, err error) {
	d.report(&unreadable{"OpenAPI of " + v.Name() + " " + v.version, err})
}

// v2 builds the document of all kinds.
func (d *documents) v2() (*spec.Swagger, string, error) {
	config := genericapiserver.DefaultOpenAPIConfig(definitions(d.scheme), openapi.NewDefinitionNamer(d.scheme))
	config.Info.Version = "unversioned"
	services := restfuladapter.AdaptWebServices(d.server.Handler.GoRestfulContainer.RegisteredWebServices())
	document, err := builder2.BuildOpenAPISpecFromRoutes(services, config)
	if err != nil {
		return nil, "", err
	}
	document.Definitions = handler.PruneDefaults(document.Definitions)
	var all []*spec.Swagger
	versions := d.customVersions()
	for _, path := range slices.Sorted(maps.Keys(versions)) {
		for _, v := range versions[path] {
			one, err := builder.BuildOpenAPIV2(v.CRD.Object(), v.version,
				builder.Options{V2: true, StripValueValidation: true, StripNullable: true})
			if err != nil {
				d.reportMissing(v, err)
				continue
			}
			all = append(all, one)
		}
	}
	merged, err := builder.MergeSpecs(document, all...)
	return merged, d.etag, err
}
