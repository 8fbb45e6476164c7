package serve

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
)

// newScheme returns a scheme with the types of k8s.io/api and CustomResourceDefinitions.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientscheme.AddToScheme, metainternalversion.AddToScheme, apiextensionsv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return scheme, nil
}

// groups holds the API groups of built-in kinds, in kubectl's order of preference.
type groups struct {
	scheme *runtime.Scheme
	codec  *codec
	all    []*genericapiserver.APIGroupInfo
}

// add adds the storage of a resource to its API group; a missing group is created.
func (g *groups) add(gv schema.GroupVersion, resource string, storage rest.Storage) {
	var info *genericapiserver.APIGroupInfo
	for _, one := range g.all {
		if one.PrioritizedVersions[0].Group == gv.Group {
			info = one
		}
	}
	if info == nil {
		one := genericapiserver.NewDefaultAPIGroupInfo(gv.Group, g.scheme, metav1.ParameterCodec, g.codec.CodecFactory)
		one.NegotiatedSerializer, one.PrioritizedVersions = g.codec, nil
		info = &one
		g.all = append(g.all, info)
	}
	if info.VersionedResourcesStorageMap[gv.Version] == nil {
		info.VersionedResourcesStorageMap[gv.Version] = map[string]rest.Storage{}
		info.PrioritizedVersions = append(info.PrioritizedVersions, gv)
	}
	info.VersionedResourcesStorageMap[gv.Version][resource] = storage
}

// addResources adds the resources of built-in kinds.
func (g *groups) addResources(resources []*resource) error {
	for _, r := range resources {
		for _, version := range r.versions {
			if err := g.scheme.AddFieldLabelConversionFunc(r.gvk(version), r.fieldLabel(version)); err != nil {
				return err
			}
			s := &store{resource: r, version: version, create: g.scheme.New}
			g.add(r.gvk(version).GroupVersion(), r.Resource.Resource, s)
			for name, sub := range s.subresources() {
				g.add(r.gvk(version).GroupVersion(), r.Resource.Resource+"/"+name, sub)
			}
		}
	}
	return nil
}

// install installs all groups.
func (g *groups) install(s *genericapiserver.GenericAPIServer) error {
	for _, info := range g.all {
		slices.SortFunc(info.PrioritizedVersions,
			func(a, b schema.GroupVersion) int { return compareVersions(a.Version, b.Version) })
	}
	for i, info := range g.all {
		if info.PrioritizedVersions[0].Group == "" {
			if err := s.InstallLegacyAPIGroup(genericapiserver.DefaultLegacyAPIPrefix, info); err != nil {
				return err
			}
			continue
		}
		if err := s.InstallAPIGroup(info); err != nil {
			return err
		}
		for j, gv := range info.PrioritizedVersions {
			s.AggregatedDiscoveryGroupManager.SetGroupVersionPriority(metav1.GroupVersion(gv), nativePriority-i, 100-j)
		}
	}
	return nil
}

// Priorities of groups in discovery: built-in groups come before custom groups.
const (
	nativePriority = 20000
	customPriority = 1000
)
