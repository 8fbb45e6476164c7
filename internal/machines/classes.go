package machines

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/native"
)

// classTies is about a class whose Pods or volumes are on nodes of certain names.
func classTies(e *inspect.Entry, resource string, tie addTie) {
	var named bool
	if resource == "storageclasses.storage.k8s.io" {
		class, _ := native.As[storagev1.StorageClass](e.ParseValue()) // others report what does not decode
		named = len(class.AllowedTopologies) > 0 && !slices.ContainsFunc(class.AllowedTopologies, func(t corev1.TopologySelectorTerm) bool {
			return !slices.ContainsFunc(t.MatchLabelExpressions, func(r corev1.TopologySelectorLabelRequirement) bool { return isName(r.Key) })
		})
	} else {
		class, _ := native.As[runtimeClass](e.ParseValue())
		for _, s := range []*nodev1.Scheduling{class.Scheduling, class.Spec.Scheduling} {
			named = named || s != nil && slices.ContainsFunc(slices.Collect(maps.Keys(s.NodeSelector)), isName)
		}
	}
	if named {
		tie(CodeNodePinned, resource, "")
	}
}

// runtimeClass has the scheduling of a RuntimeClass, which v1alpha1 has in spec.
type runtimeClass struct {
	Scheduling *nodev1.Scheduling `json:"scheduling" protobuf:"bytes,4,opt,name=scheduling"`
	Spec       struct {
		Scheduling *nodev1.Scheduling `json:"scheduling"`
	} `json:"spec"`
}

// capacityTies is about what a driver has said of the space on one node.
func capacityTies(e *inspect.Entry, resource string, tie addTie) {
	capacity, _ := native.As[storagev1.CSIStorageCapacity](e.ParseValue())
	topology := capacity.NodeTopology
	if topology == nil {
		return
	}
	names := map[string]bool{}
	for label, value := range topology.MatchLabels {
		names[value] = isName(label)
	}
	for _, r := range topology.MatchExpressions {
		for _, value := range r.Values {
			names[value] = names[value] || r.Operator == metav1.LabelSelectorOpIn && isName(r.Key)
		}
	}
	for _, node := range slices.Sorted(maps.Keys(names)) {
		if names[node] {
			tie(CodeNodeRecords, resource, node)
			return
		}
	}
}

// bindingTies is about a binding that gives a node by its name more than nodes have.
func bindingTies(e *inspect.Entry, resource string, tie addTie) {
	binding, _ := native.As[rbacv1.ClusterRoleBinding](e.ParseValue()) // a RoleBinding has the same fields
	for _, s := range binding.Subjects {
		if node, is := strings.CutPrefix(s.Name, "system:node:"); is && s.Kind == rbacv1.UserKind {
			tie(CodeNodeUser, resource, node)
			return
		}
	}
}

// nodes say where devices are, or the Pod of a certificate.
type nodes struct {
	NodeName     string               `json:"nodeName"`
	NodeSelector *corev1.NodeSelector `json:"nodeSelector"`
}

// onNodes has the nodes of a ResourceSlice or a PodCertificateRequest. A device has them in basic
// before v1beta2.
type onNodes struct {
	Spec struct {
		nodes   `json:",inline"`
		Devices []struct {
			nodes `json:",inline"`
			Basic nodes `json:"basic"`
		} `json:"devices"`
	} `json:"spec"`
}

// claimed has the nodes of a ResourceClaim.
type claimed struct {
	Status struct {
		Allocation nodes `json:"allocation"`
	} `json:"status"`
}

// deviceTies is about what names the nodes of devices or of certificates for Pods.
func deviceTies(e *inspect.Entry, resource string, tie addTie) {
	var all []nodes
	if resource == "resourceclaims.resource.k8s.io" {
		claim, _ := native.As[claimed](e.ParseValue()) // others report what does not decode
		all = append(all, claim.Status.Allocation)
	} else {
		on, _ := native.As[onNodes](e.ParseValue())
		all = append(all, on.Spec.nodes)
		for _, device := range on.Spec.Devices {
			all = append(all, device.nodes, device.Basic)
		}
	}
	named := map[string]bool{}
	for _, n := range all {
		for _, name := range append(nodesOf(n.NodeSelector), n.NodeName) {
			named[name] = named[name] || name != ""
		}
	}
	delete(named, "")
	switch all := slices.Sorted(maps.Keys(named)); {
	case len(all) == 1:
		tie(CodeNodeRecords, resource, all[0])
	case len(all) > 1:
		tie(CodeNodeRecords, resource, "")
	}
}

// SelectedNode is the annotation of a claim with the node that the scheduler chose, for which the
// volume is to be made.
const SelectedNode = "volume.kubernetes.io/selected-node"

// claimTies is about a claim that waits for its volume.
func claimTies(e *inspect.Entry, resource string, tie addTie) {
	if !bytes.Contains(e.Value, []byte(SelectedNode)) {
		return
	}
	claim, err := native.As[corev1.PersistentVolumeClaim](e.ParseValue())
	if node := claim.Annotations[SelectedNode]; err == nil && node != "" && claim.Spec.VolumeName == "" {
		tie(CodeNodePinned, resource, node)
	}
}
