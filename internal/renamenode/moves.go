package renamenode

import (
	"crypto/sha256"
	"fmt"

	"github.com/etcdshift/etcdshift/inspect"
)

// mirrorAnnotation is on the Pods that stand for static Pods of a machine.
const mirrorAnnotation = "kubernetes.io/config.mirror"

// newName returns the new name of an object that is named after a node.
func (n *names) newName(o *inspect.Object) (string, bool) {
	switch name := o.Type.Name(); name {
	case "leases.coordination.k8s.io":
		if o.Parsed.Namespace != leaseNamespace {
			return "", false
		}
		return n.after(o.Parsed.Name, "", "")
	case "nodes", "csinodes.storage.k8s.io", "csinodetopologies.cns.vmware.com",
		"ciliumnodes.cilium.io", "ciliumbgpnodeconfigs.cilium.io", "ciliumbgpnodeconfigoverrides.cilium.io":
		return n.after(o.Parsed.Name, "", "")
	case "pods":
		return n.mirrorName(o)
	}
	if isCalico(o.Type.Resource.Group) {
		return n.calicoName(o)
	}
	return "", false
}

// mirrorName returns the new name of a mirror Pod: that of the static Pod, and the node.
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

// volume is what the name of a VolumeAttachment is computed of, beside the node.
type volume struct{ handle, driver string }

// attachmentName is the name that Kubernetes gives to the VolumeAttachment of a volume.
func (v volume) attachmentName(node string) string {
	return fmt.Sprintf("csi-%x", sha256.Sum256([]byte(v.handle+v.driver+node)))
}

// csiVolume is the volume in the spec of a PersistentVolume.
func csiVolume(spec map[string]any) volume {
	csi := child(spec, "csi")
	return volume{text(csi, "volumeHandle"), text(csi, "driver")}
}
