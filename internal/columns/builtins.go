package columns

import (
	"cmp"
	"fmt"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
)

// Columns shared by several kinds.
const (
	podColumns     = "*Containers|*Images"
	bindingColumns = "Name|Role|Age|*Users|*Groups|*ServiceAccounts"
	countColumns   = "Name|Desired|Current|Ready|"
)

var webhooks = builtin{"Name|Webhooks|Age",
	typed(func(o *admissionv1.ValidatingWebhookConfiguration) []any { return []any{len(o.Webhooks)} })}

var policyBinding = builtin{"Name|PolicyName|ParamRef|Age",
	typed(func(o *admissionv1.ValidatingAdmissionPolicyBinding) []any {
		return []any{o.Spec.PolicyName, paramRef(o.Spec.ParamRef)}
	})}

// builtins returns the columns of built-in kinds, by resource, as in kubectl with a server of 1.36.
var builtins = sync.OnceValue(func() map[string]builtin {
	return map[string]builtin{
		"pods": {"Name|Ready|Status|Restarts|Age|*IP|*Node|*Nominated Node|*Readiness Gates", typed(podCells)},
		"podtemplates": {"Name|Containers|Images|Pod Labels", typed(func(o *corev1.PodTemplate) []any {
			return containers(o.Template.Spec, labels.FormatLabels(o.Template.Labels))
		})},
		"replicationcontrollers": {countColumns + "Age|" + podColumns + "|*Selector",
			typed(func(o *corev1.ReplicationController) []any {
				spec := ptr.Deref(o.Spec.Template, corev1.PodTemplateSpec{}).Spec
				return append([]any{orElse(o.Spec.Replicas, 1), o.Status.Replicas, o.Status.ReadyReplicas},
					containers(spec, labels.FormatLabels(o.Spec.Selector))...)
			})},
		"scales.autoscaling": {"Name|Desired|Available|Age",
			typed(func(o *autoscalingv1.Scale) []any { return []any{o.Spec.Replicas, o.Status.Replicas} })},
		"services":  {"Name|Type|Cluster-IP|External-IP|Port(s)|Age|*Selector", typed(serviceCells)},
		"endpoints": {"Name|Endpoints|Age", typed(endpointsCells)},
		"nodes": {
			"Name|Status|Roles|Age|Version|*Internal-IP|*External-IP|*OS-Image|*Kernel-Version|*Container-Runtime",
			typed(nodeCells)},
		"events": {"Last Seen|Type|Reason|Object|*Subobject|*Source|Message|*First Seen|*Count|*Name",
			typed(eventCells)},
		"namespaces": {
			"Name|Status|Age", typed(func(o *corev1.Namespace) []any {
				return []any{cmp.Or(o.Status.Phase,
					corev1.NamespaceActive)}
			})},
		"secrets": {"Name|Type|Data|Age",
			typed(func(o *corev1.Secret) []any { return []any{o.Type, len(o.Data)} })},
		"configmaps": {"Name|Data|Age",
			typed(func(o *corev1.ConfigMap) []any { return []any{len(o.Data) + len(o.BinaryData)} })},
		"serviceaccounts": {"Name|Age", ofMetadata()},
		"persistentvolumes": {
			"Name|Capacity|Access Modes|Reclaim " +
				"Policy|Status|Claim|StorageClass|VolumeAttributesClass|Reason|Age|*VolumeMode",
			typed(persistentVolumeCells)},
		"persistentvolumeclaims": {
			"Name|Status|Volume|Capacity|Access Modes|StorageClass|VolumeAttributesClass|Age|*VolumeMode",
			typed(persistentVolumeClaimCells)},
		"resourcequotas": {"Name|Request|Limit|Age", typed(resourceQuotaCells)},

		"deployments.apps": {"Name|Ready|Up-to-date|Available|Age|" + podColumns + "|*Selector",
			typed(func(o *appsv1.Deployment) []any {
				ready := fmt.Sprintf("%d/%d", o.Status.ReadyReplicas, orElse(o.Spec.Replicas, 1))
				return append([]any{ready, o.Status.UpdatedReplicas, o.Status.AvailableReplicas},
					containers(o.Spec.Template.Spec, metav1.FormatLabelSelector(o.Spec.Selector))...)
			})},
		"replicasets.apps": {countColumns + "Age|" + podColumns + "|*Selector", typed(func(o *appsv1.ReplicaSet) []any {
			return append([]any{orElse(o.Spec.Replicas, 1), o.Status.Replicas, o.Status.ReadyReplicas},
				containers(o.Spec.Template.Spec, metav1.FormatLabelSelector(o.Spec.Selector))...)
		})},
		"daemonsets.apps": {countColumns + "Up-to-date|Available|Node Selector|Age|" + podColumns + "|*Selector",
			typed(func(o *appsv1.DaemonSet) []any {
				s, spec := o.Status, o.Spec.Template.Spec
				return append([]any{s.DesiredNumberScheduled, s.CurrentNumberScheduled, s.NumberReady,
					s.UpdatedNumberScheduled, s.NumberAvailable,
					labels.FormatLabels(spec.NodeSelector)}, containers(spec,
					metav1.FormatLabelSelector(o.Spec.Selector))...)
			})},
		"statefulsets.apps": {"Name|Ready|Age|" + podColumns, typed(func(o *appsv1.StatefulSet) []any {
			return append([]any{fmt.Sprintf("%d/%d", o.Status.ReadyReplicas, orElse(o.Spec.Replicas, 1))},
				containers(o.Spec.Template.Spec)...)
		})},
		"controllerrevisions.apps": {"Name|Controller|Revision|Age", typed(controllerRevisionCells)},
		"jobs.batch": {"Name|Status|Completions|Duration|Age|" + podColumns + "|*Selector",
			typed(jobCells)},
		"cronjobs.batch": {"Name|Schedule|Timezone|Suspend|Active|Last Schedule|Age|" +
			podColumns + "|*Selector", typed(cronJobCells)},
		"horizontalpodautoscalers.autoscaling": {"Name|Reference|Targets|MinPods|MaxPods|Replicas|Age",
			typed(autoscalerCells)},
		"poddisruptionbudgets.policy": {"Name|Min Available|Max Unavailable|Allowed Disruptions|Age",
			typed(func(o *policyv1.PodDisruptionBudget) []any {
				return []any{textOr(o.Spec.MinAvailable, "N/A"), textOr(o.Spec.MaxUnavailable, "N/A"),
					o.Status.DisruptionsAllowed}
			})},

		"endpointslices.discovery.k8s.io":  {"Name|AddressType|Ports|Endpoints|Age", typed(endpointSliceCells)},
		"ingresses.networking.k8s.io":      {"Name|Class|Hosts|Address|Ports|Age", typed(ingressCells)},
		"ingressclasses.networking.k8s.io": {"Name|Controller|Parameters|Age", typed(ingressClassCells)},
		"networkpolicies.networking.k8s.io": {"Name|Pod-Selector|Age", typed(func(o *networkingv1.NetworkPolicy) []any {
			return []any{metav1.FormatLabelSelector(&o.Spec.PodSelector)}
		})},
		"ipaddresses.networking.k8s.io": {"Name|ParentRef", typed(func(o *networkingv1.IPAddress) []any {
			if p := o.Spec.ParentRef; p != nil {
				return []any{joinSet("/", p.Group, p.Resource, p.Namespace, p.Name)}
			}
			return []any{""}
		})},
		"servicecidrs.networking.k8s.io": {"Name|CIDRs|Age", typed(func(o *networkingv1.ServiceCIDR) []any {
			return []any{strings.Join(o.Spec.CIDRs, ",")}
		})},

		"storageclasses.storage.k8s.io": {"Name|Provisioner|ReclaimPolicy|VolumeBindingMode|AllowVolumeExpansion|Age",
			typed(storageClassCells)},
		"volumeattachments.storage.k8s.io": {"Name|Attacher|PV|Node|Attached|Age",
			typed(func(o *storagev1.VolumeAttachment) []any {
				return []any{o.Spec.Attacher, orElse(o.Spec.Source.PersistentVolumeName, ""), o.Spec.NodeName,
					o.Status.Attached}
			})},
		"csinodes.storage.k8s.io": {"Name|Drivers|Age",
			typed(func(o *storagev1.CSINode) []any { return []any{len(o.Spec.Drivers)} })},
		"csidrivers.storage.k8s.io": {
			"Name|AttachRequired|PodInfoOnMount|StorageCapacity|TokenRequests|RequiresRepublish|Modes|Age",
			typed(csiDriverCells)},
		"volumeattributesclasses.storage.k8s.io": {
			"Name|DriverName|Age",
			typed(func(o *storagev1.VolumeAttributesClass) []any { return []any{o.DriverName} })},

		"rolebindings.rbac.authorization.k8s.io":        {bindingColumns, typed(bindingCells)},
		"clusterrolebindings.rbac.authorization.k8s.io": {bindingColumns, typed(bindingCells)},
		"certificatesigningrequests.certificates.k8s.io": {"Name|Age|SignerName|Requestor|RequestedDuration|Condition",
			typed(signingRequestCells)},
		"leases.coordination.k8s.io": {
			"Name|Holder|Age", typed(func(o *coordinationv1.Lease) []any {
				return []any{orElse(o.Spec.HolderIdentity,
					"")}
			})},
		"priorityclasses.scheduling.k8s.io": {"Name|Value|Global-Default|Age|PreemptionPolicy",
			typed(func(o *schedulingv1.PriorityClass) []any {
				return []any{o.Value, o.GlobalDefault, orElse(o.PreemptionPolicy, corev1.PreemptLowerPriority)}
			})},
		"runtimeclasses.node.k8s.io": {"Name|Handler|Age",
			typed(func(o *nodev1.RuntimeClass) []any { return []any{o.Handler} })},

		"validatingwebhookconfigurations.admissionregistration.k8s.io": webhooks,
		"mutatingwebhookconfigurations.admissionregistration.k8s.io":   webhooks,
		"validatingadmissionpolicies.admissionregistration.k8s.io": {"Name|Validations|ParamKind|Age",
			typed(policyCells)},
		"validatingadmissionpolicybindings.admissionregistration.k8s.io": policyBinding,
		"mutatingadmissionpolicies.admissionregistration.k8s.io": {"Name|Mutations|ParamKind|Age",
			typed(policyCells)},
		"mutatingadmissionpolicybindings.admissionregistration.k8s.io": policyBinding,
		"flowschemas.flowcontrol.apiserver.k8s.io": {
			"Name|PriorityLevel|MatchingPrecedence|DistinguisherMethod|Age|MissingPL", typed(flowSchemaCells)},
		"prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": {
			"Name|Type|NominalConcurrencyShares|Queues|HandSize|QueueLengthLimit|Age", typed(priorityLevelCells)},
		"apiservices.apiregistration.k8s.io": {"Name|Service|Available|Age", typed(apiServiceCells)},
	}
})
