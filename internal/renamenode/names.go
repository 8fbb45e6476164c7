package renamenode

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/ipam"
)

// hostnameLabel is the label of a Node that selectors name it by.
const hostnameLabel = "kubernetes.io/hostname"

// names knows what becomes of the names of nodes, and of objects that are named after them.
type names struct {
	to     map[string]string          // new names of nodes
	labels map[string]map[string]bool // by old name, the labels of the Node that have it as their value
	hashes map[string]string          // of Calico: new ones
	moved  map[object]string          // new names of objects
	pools  map[string]bool            // of ResourceSlices, named after their node: driver and node
	word   *regexp.Regexp             // an old name
}

// object identifies an object for references.
type object struct{ group, kind, namespace, name string }

func newNames(to map[string]string) *names {
	n := &names{
		to: to, labels: map[string]map[string]bool{}, hashes: map[string]string{}, moved: map[object]string{}, pools: map[string]bool{},
	}
	old := slices.Sorted(maps.Keys(to))
	for i, name := range old {
		n.labels[name] = map[string]bool{}
		n.hashes[ipam.HostnameHash(name)] = ipam.HostnameHash(to[name])
		old[i] = regexp.QuoteMeta(name)
	}
	n.word = regexp.MustCompile(`(?:^|[^A-Za-z0-9])(?:` + strings.Join(old, "|") + `)(?:$|[^A-Za-z0-9])`)
	return n
}

// in reports whether bytes contain an old name.
func (n *names) in(text []byte) bool {
	for old := range n.to {
		if bytes.Contains(text, []byte(old)) {
			return true
		}
	}
	return false
}

// labelled returns the new value of a label, or of a selector by it.
func (n *names) labelled(label, value string) (string, bool) {
	if label == ipam.HostnameHashLabel {
		hash, is := n.hashes[value]
		return hash, is
	}
	name, is := n.to[value]
	return name, is && n.labels[value][label]
}

// after returns the new name of an object that begins or ends with the old name of a node.
func (n *names) after(name, before, behind string) (string, bool) {
	if len(name) < len(before)+len(behind) || !strings.HasPrefix(name, before) || !strings.HasSuffix(name, behind) {
		return "", false
	}
	is, found := n.to[name[len(before):len(name)-len(behind)]]
	return before + is + behind, found
}

// referred returns the new name of an object that another one in namespace refers to.
func (n *names) referred(reference map[string]any, namespace string) (string, bool) {
	kind, name := text(reference, "kind"), text(reference, "name")
	if kind == "" || name == "" {
		return "", false
	}
	group := schema.FromAPIVersionAndKind(text(reference, "apiVersion"), kind).Group
	if in := text(reference, "namespace"); in != "" {
		namespace = in
	}
	for _, namespace := range []string{namespace, ""} {
		if is, found := n.moved[object{group, kind, namespace, name}]; found {
			return is, true
		}
	}
	return "", false
}

// move notes the new name of an object.
func (n *names) move(o *inspect.Object, name string) {
	n.moved[object{o.Type.Resource.Group, o.Type.Kind, o.Parsed.Namespace, o.Parsed.Name}] = name
}

// text is the string at name, empty where it is missing or no string.
func text(m map[string]any, name string) string {
	s, _ := m[name].(string)
	return s
}

// child is the object at name, nil where it is missing or no object.
func child(m map[string]any, path ...string) map[string]any {
	for _, name := range path {
		m, _ = m[name].(map[string]any)
	}
	return m
}

// children are the objects of a list.
func children(m map[string]any, name string) (out []map[string]any) {
	list, _ := m[name].([]any)
	for _, one := range list {
		if object, is := one.(map[string]any); is {
			out = append(out, object)
		}
	}
	return out
}
