package renamenode

import (
	"slices"

	"github.com/etcdshift/etcdshift/inspect"
)

// edit replaces the old names in the content of an object, in place. renamed is its own new name,
// or "".
func (n *names) edit(o *inspect.Object, content map[string]any, renamed string) {
	if metadata := child(content, "metadata"); renamed != "" && metadata != nil {
		metadata["name"] = renamed
	}
	e := &editor{
		names: n, namespace: o.Parsed.Namespace, name: o.Parsed.Name, renamed: renamed,
		builtin: o.Type.Builtin, calico: isCalico(o.Type.Resource.Group),
	}
	switch o.Type.Name() {
	case "configmaps", "secrets": // their data is text of other programs
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
			if name, is := n.after(text(subject, "name"), userPrefix, ""); is && text(subject, "kind") == "User" {
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
	userPrefix     = "system:node:" // of the user that a kubelet is
	selectedNode   = "volume.kubernetes.io/selected-node"
)

// replace replaces an old name that is the whole field.
func (n *names) replace(m map[string]any, field string) {
	if name, is := n.to[text(m, field)]; is {
		m[field] = name
	}
}

// replacePool replaces the name of a pool of devices that is named after its node.
func (n *names) replacePool(m map[string]any, field, driver string) {
	if pool := text(m, field); n.pools[driver+"/"+pool] {
		m[field] = n.to[pool]
	}
}

// editor replaces names of nodes in the fields of an object.
type editor struct {
	*names
	namespace       string
	name, renamed   string // of the object; its new name is "" where it stays
	builtin, calico bool
}

// walk edits an object that is the field of that name, and all below it.
func (e *editor) walk(m map[string]any, field string) {
	if name, is := e.referred(m, e.namespace); is {
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

// walkValues edits the values of a requirement on a label or, with all, on the name of a node.
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
