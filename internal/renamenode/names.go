package renamenode

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/machines"
)

// hostnameLabel is the Node label used by selectors.
const hostnameLabel = "kubernetes.io/hostname"

// names holds the new names of nodes, and of objects named after nodes.
type names struct {
	to     map[string]string          // new names of nodes
	labels map[string]map[string]bool // labels of the Node with its name as value, by old name
	hashes map[string]string          // new Calico hashes by old hash
	moved  map[object]string          // new names of objects
	pools  map[string]bool            // ResourceSlice pools named after their node: "driver/node"
	word   *regexp.Regexp             // matches an old name
}

// object identifies the object of a reference.
type object struct{ group, kind, namespace, name string }

func newNames(to map[string]string) *names {
	n := &names{
		to: to, labels: map[string]map[string]bool{}, hashes: map[string]string{}, moved: map[object]string{},
		pools: map[string]bool{},
	}
	old := slices.Sorted(maps.Keys(to))
	for i, name := range old {
		n.labels[name] = map[string]bool{}
		n.hashes[machines.HostnameHash(name)] = machines.HostnameHash(to[name])
		old[i] = regexp.QuoteMeta(name)
	}
	n.word = regexp.MustCompile(`(?:^|[^A-Za-z0-9])(?:` + strings.Join(old, "|") + `)(?:$|[^A-Za-z0-9])`)
	return n
}

// containsOld reports whether bytes contain an old name.
func (n *names) containsOld(text []byte) bool {
	for old := range n.to {
		if bytes.Contains(text, []byte(old)) {
			return true
		}
	}
	return false
}

// labelled returns the new value of a label, or of a selector for the label.
func (n *names) labelled(label, value string) (string, bool) {
	if label == machines.HostnameHashLabel {
		hash, is := n.hashes[value]
		return hash, is
	}
	name, is := n.to[value]
	return name, is && n.labels[value][label]
}

// newNameIn returns the new name of an object whose name contains the old name of a node between
// before and behind.
func (n *names) newNameIn(name, before, behind string) (string, bool) {
	if len(name) < len(before)+len(behind) || !strings.HasPrefix(name, before) || !strings.HasSuffix(name, behind) {
		return "", false
	}
	is, found := n.to[name[len(before):len(name)-len(behind)]]
	return before + is + behind, found
}

