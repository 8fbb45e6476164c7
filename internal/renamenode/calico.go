package renamenode

import (
	"bytes"
	"encoding/json"
	"net"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/machines"
)

// isCalico reports whether Calico stores its kinds in a group.
func isCalico(group string) bool {
	return group == "crd.projectcalico.org" || group == "projectcalico.org"
}

// metadataAnnotation holds the metadata of a v3 object in its v1 record, as JSON.
const metadataAnnotation = "projectcalico.org/metadata"

// tunnelHandles returns the prefixes of handle IDs of tunnel addresses; the node name follows.
func tunnelHandles() []string {
	return []string{"ipip-tunnel-addr-", "vxlan-tunnel-addr-", "vxlan-v6-tunnel-addr-", "wireguard-tunnel-addr-",
		"wireguard-v6-tunnel-addr-"}
}

// calicoName returns the new name of a Calico record named after a node.
func (n *names) calicoName(o *inspect.Object) (string, bool) {
	name, spec := o.Parsed.Name, child(o.Content, "spec")
	switch o.Type.Resource.Resource {
	case "felixconfigurations", "bgpconfigurations":
		return n.newNameIn(name, "node.", "")
	case "hostendpoints":
		return n.newNameIn(name, "", "-auto-hep")
	case "ipamhandles":
		is, found := n.handle(text(spec, "handleID"))
		return strings.ToLower(is), found
	case "blockaffinities":
		node := text(spec, "node")
		_, block, err := net.ParseCIDR(text(spec, "cidr"))
		if n.to[node] == "" || err != nil || name != machines.AffinityName(node, block) ||
			text(spec, "type") == "virtual" {
			return "", false
		}
		return machines.AffinityName(n.to[node], block), true
	}
	return "", false
}

// handle returns the new ID of the handle of a tunnel address.
func (n *names) handle(id string) (string, bool) {
	for _, begin := range tunnelHandles() {
		if is, found := n.newNameIn(id, begin, ""); found {
			return is, true
		}
	}
	return "", false
}

// calicoField returns the new value of a Calico field that names a node.
func (e *editor) calicoField(name, value string) (string, bool) {
	switch name {
	case "node":
		is, found := e.to[value]
		return is, found
	case "affinity":
		return e.newNameIn(value, "host:", "")
	case "handle_id", "handleID":
		return e.handle(value)
	case metadataAnnotation:
		return e.metadata(value)
	}
	return "", false
}

// metadata edits the annotation with the metadata of a v3 object.
func (e *editor) metadata(annotation string) (string, bool) {
	var m map[string]any
	if json.Unmarshal([]byte(annotation), &m) != nil {
		return "", false
	}
	before, err := json.Marshal(m)
	if err != nil {
		return "", false
	}
	e.walk(m, "metadata")
	if e.renamed != "" && text(m, "name") == e.name {
		m["name"] = e.renamed
	}
	after, err := json.Marshal(m)
	return string(after), err == nil && !bytes.Equal(before, after)
}

// calicoAffinities returns the resource of block affinities in a group.
func calicoAffinities(group string) schema.GroupResource {
	return schema.GroupResource{Group: group, Resource: "blockaffinities"}
}
