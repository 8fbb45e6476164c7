package machines

import (
	"bytes"
	"maps"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/native"
)

// classTies finds a class with Pods or volumes on named nodes.
func classTies(e *inspect.Entry, resource string, tie addTie) {
	var named bool
	if resource == "storageclasses.storage.k8s.io" {
		class, _ := native.As[storagev1.StorageClass](e.ParseValue()) // undecodable values are reported elsewhere
		named = len(class.AllowedTopologies) > 0 && !slices.ContainsFunc(class.AllowedTopologies,
			func(t corev1.TopologySelectorTerm) bool {
				return !slices.ContainsFunc(t.MatchLabelExpressions,
					func(r corev1.TopologySelectorLabelRequirement) bool { return isName(r.Key) })
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

// runtimeClass has the scheduling of a RuntimeClass; v1alpha1 has it in spec.
type runtimeClass struct {
	Scheduling *nodev1.Scheduling `json:"scheduling" protobuf:"bytes,4,opt,name=scheduling"`
	Spec       struct {
		Scheduling *nodev1.Scheduling `json:"scheduling"`
	} `json:"spec"`
}

// capacityTies finds the reported capacity of a driver on one node.
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

// bindingTies finds a binding that gives additional permissions to a named node.
func bindingTies(e *inspect.Entry, resource string, tie addTie) {
	binding, _ := native.As[rbacv1.ClusterRoleBinding](e.ParseValue()) // a RoleBinding has the same fields
	for _, s := range binding.Subjects {
		if node, is := strings.CutPrefix(s.Name, "system:node:"); is && s.Kind == rbacv1.UserKind {
			tie(CodeNodeUser, resource, node)
			return
		}
	}
}

// nodes holds the location of devices, or of the Pod of a certificate.
type nodes struct {
	NodeName     string               `json:"nodeName"`
	NodeSelector *corev1.NodeSelector `json:"nodeSelector"`
}

// onNodes has the nodes of a ResourceSlice or a PodCertificateRequest. Before v1beta2 a device has
// them in basic.
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

// deviceTies finds the nodes of devices or of certificates for Pods.
func deviceTies(e *inspect.Entry, resource string, tie addTie) {
	var all []nodes
	if resource == "resourceclaims.resource.k8s.io" {
		claim, _ := native.As[claimed](e.ParseValue()) // undecodable values are reported elsewhere
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
		for _, name := range append(NodesOf(n.NodeSelector), n.NodeName) {
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

// SelectedNode is the annotation of a claim with the node that the scheduler chose for the new
// volume.
const SelectedNode = "volume.kubernetes.io/selected-node"

// claimTies finds a claim that waits for its volume.
func claimTies(e *inspect.Entry, resource string, tie addTie) {
	if !bytes.Contains(e.Value, []byte(SelectedNode)) {
		return
	}
	claim, err := native.As[corev1.PersistentVolumeClaim](e.ParseValue())
	if node := claim.Annotations[SelectedNode]; err == nil && node != "" && claim.Spec.VolumeName == "" {
		tie(CodeNodePinned, resource, node)
	}
}

// reads holds decoders of kinds with many objects, which skip fields without ties to a machine.
type reads struct {
	pod       func(*inspect.Entry) (*corev1.Pod, error)
	secret    func(*inspect.Entry) (*corev1.Secret, error)
	service   func(*inspect.Entry) (*corev1.Service, error)
	volume    func(*inspect.Entry) (*corev1.PersistentVolume, error)
	templates map[string]func(*inspect.Entry) *corev1.PodSpec // by resource; nil for a resource without Pods
}

func newReads() reads {
	return reads{partly[corev1.Pod](), partly[corev1.Secret](), partly[corev1.Service](),
		partly[corev1.PersistentVolume](),
		map[string]func(*inspect.Entry) *corev1.PodSpec{
			"deployments.apps":  template(func(o *appsv1.Deployment) *corev1.PodSpec { return &o.Spec.Template.Spec }),
			"statefulsets.apps": template(func(o *appsv1.StatefulSet) *corev1.PodSpec { return &o.Spec.Template.Spec }),
			"daemonsets.apps":   template(func(o *appsv1.DaemonSet) *corev1.PodSpec { return &o.Spec.Template.Spec }),
			"jobs.batch":        template(func(o *batchv1.Job) *corev1.PodSpec { return &o.Spec.Template.Spec }),
			"podtemplates":      template(func(o *corev1.PodTemplate) *corev1.PodSpec { return &o.Template.Spec }),
			"cronjobs.batch": template(func(o *batchv1.CronJob) *corev1.PodSpec {
				return &o.Spec.JobTemplate.Spec.Template.Spec
			}),
			"replicasets.apps": template(func(o *appsv1.ReplicaSet) *corev1.PodSpec {
				return uncontrolled(o,
					&o.Spec.Template)
			}),
			"replicationcontrollers": template(func(o *corev1.ReplicationController) *corev1.PodSpec {
				return uncontrolled(o, o.Spec.Template)
			}),
		}}
}

// uncontrolled returns the Pod spec of a workload without a controller; a controller would have the
// tie itself.
func uncontrolled(workload metav1.Object, template *corev1.PodTemplateSpec) *corev1.PodSpec {
	if template == nil || metav1.GetControllerOfNoCopy(workload) != nil {
		return nil
	}
	return &template.Spec
}

// partly returns a variant of native.As without unused fields.
func partly[T any]() func(*inspect.Entry) (*T, error) {
	direct := native.NewDirect(new(T), tied())
	return func(e *inspect.Entry) (*T, error) {
		out := new(T)
		if v, err := e.ParseValue(); err == nil && direct.Decode(v, out) {
			return out, nil
		}
		all, err := native.As[T](e.ParseValue())
		return &all, err
	}
}

// template returns a decoder of the Pod template in an object.
func template[T any](of func(*T) *corev1.PodSpec) func(*inspect.Entry) *corev1.PodSpec {
	read := partly[T]()
	return func(e *inspect.Entry) *corev1.PodSpec {
		o, err := read(e)
		if err != nil {
			return nil // undecodable values are reported elsewhere
		}
		return of(o)
	}
}

// tied lists the fields of large structs with ties to a machine.
func tied() map[reflect.Type][]string {
	return map[reflect.Type][]string{
		reflect.TypeFor[metav1.ObjectMeta]():  {"Annotations", "OwnerReferences"},
		reflect.TypeFor[corev1.PodSpec]():     {"NodeName", "NodeSelector", "Affinity"},
		reflect.TypeFor[corev1.PodStatus]():   {"Phase"},
		reflect.TypeFor[corev1.Secret]():      {"Type", "Data"},
		reflect.TypeFor[corev1.ServiceSpec](): {"Type", "ExternalIPs", "Ports"},
	}
}