// newReference returns the new name of an object referenced from an object in namespace.
func (n *names) newReference(reference map[string]any, namespace string) (string, bool) {
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

// move remembers the new name of an object.
func (n *names) move(o *inspect.Object, name string) {
	n.moved[object{o.Type.Resource.Group, o.Type.Kind, o.Parsed.Namespace, o.Parsed.Name}] = name
}

// text returns the string field name, or "".
func text(m map[string]any, name string) string {
	s, _ := m[name].(string)
	return s
}

// child returns the object at a path, or nil.
func child(m map[string]any, path ...string) map[string]any {
	for _, name := range path {
		m, _ = m[name].(map[string]any)
	}
	return m
}

// children returns the objects of a list.
func children(m map[string]any, name string) (out []map[string]any) {
	list, _ := m[name].([]any)
	for _, one := range list {
		if object, is := one.(map[string]any); is {
			out = append(out, object)
		}
	}
	return out
}

// mirrorAnnotation marks mirror Pods, which represent static Pods of a machine.
const mirrorAnnotation = "kubernetes.io/config.mirror"

// newName returns the new name of an object named after a node.
func (n *names) newName(o *inspect.Object) (string, bool) {
	switch name := o.Type.Name(); name {
	case "leases.coordination.k8s.io":
		if o.Parsed.Namespace != leaseNamespace {
			return "", false
		}
		return n.newNameIn(o.Parsed.Name, "", "")
	case "nodes", "csinodes.storage.k8s.io", "csinodetopologies.cns.vmware.com",
		"ciliumnodes.cilium.io", "ciliumbgpnodeconfigs.cilium.io", "ciliumbgpnodeconfigoverrides.cilium.io":
		return n.newNameIn(o.Parsed.Name, "", "")
	case "pods":
		return n.mirrorName(o)
	}
	if isCalico(o.Type.Resource.Group) {
		return n.calicoName(o)
	}
	return "", false
}

// mirrorName returns the new name of a mirror Pod: the name of the static Pod and the node.
func (n *names) mirrorName(o *inspect.Object) (string, bool) {
	node := text(child(o.Content, "spec"), "nodeName")
	if child(o.Content, "metadata", "annotations")[mirrorAnnotation] == nil || n.to[node] == "" {
		return "", false
	}
	begin := len(o.Parsed.Name) - len(node)
	if begin < 1 || o.Parsed.Name[begin:] != node || o.Parsed.Name[begin-1] != '-' {
		return "", false
	}
	return o.Parsed.Name[:begin] + n.to[node], true
}

// volume holds the values that, with the node, determine the name of a VolumeAttachment.
type volume struct{ handle, driver string }

// attachmentName returns the name of the volume's VolumeAttachment, computed as in Kubernetes.
func (v volume) attachmentName(node string) string {
	return fmt.Sprintf("csi-%x", sha256.Sum256([]byte(v.handle+v.driver+node)))
}

// csiVolume returns the volume in the spec of a PersistentVolume.
func csiVolume(spec map[string]any) volume {
	csi := child(spec, "csi")
	return volume{text(csi, "volumeHandle"), text(csi, "driver")}
}

// edit replaces old names in the content of an object, in place. renamed is the object's own new
// name, or "".
func (n *names) edit(o *inspect.Object, content map[string]any, renamed string) {
	if metadata := child(content, "metadata"); renamed != "" && metadata != nil {
		metadata["name"] = renamed
	}
	e := &editor{
		names: n, namespace: o.Parsed.Namespace, name: o.Parsed.Name, renamed: renamed,
		builtin: o.Type.Builtin, calico: isCalico(o.Type.Resource.Group),
	}
	switch o.Type.Name() {
	case "configmaps", "secrets": // their data belongs to other programs
		e.walk(child(content, "metadata"), "metadata")
		return
	case "nodes":
		for _, address := range children(child(content, "status"), "addresses") {
			if text(address, "type") == "Hostname" {
				n.replace(address, "address")
			}
		}
	case "leases.coordination.k8s.io":
		if o.Parsed.Namespace == leaseNamespace && text(child(content, "spec"), "holderIdentity") == o.Parsed.Name {
			n.replace(child(content, "spec"), "holderIdentity")
		}
	case "resourceslices.resource.k8s.io":
		n.replacePool(child(content, "spec", "pool"), "name", text(child(content, "spec"), "driver"))
	case "resourceclaims.resource.k8s.io":
		for _, result := range children(child(content, "status", "allocation", "devices"), "results") {
			n.replacePool(result, "pool", text(result, "driver"))
		}
	case "rolebindings.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io":
		for _, subject := range children(content, "subjects") {
			if name, is := n.newNameIn(text(subject, "name"), userPrefix, ""); is && text(subject, "kind") == "User" {
				subject["name"] = name
			}
		}
	case "csinodetopologies.cns.vmware.com":
		n.replace(child(content, "spec"), "nodeID")
	}
	e.walk(content, "")
}

const (
	leaseNamespace = "kube-node-lease"
	userPrefix     = "system:node:" // prefix of a kubelet's user name
	selectedNode   = "volume.kubernetes.io/selected-node"
)

// replace replaces a field whose whole value is an old name.
func (n *names) replace(m map[string]any, field string) {
	if name, is := n.to[text(m, field)]; is {
		m[field] = name
	}
}

// replacePool replaces the name of a device pool named after its node.
func (n *names) replacePool(m map[string]any, field, driver string) {
	if pool := text(m, field); n.pools[driver+"/"+pool] {
		m[field] = n.to[pool]
	}
}

// editor replaces names of nodes in the fields of an object.
type editor struct {
	*names
	namespace       string
	name, renamed   string // names of the object; renamed is "" if the name stays
	builtin, calico bool
}

// walk edits the object in a field and everything below.
func (e *editor) walk(m map[string]any, field string) {
	if name, is := e.newReference(m, e.namespace); is {
		m["name"] = name
	}
	if field == "forNodes" { // hints of an EndpointSlice
		e.replace(m, "name")
	}
	if key := text(m, "key"); key != "" {
		e.walkValues(m, key, field == "matchFields" && key == "metadata.name")
	}
	for name, value := range m {
		switch value := value.(type) {
		case string:
			if is, found := e.field(name, value); found {
				m[name] = is
			}
		case map[string]any:
			if name != "managedFields" {
				e.walk(value, name)
			}
		case []any:
			e.walkList(value, name)
		}
	}
}

func (e *editor) walkList(list []any, field string) {
	for _, value := range list {
		switch value := value.(type) {
		case map[string]any:
			e.walk(value, field)
		case []any:
			e.walkList(value, field)
		}
	}
}

// walkValues edits the values of a requirement on a label or, with all, on a node name.
func (e *editor) walkValues(m map[string]any, label string, all bool) {
	values, _ := m["values"].([]any)
	for i, value := range values {
		old, _ := value.(string)
		name, is := e.labelled(label, old)
		if all {
			name, is = e.to[old]
		}
		if is {
			values[i] = name
		}
	}
}

// field returns the new value of a field that names a node.
func (e *editor) field(name, value string) (string, bool) {
	if is, found := e.labelled(name, value); found {
		return is, true
	}
	if e.calico {
		return e.calicoField(name, value)
	}
	named := name == selectedNode || e.builtin && slices.Contains([]string{"nodeName", "nominatedNodeName"}, name)
	is, found := e.to[value]
	return is, named && found
}
