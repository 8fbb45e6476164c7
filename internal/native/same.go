package native

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// Same reports whether a server treats two objects of a kind as equal: zero values, empty lists and
// defaults equal missing fields, and "0.1" equals "100m". In [exact] kinds an empty list or map
// does not equal a missing one. For kinds unknown to this build the content must be equal.
func Same(gvk schema.GroupVersionKind, a, b map[string]any) bool {
	first, known := defaulted(gvk, a)
	second, too := defaulted(gvk, b)
	if !known || !too {
		return reflect.DeepEqual(a, b)
	}
	if slices.Contains(exact(), gvk.Kind) {
		return reflect.DeepEqual(first, second)
	}
	return equality.Semantic.DeepEqual(first, second)
}

// exact lists the kinds whose updates a server compares with reflect.DeepEqual. Source: strategies
// below pkg/registry of Kubernetes 1.36.
func exact() []string {
	return []string{"NetworkPolicy", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}
}

// defaulted returns the object of content that a server works with. It returns false for an unknown
// kind, and for content that does not fit the kind.
func defaulted(gvk schema.GroupVersionKind, content map[string]any) (runtime.Object, bool) {
	obj, err := legacyscheme.Scheme.New(gvk)
	if err != nil || runtime.DefaultUnstructuredConverter.FromUnstructured(content, obj) != nil {
		return nil, false
	}
	obj, err = internal(obj)
	return obj, err == nil
}

// internal sets the defaults of an object of a Go type of k8s.io/api, and converts it to the type
// that a server works with. Both share memory.
func internal(obj runtime.Object) (runtime.Object, error) { return internalOf(obj, LinkedRelease) }

// internalOf is internal with the defaults of a minor release.
func internalOf(obj runtime.Object, minor int) (runtime.Object, error) {
	setDefaults(obj, minor)
	return legacyscheme.Scheme.UnsafeConvertToVersion(obj, runtime.InternalGroupVersioner)
}

// lost returns the paths of the values in a that b lacks or changes.
func lost(path string, a, b any) (paths []string) {
	if reflect.DeepEqual(a, b) { // also deep content, such as that of managedFields
		return nil
	}
	switch a := a.(type) {
	case map[string]any:
		b, _ := b.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(a)) {
			paths = append(paths, lost(path+"."+name, a[name], b[name])...)
		}
		return paths
	case []any:
		b, _ := b.([]any)
		for i := range a {
			var other any
			if i < len(b) {
				other = b[i]
			}
			paths = append(paths, lost(fmt.Sprintf("%s[%d]", path, i), a[i], other)...)
		}
		return paths
	}
	if b == nil && reflect.ValueOf(a).IsZero() {
		return nil
	}
	return []string{strings.TrimPrefix(path, ".")}
}
