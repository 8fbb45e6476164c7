package serve

import (
	"net/http"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apiserver/pkg/endpoints"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
)

// custom serves custom resources and their discovery below /apis/, like the handler of
// apiextensions-apiserver.
type custom struct {
	codec     *codec
	resources map[schema.GroupVersionResource]*customVersion
	groups    map[string]http.Handler              // discovery of a group
	versions  map[schema.GroupVersion]http.Handler // discovery of a version
}

// customVersion is a custom resource at one version.
type customVersion struct {
	store  *store
	scope  *handlers.RequestScope
	status bool // the version has the subresource, served as the whole object
}

// newCustom adds custom resources to the discovery of a server, and returns their handler.
func newCustom(c *codec, resources []*resource, s *genericapiserver.GenericAPIServer) (*custom, error) {
	h := &custom{
		codec: c, resources: map[schema.GroupVersionResource]*customVersion{},
		groups: map[string]http.Handler{}, versions: map[schema.GroupVersion]http.Handler{},
	}
	listed := map[schema.GroupVersion][]metav1.APIResource{}
	var order []schema.GroupVersion
	for _, r := range resources {
		for _, version := range r.versions {
			gv := r.gvk(version).GroupVersion()
			h.resources[gv.WithResource(r.Resource.Resource)] = newCustomVersion(c, r, version)
			if listed[gv] == nil {
				order = append(order, gv)
			}
			listed[gv] = append(listed[gv], metav1.APIResource{
				Name: r.Resource.Resource, SingularName: r.Singular, Namespaced: r.Namespaced, Kind: r.Kind,
				Verbs: metav1.Verbs{"get", "list", "watch"}, ShortNames: r.ShortNames, Categories: r.Categories,
			})
		}
	}
	slices.SortStableFunc(order, func(a, b schema.GroupVersion) int {
		if a.Group != b.Group {
			return strings.Compare(a.Group, b.Group)
		}
		return compareVersions(a.Version, b.Version)
	})
	return h, h.discover(s, order, listed)
}

func newCustomVersion(c *codec, r *resource, version string) *customVersion {
	s := &store{resource: r, version: version, create: newUnstructured}
	convertor := unconverted{r.fieldLabel(version)}
	return &customVersion{store: s, status: r.hasStatus(version), scope: &handlers.RequestScope{
		Namer:      handlers.ContextBasedNaming{Namer: meta.NewAccessor(), ClusterScoped: !r.Namespaced},
		Serializer: c, ParameterCodec: metav1.ParameterCodec, StandardSerializers: c.SupportedMediaTypes(),
		Convertor: convertor, UnsafeConvertor: convertor,
		Resource: r.gvk(version).GroupVersion().WithResource(r.Resource.Resource), Kind: r.gvk(version),
		HubGroupVersion: r.gvk(version).GroupVersion(), MetaGroupVersion: metav1.SchemeGroupVersion, TableConvertor: s,
	}}
}

// hasStatus reports whether a version has the subresource status. All versions of APIServices do.
func (r *resource) hasStatus(version string) bool {
	return r.CRD == nil || slices.ContainsFunc(r.CRD.Object().Spec.Versions,
		func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return v.Name == version && v.Subresources != nil && v.Subresources.Status != nil
		})
}

func newUnstructured(kind schema.GroupVersionKind) (runtime.Object, error) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(kind)
	return obj, nil
}

// unconverted is the conversion of objects already at the right version.
type unconverted struct {
	label runtime.FieldLabelConversionFunc
}

// Convert is never called: nothing is written.
func (unconverted) Convert(_, _, _ any) error { return nil }

// ConvertToVersion returns the object unchanged.
func (unconverted) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

// ConvertFieldLabel checks a field selector.
func (u unconverted) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return u.label(label, value)
}

// discover adds the versions to the discovery of the server. In order, the versions of a group are
// adjacent, the preferred one first.
func (h *custom) discover(s *genericapiserver.GenericAPIServer, order []schema.GroupVersion,
	listed map[schema.GroupVersion][]metav1.APIResource) error {
	group := metav1.APIGroup{}
	for i, gv := range order {
		resources, err := endpoints.ConvertGroupVersionIntoToDiscovery(listed[gv])
		if err != nil {
			return err
		}
		s.AggregatedDiscoveryGroupManager.AddGroupVersion(gv.Group, apidiscoveryv2.APIVersionDiscovery{
			Version: gv.Version, Resources: resources, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent,
		})
		s.AggregatedDiscoveryGroupManager.SetGroupVersionPriority(metav1.GroupVersion(gv), customPriority, len(order)-i)
		list := listed[gv]
		h.versions[gv] = discovery.NewAPIVersionHandler(h.codec.CodecFactory, gv,
			discovery.APIResourceListerFunc(func() []metav1.APIResource { return list }))
		at := metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version}
		if i == 0 || order[i-1].Group != gv.Group {
			group = metav1.APIGroup{Name: gv.Group, PreferredVersion: at}
		}
		group.Versions = append(group.Versions, at)
		if i+1 == len(order) || order[i+1].Group != gv.Group {
			s.DiscoveryGroupManager.AddGroup(group)
			h.groups[gv.Group] = discovery.NewAPIGroupHandler(h.codec.CodecFactory, group)
		}
	}
	return nil
}

// ServeHTTP answers reads of custom resources; earlier filters refuse all other requests.
func (h *custom) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	info, _ := request.RequestInfoFrom(req.Context())
	if !info.IsResourceRequest {
		h.serveDiscovery(w, req)
		return
	}
	v := h.resources[schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion,
		Resource: info.Resource}]
	if v == nil || info.Subresource != "" && (info.Subresource != "status" || !v.status) || !v.store.Namespaced &&
		info.Namespace != "" {
		http.NotFound(w, req)
		return
	}
	switch info.Verb {
	case "get":
		handlers.GetResource(v.store, v.scope)(w, req)
	case "list", "watch":
		handlers.ListResource(v.store, v.store, v.scope, info.Verb == "watch", minWatch)(w, req)
	default:
		http.NotFound(w, req)
	}
}

func (h *custom) serveDiscovery(w http.ResponseWriter, req *http.Request) {
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	var found http.Handler
	switch len(parts) {
	case 2:
		found = h.groups[parts[1]]
	case 3:
		found = h.versions[schema.GroupVersion{Group: parts[1], Version: parts[2]}]
	}
	if found == nil {
		found = http.NotFoundHandler()
	}
	found.ServeHTTP(w, req)
}
