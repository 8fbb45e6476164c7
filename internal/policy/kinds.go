package policy

import (
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/etcdshift/etcdshift/inspect"
)

// versionsOf returns the versions of a type that servers know; for a custom type, the served
// versions.
func versionsOf(t *inspect.Type) (versions []string) {
	if t.CRD == nil {
		for _, gv := range scheme.Scheme.VersionsForGroupKind(schema.GroupKind{Group: t.Resource.Group, Kind: t.Kind}) {
			versions = append(versions, gv.Version)
		}
		return versions
	}
	for _, v := range t.CRD.Object().Spec.Versions {
		if v.Served {
			versions = append(versions, v.Name)
		}
	}
	return versions
}

// equivalents implements runtime.EquivalentResourceMapper for the versions of a type. Events are in
// two groups.
type equivalents struct {
	*inspect.Type
	known []string // versions
}

// EquivalentResourcesFor lists the resource at all versions.
func (e equivalents) EquivalentResourcesFor(
	r schema.GroupVersionResource, _ string,
) (all []schema.GroupVersionResource) {
	for _, version := range e.known {
		all = append(all, r.GroupResource().WithVersion(version))
	}
	if r.Resource == "events" && e.Builtin {
		all = append(all, schema.GroupVersionResource{Version: "v1", Resource: "events"},
			schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"})
	}
	return all
}

// KindFor returns the kind of a resource at a version.
func (e equivalents) KindFor(r schema.GroupVersionResource, _ string) schema.GroupVersionKind {
	return r.GroupVersion().WithKind(e.Kind)
}

// named classifies how the rules of a policy name a type.
type named int

const (
	notNamed     named = iota
	otherVersion       // only another version than that of the objects, with match policy Exact
	byRules
)

// names returns how match constraints name a type for requests about objects at a version.
// Selectors and object names are left to the evaluation.
func names(
	m *admission.MatchResources, t *inspect.Type, version string, does admission.OperationType,
) named {
	found := notNamed
	for _, rule := range m.ResourceRules {
		if !has(rule.Operations, does, admission.OperationAll) || !rulesResource(rule.Rule, t) ||
			!inScope(rule.Scope, t) {
			continue
		}
		if *m.MatchPolicy == admission.Equivalent || has(rule.APIVersions, version, "*") {
			return byRules
		}
		found = otherVersion
	}
	return found
}

func has[S ~string](all []S, wanted ...S) bool {
	return slices.ContainsFunc(all, func(s S) bool { return slices.Contains(wanted, s) })
}

// rulesResource reports whether a rule names the type itself, not a subresource.
func rulesResource(rule admission.Rule, t *inspect.Type) bool {
	groups := []string{t.Resource.Group, "*"}
	if t.Resource.Resource == "events" && t.Builtin {
		groups = append(groups, "", "events.k8s.io")
	}
	return has(rule.APIGroups, groups...) && slices.ContainsFunc(rule.Resources, func(named string) bool {
		resource, sub, _ := strings.Cut(named, "/")
		return (resource == "*" || resource == t.Resource.Resource) && (sub == "" || sub == "*")
	})
}

func inScope(scope *admission.ScopeType, t *inspect.Type) bool {
	switch *scope {
	case admission.NamespacedScope:
		return t.Namespaced
	case admission.ClusterScope:
		return !t.Namespaced
	}
	return true
}
