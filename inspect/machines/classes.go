package machines

import (
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
