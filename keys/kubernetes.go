package keys

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kubernetes is the layout of kube-apiserver:
//
//	<prefix>/<resource>[/<namespace>]/<name>           built-ins, mostly without their group
//	<prefix>/<group>/<resource>[/<namespace>]/<name>   custom resources, CRDs, APIServices; a group has a dot
//
// A built-in that the table of this package (Kubernetes up to 1.37) does not know is parsed with an empty group and
// either scope; it may be a newer one. Records that are no API objects but lie beside them parse as resources of their
// own, cluster-scoped and without group: masterleases, peerserverleases and ranges.
type Kubernetes struct {
	// Prefix is the storage prefix without trailing slash: "/registry", "/kubernetes.io", or "" for --etcd-prefix=/.
	Prefix string
}

var _ Layout = Kubernetes{}

// Parse implements Layout.
func (k Kubernetes) Parse(key []byte) (Key, error) {
	var buf [5]string // group, resource, namespace, name and one too many; on the stack
	segments, err := cut(k.Prefix, key, buf[:0])
	if err != nil {
		return Key{}, err
	}
	at, n, reason := place(segments)
	if reason != "" {
		return Key{}, unknown(key, "%s", reason)
	}
	out := Key{Prefix: k.Prefix, Resource: at.GroupResource}
	if !out.setName(segments[n:], at.scope) {
		return Key{}, unknown(key, "wrong number of segments for %s, which is %s", at, at.scope)
	}
	return out, nil
}

// Format implements Layout. Key.Name must not be empty, nor Key.Namespace for a namespaced resource.
func (k Kubernetes) Format(key Key) []byte {
	out := k.dir(key.Resource, len(key.Namespace)+len("/")+len(key.Name))
	return key.appendName(out)
}

// Dirs implements Layout: there is one, Dir.
func (k Kubernetes) Dirs(gr schema.GroupResource) [][]byte { return [][]byte{k.Dir(gr)} }

// Dir returns what all keys of a resource begin with, and only they, with its trailing slash. A resource that is served
// in two groups from one place (events, and what extensions once served) has that place under either name. A resource
// that is not in the table lies under its group when that has a dot, as custom resources do, else under its name alone.
func (k Kubernetes) Dir(gr schema.GroupResource) []byte {
	return k.dir(gr, 0)
}

// dir is Dir with room for more bytes.
func (k Kubernetes) dir(gr schema.GroupResource, room int) []byte {
	place := dirOf(gr)
	out := make([]byte, 0, len(k.Prefix)+len(place)+2+room)
	out = append(out, k.Prefix...)
	out = append(out, '/')
	out = append(out, place...)
	return append(out, '/')
}

// place finds the resource that the first n segments name. reason is not empty where they name none.
func place(segments []string) (at builtin, n int, reason string) {
	if at, n, ok := kubernetesTable.find(segments, 2); ok { // 2: services/specs, apiregistration.k8s.io/apiservices
		return at, n, ""
	}
	first, second := segments[0], ""
	if len(segments) > 1 {
		second = segments[1]
	}
	switch {
	case strings.Contains(first, "."):
		at, n = builtin{GroupResource: schema.GroupResource{Group: first, Resource: second}, dir: first + "/" + second}, 2
		if !isGroup(first) || !isLabel(second) {
			return at, n, "not a group and a resource"
		}
	default:
		at, n = builtin{GroupResource: schema.GroupResource{Resource: first}, dir: first}, 1
		if !isLabel(first) {
			return at, n, "not a resource"
		}
	}
	// A resource of the table in another place than its own, such as "nodes/x", can't be told from the one in its own
	// place once it is a Key: Format would move it.
	if own := dirOf(at.GroupResource); own != at.dir {
		return at, n, at.String() + " are stored under " + own + "/"
	}
	return at, n, ""
}

// DefinitionType is the type of CustomResourceDefinitions.
func DefinitionType() schema.GroupResource {
	return schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
}

// IsBuiltin tells whether the table of this package knows the resource as one of kube-apiserver's own.
func IsBuiltin(gr schema.GroupResource) bool {
	_, known := kubernetesTable.byResource[gr]
	return known
}

// IsCustom tells whether the resource can only be one of a CustomResourceDefinition, or of an aggregated API server.
func IsCustom(gr schema.GroupResource) bool { return strings.Contains(gr.Group, ".") && !IsBuiltin(gr) }

// IsCustom tells whether a CustomResourceDefinition, or an APIExport of kcp, decides what lies under the key.
func (k Key) IsCustom() bool { return k.Custom || k.Identity != "" || IsCustom(k.Resource) }

// dirOf is where a resource lies below the prefix, without slashes around it.
func dirOf(gr schema.GroupResource) string {
	if dir, ok := kubernetesTable.byResource[gr]; ok {
		return dir
	}
	if strings.Contains(gr.Group, ".") {
		return gr.Group + "/" + gr.Resource
	}
	return gr.Resource
}

// split appends the segments of s to to, and at most as many as to has room for; the last keeps what is left.
func split(s string, to []string) []string {
	for len(to) < cap(to)-1 {
		head, tail, more := strings.Cut(s, "/")
		to = append(to, head)
		if !more {
			return to
		}
		s = tail
	}
	return append(to, s)
}

// isGroup tells whether s has the characters of an API group: labels with dots between them (RFC 1123).
func isGroup(s string) bool {
	for label := range strings.SplitSeq(s, ".") {
		if !isLabel(label) {
			return false
		}
	}
	return true
}

// isLabel tells whether s is a DNS label, which the names of resources are.
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
