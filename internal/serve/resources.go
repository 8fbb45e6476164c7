package serve

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/version"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/columns"
	"github.com/etcdshift/etcdshift/internal/objects"
	"github.com/etcdshift/etcdshift/internal/pattern"
	"github.com/etcdshift/etcdshift/keys"
)

// resource is a served type.
type resource struct {
	*inspect.Type               // with the group under which it is served
	stored        *inspect.Type // the type of the stored keys
	source        *source
	versions      []string // served versions, the preferred one first
	table         columns.Table
	folder        func() (*folder, error)
}

func (s *source) newResource(t *inspect.Type, versions []string) *resource {
	return &resource{
		Type: t, stored: t, source: s, versions: versions, table: columns.For(t),
		folder: sync.OnceValues(func() (*folder, error) { return s.open(t) }),
	}
}

// catalogue holds the served resources.
type catalogue struct {
	native []*resource // kinds in k8s.io/api, and CustomResourceDefinitions
	custom []*resource // custom resources, and APIServices
}

// apiServices returns the resource of APIServices. A server whose types this program does not link
// stores them as JSON.
func apiServices() schema.GroupResource {
	return schema.GroupResource{Group: "apiregistration.k8s.io", Resource: "apiservices"}
}

// catalogue finds the resources to serve, and reports unservable objects.
func (s *source) catalogue(ctx context.Context, scheme *runtime.Scheme) (c catalogue, err error) {
	types, err := s.reader.Types(ctx)
	if err != nil {
		return c, err
	}
	for _, t := range types.All() {
		versions := []string{"v1"}
		switch {
		case t.CRD != nil:
			versions = servedVersions(scheme, t)
		case t.Builtin && t.Resource != apiServices():
			versions = nativeVersions(scheme, t)
		case !t.Builtin:
			versions = nil
		}
		r := s.newResource(t, versions)
		switch {
		case len(versions) == 0:
			s.reportType(t)
		case t.CRD != nil || t.Resource == apiServices():
			c.custom = append(c.custom, r)
		default:
			c.native = append(c.native, r)
		}
		if t.Resource == (schema.GroupResource{Resource: "events"}) {
			c.native = append(c.native, r.inEventsGroup())
		}
	}
	return c, nil
}

// reportType reports a type whose objects are not served.
func (s *source) reportType(t *inspect.Type) {
	if t.Objects == 0 || keys.IsRecord(t.Resource) {
		return
	}
	reason := "no CustomResourceDefinition in the snapshot defines them"
	switch {
	case t.CRD != nil:
		reason = "their CustomResourceDefinition serves no version, or has names that no API server accepts"
	case t.Builtin || !keys.IsCustom(t.Resource):
		reason = "this build does not know their kind"
	}
	s.Report(fmt.Sprintf("%s: %d objects are not served: %s", t.Name(), t.Objects, reason))
}

// servedVersions returns the served versions of a CustomResourceDefinition by priority. Names that
// no API server accepts are excluded, because clients would refuse all of discovery, and so are
// versions of built-in groups, because they would hide the built-in resources.
func servedVersions(scheme *runtime.Scheme, t *inspect.Type) (names []string) {
	for _, v := range t.CRD.Object().Spec.Versions {
		gv := schema.GroupVersion{Group: t.Resource.Group, Version: v.Name}
		if v.Served && validNames(t, v.Name) && !scheme.IsVersionRegistered(gv) {
			names = append(names, v.Name)
		}
	}
	byPriority(names)
	return names
}

// validNames checks the names in paths like apiextensions-apiserver.
func validNames(t *inspect.Type, version string) bool {
	problems := validation.IsDNS1123Subdomain(t.Resource.Group)
	for _, name := range []string{t.Resource.Resource, strings.ToLower(t.Kind), version} {
		problems = append(problems, validation.IsDNS1035Label(name)...)
	}
	return len(problems) == 0
}

func byPriority(versions []string) { slices.SortFunc(versions, compareVersions) }

// compareVersions orders versions like discovery: stable before unstable, then newer before older.
func compareVersions(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) }

var stable = pattern.New(`^v[0-9]+$`)

// nativeVersions returns the stable versions of a built-in type, the newest first; without any, the
// newest version of a type with objects: servers do not serve others by default.
func nativeVersions(scheme *runtime.Scheme, t *inspect.Type) (versions []string) {
	for _, gv := range scheme.VersionsForGroupKind(schema.GroupKind{Group: t.Resource.Group, Kind: t.Kind}) {
		versions = append(versions, gv.Version)
	}
	byPriority(versions)
	if unstable := len(versions) > 0 && !stable().MatchString(versions[0]); unstable && t.Objects > 0 {
		return versions[:1]
	}
	return slices.DeleteFunc(versions, func(version string) bool { return !stable().MatchString(version) })
}

// inEventsGroup returns the resource of Events in events.k8s.io.
func (r *resource) inEventsGroup() *resource {
	other := *r
	t := *r.Type
	t.Resource.Group, t.ShortNames = "events.k8s.io", slices.Clone(t.ShortNames)
	other.Type, other.versions = &t, []string{"v1"}
	return &other
}

// gvk returns the kind of the resource at a version.
func (r *resource) gvk(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: r.Resource.Group, Version: version, Kind: r.Kind}
}

// key returns the prefix of the keys in a namespace, "" for all, or the key of an object.
func (r *resource) key(f *folder, namespace, name string) []byte {
	key := append([]byte(nil), f.dir...)
	if r.Namespaced && namespace != "" {
		key = append(append(key, namespace...), '/')
	}
	return append(key, name...)
}

// listKind returns the list kind of a kind.
func listKind(kind string) string { return strings.TrimSuffix(kind, "List") + "List" }

// fieldLabel returns the conversion of field selectors: fields have the same name at each version.
func (r *resource) fieldLabel(version string) runtime.FieldLabelConversionFunc {
	return func(label, value string) (string, string, error) {
		if !slices.Contains(objects.SelectableFields(r.Type, version), label) {
			return "", "", fmt.Errorf("field label not supported: %s", label)
		}
		return label, value, nil
	}
}
