package keys

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kubernetes is the layout of kube-apiserver:
//
//	<prefix>/<resource>[/<namespace>]/<name>          built-ins, mostly without their group
//	<prefix>/<group>/<resource>[/<namespace>]/<name>  others, CRDs, APIServices; a group has a dot
//
// The table of this package has the built-ins up to Kubernetes 1.37. Any other resource without a
// group may be newer and parses with an empty group, in either scope. masterleases,
// peerserverleases and ranges are not API objects and parse as cluster-scoped resources without a
// group.
type Kubernetes struct {
	// Prefix is the storage prefix without trailing slash: "/registry", or "" for --etcd-prefix=/.
	Prefix string
}

// Parse implements Layout.
func (k Kubernetes) Parse(key []byte) (Key, error) {
	var buf [5]string // group, resource, namespace, name and one too many; on the stack
	segments, err := cut(k.Prefix, key, buf[:0])
	if err != nil {
		return Key{}, err
	}
	at, n, reason := findKubernetes(segments)
	if reason != "" {
		return Key{}, unknown(key, "%s", reason)
	}
	out := Key{Prefix: k.Prefix, Resource: at.GroupResource}
	if err := out.setName(key, segments[n:], at.scope); err != nil {
		return Key{}, err
	}
	return out, nil
}

// Format implements Layout. Key.Name must not be empty, nor Key.Namespace for a namespaced
// resource.
func (k Kubernetes) Format(key Key) []byte { return key.appendName(k.Dir(key.Resource)) }

// Dirs implements Layout. The only dir is Dir.
func (k Kubernetes) Dirs(gr schema.GroupResource) [][]byte { return [][]byte{k.Dir(gr)} }

// Dir returns the common beginning of all keys of a resource, with a trailing slash; no other keys
// begin so. A resource served by two groups, such as events, is stored once and has one Dir. A
// resource missing from the table is stored under its group if the group has a dot, else under its
// name alone.
func (k Kubernetes) Dir(gr schema.GroupResource) []byte {
	return []byte(k.Prefix + "/" + dirOf(gr) + "/")
}

// findKubernetes finds the resource in the first n segments, or returns a reason for the failure.
func findKubernetes(segments []string) (at builtin, n int, reason string) {
	if at, n, ok := kubernetesTable.find(segments, 2); ok { // 2: services/specs, apiregistration.k8s.io/apiservices
		return at, n, ""
	}
	first, second := segments[0], ""
	if len(segments) > 1 {
		second = segments[1]
	}
	if strings.Contains(first, ".") {
		at, n = builtin{GroupResource: schema.GroupResource{Group: first, Resource: second}, dir: first + "/" + second},
			2
		if !isGroup(first) || !isLabel(second) {
			return at, n, "not a group and a resource"
		}
	} else {
		at, n = builtin{GroupResource: schema.GroupResource{Resource: first}, dir: first}, 1
		if !isLabel(first) {
			return at, n, "not a resource"
		}
	}
	// Format would move a resource of the table with another dir, such as "nodes/x".
	if own := dirOf(at.GroupResource); own != at.dir {
		return at, n, at.String() + " are stored under " + own + "/"
	}
	return at, n, ""
}

// DefinitionType returns the resource of CustomResourceDefinitions.
func DefinitionType() schema.GroupResource {
	return schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
}

// IsBuiltin reports whether the table of this package has the resource.
func IsBuiltin(gr schema.GroupResource) bool {
	_, known := kubernetesTable.byResource[gr]
	return known
}

// IsCustom reports whether a CustomResourceDefinition or an aggregated API server defines the
// resource.
func IsCustom(gr schema.GroupResource) bool { return strings.Contains(gr.Group, ".") && !IsBuiltin(gr) }

// IsRecord reports whether a resource holds records of API servers. Such records are not API
// objects: no client reads or writes them over the API.
func IsRecord(gr schema.GroupResource) bool {
	return gr.Group == "" && slices.Contains([]string{"masterleases", "peerserverleases", "ranges"}, gr.Resource)
}

// IsCustom reports whether a CustomResourceDefinition, or an APIExport of kcp, defines the type.
func (k Key) IsCustom() bool { return k.Custom || k.Identity != "" || IsCustom(k.Resource) }

// dirOf returns the path of a resource below the prefix, without leading or trailing slash.
func dirOf(gr schema.GroupResource) string {
	if dir, ok := kubernetesTable.byResource[gr]; ok {
		return dir
	}
	if strings.Contains(gr.Group, ".") {
		return gr.Group + "/" + gr.Resource
	}
	return gr.Resource
}

// isGroup reports whether s consists of DNS labels separated by dots (RFC 1123), like an API group.
func isGroup(s string) bool {
	for label := range strings.SplitSeq(s, ".") {
		if !isLabel(label) {
			return false
		}
	}
	return true
}

// isLabel reports whether s is a DNS label, like the name of a resource.
func isLabel(s string) bool {
	if s == "" || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}
