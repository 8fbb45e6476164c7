package keys

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// KCPShard is the layout of a shard of kcp:
//
//	<prefix>/<group>/<resource>/<cluster>/...                  built-ins; the core group is "core"
//	<prefix>/<group>/<resource>/customresources/<cluster>/...  custom resources
//	<prefix>/<group>/<resource>/<identity>/<cluster>/...       of a type of an APIExport
//
// "..." is [<namespace>/]<name>. In the core group the last two forms have no <group>.
//
// The forms never overlap: an identity is 64 hexadecimal digits, longer than any name of a logical
// cluster; no cluster is named "customresources"; and only the closed list of built-ins lacks such
// a mark. So each key is of one logical cluster, or ErrUnknownKey.
type KCPShard struct {
	// Prefix is the storage prefix without trailing slash: "/registry".
	Prefix string
}

// KCPCache is the layout of kcp's cache server. All objects except its own
// CustomResourceDefinitions are custom resources; the origin shard of the object precedes the
// logical cluster:
//
//	<prefix>/<group>/<resource>/customresources/<shard>/<cluster>[/<namespace>]/<name>
type KCPCache struct {
	// Prefix is the storage prefix without trailing slash: "/cache".
	Prefix string
}

// customResources replaces the identity for custom resources that no APIExport exports.
const customResources = "customresources"

// Parse implements Layout.
func (k KCPShard) Parse(key []byte) (Key, error) { return parseKCP(k.Prefix, key, shardTable, false) }

// Parse implements Layout.
func (k KCPCache) Parse(key []byte) (Key, error) { return parseKCP(k.Prefix, key, cacheTable, true) }

// Format implements Layout. Key.Cluster and Key.Name must not be empty.
func (k KCPShard) Format(key Key) []byte {
	key.Shard = ""
	return formatKCP(k.Prefix, key)
}

// Format implements Layout. Key.Shard, Key.Cluster and Key.Name must not be empty.
func (k KCPCache) Format(key Key) []byte { return formatKCP(k.Prefix, key) }

// Dirs implements Layout. Custom resources of the core group have another dir than its built-ins.
func (k KCPShard) Dirs(gr schema.GroupResource) [][]byte { return dirsKCP(k.Prefix, gr) }

// Dirs implements Layout.
func (k KCPCache) Dirs(gr schema.GroupResource) [][]byte { return dirsKCP(k.Prefix, gr) }

func parseKCP(prefix string, key []byte, builtins *table, sharded bool) (Key, error) {
	var buf [8]string // group, resource, identity, shard, cluster, namespace, name and one too many
	segments, err := cut(prefix, key, buf[:0])
	if err != nil {
		return Key{}, err
	}
	out, scope, n, reason := findKCP(segments, builtins)
	if reason != "" {
		return Key{}, unknown(key, "%s", reason)
	}
	out.Prefix = prefix
	owners := []*string{&out.Cluster}
	if sharded {
		owners = []*string{&out.Shard, &out.Cluster}
	}
	rest := segments[n:]
	for _, owner := range owners {
		switch {
		case len(rest) == 0:
			return Key{}, unknown(key, "ends before its logical cluster")
		case isMark(rest[0]):
			return Key{}, unknown(key, "%.20q stands where a logical cluster should", rest[0])
		}
		*owner, rest = rest[0], rest[1:]
	}
	if err := out.setName(key, rest, scope); err != nil {
		return Key{}, err
	}
	return out, nil
}

// findKCP finds the resource in the first n segments, with its mark, or returns a reason for the
// failure.
func findKCP(segments []string, builtins *table) (key Key, scope scope, n int, reason string) {
	mark := ""
	switch {
	case len(segments) > 1 && isMark(segments[1]) && !strings.Contains(segments[0],
		"."): // a group with a dot is no resource
		key.Resource.Resource, mark, n = segments[0], segments[1], 2
	case len(segments) > 2 && isMark(segments[2]):
		key.Resource = schema.GroupResource{Group: segments[0], Resource: segments[1]}
		mark, n = segments[2], 3
	default:
		at, n, ok := builtins.find(segments, 2)
		if !ok {
			return key, scope, n, "neither a built-in resource nor marked as a custom one"
		}
		key.Resource = at.GroupResource
		return key, at.scope, n, ""
	}
	if key.Custom = mark == customResources; !key.Custom {
		key.Identity = mark
	}
	gr := key.Resource
	if (gr.Group != "" && !isGroup(gr.Group)) || !isLabel(gr.Resource) || isIdentity(gr.Resource) {
		return key, scope, n, "not a group and a resource"
	}
	return key, anyScope, n, ""
}

func formatKCP(prefix string, key Key) []byte {
	mark := key.Identity
	if mark == "" && key.Custom {
		mark = customResources
	}
	out := []byte(prefix + "/")
	group := key.Resource.Group
	if group == "" && mark == "" {
		group = "core"
	}
	for _, s := range []string{group, key.Resource.Resource, mark, key.Shard, key.Cluster} {
		if s != "" {
			out = append(append(out, s...), '/')
		}
	}
	return key.appendName(out)
}

func dirsKCP(prefix string, gr schema.GroupResource) [][]byte {
	if gr.Group != "" {
		return [][]byte{[]byte(prefix + "/" + gr.Group + "/" + gr.Resource + "/")}
	}
	return [][]byte{[]byte(prefix + "/core/" + gr.Resource + "/"), []byte(prefix + "/" + gr.Resource + "/")}
}

// isMark reports whether s, after a resource, marks a custom resource.
func isMark(s string) bool { return s == customResources || isIdentity(s) }

// isIdentity reports whether s can be the identity of an APIExport: a SHA-256 sum in lower-case
// digits.
func isIdentity(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// shardBuiltins lists the built-ins of kcp's generic control plane (kcp's fork of Kubernetes 1.36,
// pkg/controlplane/apiserver/apis.go), each stored under its group and name.
func shardBuiltins() []builtin {
	groups := []string{"admissionregistration.k8s.io", "apiextensions.k8s.io", "certificates.k8s.io",
		"coordination.k8s.io", "flowcontrol.apiserver.k8s.io", "internal.apiserver.k8s.io", "rbac.authorization.k8s.io",
		"storagemigration.k8s.io"}
	core := []string{"configmaps", "events", "namespaces", "resourcequotas", "secrets", "serviceaccounts"}
	var out []builtin
	for _, b := range builtins() {
		switch {
		case slices.Contains(groups, b.Group):
			b.dir = b.Group + "/" + b.Resource
		case b.Group == "" && slices.Contains(core, b.Resource):
			b.dir = "core/" + b.Resource
		default:
			continue
		}
		out = append(out, b)
	}
	return out
}

// cacheBuiltins lists the built-ins of the cache server.
func cacheBuiltins() []builtin {
	return slices.DeleteFunc(shardBuiltins(), func(b builtin) bool { return b.Resource != "customresourcedefinitions" })
}
