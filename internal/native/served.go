package native

import (
	"reflect"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes/scheme"
)

// ServedBy reports whether API servers of a minor release can serve a built-in kind: by default, or
// if --runtime-config or a feature gate enables the version.
func ServedBy(gvk schema.GroupVersionKind, minor int) bool { return servers(gvk).has(minor) }

// Serving returns the first and the last minor release whose API servers can serve a built-in kind:
// 0 for a first release that is unknown, and for the last one of a kind that is not built in.
func Serving(gvk schema.GroupVersionKind) (first, last int) {
	s := servers(gvk)
	return s.first, s.last
}

// servers returns the releases that can serve a built-in kind. Versions with a Go type say it
// themselves.
func servers(gvk schema.GroupVersionKind) (s span) {
	if inServer(gvk) {
		if s.last = LinkedRelease; gvk.Version == "v1beta1" {
			s.last = 21
		}
		return s
	}
	for _, listed := range kindSpans()[gvk.GroupKind()] {
		if listed.version == gvk.Version {
			s = listed.served
		}
	}
	obj, err := scheme.Scheme.New(gvk)
	if err != nil {
		return s
	}
	if s.last == 0 {
		s.last = LinkedRelease
	}
	if of, is := obj.(interface{ APILifecycleIntroduced() (major, minor int) }); is {
		_, s.first = of.APILifecycleIntroduced()
	}
	if of, is := obj.(interface{ APILifecycleRemoved() (major, minor int) }); is {
		_, removed := of.APILifecycleRemoved()
		s.last = min(removed-1, LinkedRelease)
	}
	return s
}

// GroupServedBy reports whether API servers of a minor release can serve a kind of a built-in
// group. known is false for other groups.
func GroupServedBy(group string, minor int) (served, known bool) {
	releases, known := groupServers()[group]
	return slices.Contains(releases, minor), known
}

// groupServers maps built-in groups to the minor releases that can serve a kind of the group.
var groupServers = sync.OnceValue(func() map[string][]int {
	all := map[string][]int{}
	add := func(gvk schema.GroupVersionKind) {
		s := servers(gvk)
		for minor := max(s.first, OldestRelease); minor <= s.last; minor++ {
			all[gvk.Group] = append(all[gvk.Group], minor)
		}
		all[gvk.Group] = slices.Compact(slices.Sorted(slices.Values(all[gvk.Group])))
	}
	meta := reflect.TypeFor[metav1.ListOptions]().PkgPath() // types in every group
	for gvk, of := range scheme.Scheme.AllKnownTypes() {
		if of.PkgPath() != meta {
			add(gvk)
		}
	}
	for kind, versions := range kindSpans() {
		for _, v := range versions {
			add(kind.WithVersion(v.version))
		}
	}
	return all
})

// Replacement returns the kind that API servers of a minor release serve instead of a built-in kind
// at a version that they do not serve; false for none. Stable versions come first, then newer ones.
func Replacement(gvk schema.GroupVersionKind, minor int) (schema.GroupVersionKind, bool) {
	kind := gvk.GroupKind()
	if obj, err := scheme.Scheme.New(gvk); err == nil {
		if of, is := obj.(interface {
			APILifecycleReplacement() schema.GroupVersionKind
		}); is {
			kind = of.APILifecycleReplacement().GroupKind()
		}
	}
	var served []string
	for _, v := range versionsOf(kind) {
		if ServedBy(kind.WithVersion(v), minor) {
			served = append(served, v)
		}
	}
	if len(served) == 0 {
		return schema.GroupVersionKind{}, false
	}
	return kind.WithVersion(slices.MaxFunc(served, version.CompareKubeAwareVersionStrings)), true
}

// versionsOf returns the versions of a built-in kind in any release.
func versionsOf(kind schema.GroupKind) (versions []string) {
	if inServer(kind.WithVersion("v1")) {
		return []string{"v1", "v1beta1"}
	}
	for _, gv := range scheme.Scheme.VersionsForGroupKind(kind) {
		versions = append(versions, gv.Version)
	}
	for _, s := range kindSpans()[kind] {
		versions = append(versions, s.version)
	}
	return versions
}
