package columns

import (
	"cmp"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/utils/ptr"
)

// builtins are the columns of built-in kinds, by resource, as those of kubectl with a server of 1.36.
func builtins() map[string]builtin {
	const pods = "*Containers|*Images"
	return map[string]builtin{
		"pods":                   {"Name|Ready|Status|Restarts|Age|*IP|*Node|*Nominated Node|*Readiness Gates", timed(podRow)},
		"podtemplates":           {"Name|Containers|Images|Pod Labels", typed(podTemplateRow)},
		"replicationcontrollers": {"Name|Desired|Current|Ready|Age|" + pods + "|*Selector", typed(replicationControllerRow)},
		"services":               {"Name|Type|Cluster-IP|External-IP|Port(s)|Age|*Selector", typed(serviceRow)},
		"endpoints":              {"Name|Endpoints|Age", typed(endpointsRow)},
		"nodes": {"Name|Status|Roles|Age|Version|*Internal-IP|*External-IP|*OS-Image|*Kernel-Version|*Container-Runtime",
			typed(nodeRow)},
		"events": {"Last Seen|Type|Reason|Object|*Subobject|*Source|Message|*First Seen|*Count|*Name", timed(eventRow)},
		"namespaces": {"Name|Status|Age", typed(func(o *corev1.Namespace) []any {
			return []any{cmp.Or(string(o.Status.Phase), string(corev1.NamespaceActive))}
		})},
		"secrets":         {"Name|Type|Data|Age", typed(func(o *corev1.Secret) []any { return []any{string(o.Type), len(o.Data)} })},
		"configmaps":      {"Name|Data|Age", typed(func(o *corev1.ConfigMap) []any { return []any{len(o.Data) + len(o.BinaryData)} })},
		"serviceaccounts": {"Name|Age", nil},
		"persistentvolumes": {"Name|Capacity|Access Modes|Reclaim Policy|Status|Claim|StorageClass|VolumeAttributesClass|Reason|Age|*VolumeMode",
			typed(persistentVolumeRow)},
		"persistentvolumeclaims": {"Name|Status|Volume|Capacity|Access Modes|StorageClass|VolumeAttributesClass|Age|*VolumeMode",
			typed(persistentVolumeClaimRow)},
		"resourcequotas": {"Name|Request|Limit|Age", typed(resourceQuotaRow)},

		"deployments.apps": {"Name|Ready|Up-to-date|Available|Age|" + pods + "|*Selector", typed(deploymentRow)},
		"replicasets.apps": {"Name|Desired|Current|Ready|Age|" + pods + "|*Selector", typed(replicaSetRow)},
		"daemonsets.apps": {"Name|Desired|Current|Ready|Up-to-date|Available|Node Selector|Age|" + pods + "|*Selector",
			typed(daemonSetRow)},
		"statefulsets.apps":                    {"Name|Ready|Age|" + pods, typed(statefulSetRow)},
		"controllerrevisions.apps":             {"Name|Controller|Revision|Age", typed(controllerRevisionRow)},
		"jobs.batch":                           {"Name|Status|Completions|Duration|Age|" + pods + "|*Selector", timed(jobRow)},
		"cronjobs.batch":                       {"Name|Schedule|Timezone|Suspend|Active|Last Schedule|Age|" + pods + "|*Selector", timed(cronJobRow)},
		"horizontalpodautoscalers.autoscaling": {"Name|Reference|Targets|MinPods|MaxPods|Replicas|Age", typed(autoscalerRow)},
		"poddisruptionbudgets.policy":          {"Name|Min Available|Max Unavailable|Allowed Disruptions|Age", typed(podDisruptionBudgetRow)},

		"endpointslices.discovery.k8s.io":   {"Name|AddressType|Ports|Endpoints|Age", typed(endpointSliceRow)},
		"ingresses.networking.k8s.io":       {"Name|Class|Hosts|Address|Ports|Age", typed(ingressRow)},
		"ingressclasses.networking.k8s.io":  {"Name|Controller|Parameters|Age", typed(ingressClassRow)},
		"networkpolicies.networking.k8s.io": {"Name|Pod-Selector|Age", typed(func(o *networkingv1.NetworkPolicy) []any { return []any{selector(&o.Spec.PodSelector)} })},
		"ipaddresses.networking.k8s.io":     {"Name|ParentRef", typed(ipAddressRow)},
		"servicecidrs.networking.k8s.io":    {"Name|CIDRs|Age", typed(func(o *networkingv1.ServiceCIDR) []any { return []any{strings.Join(o.Spec.CIDRs, ",")} })},

		"storageclasses.storage.k8s.io":    {"=Name|Provisioner|ReclaimPolicy|VolumeBindingMode|AllowVolumeExpansion|Age", typed(storageClassRow)},
		"volumeattachments.storage.k8s.io": {"Name|Attacher|PV|Node|Attached|Age", typed(volumeAttachmentRow)},
		"csinodes.storage.k8s.io":          {"Name|Drivers|Age", typed(func(o *storagev1.CSINode) []any { return []any{len(o.Spec.Drivers)} })},
		"csidrivers.storage.k8s.io": {"Name|AttachRequired|PodInfoOnMount|StorageCapacity|TokenRequests|RequiresRepublish|Modes|Age",
			typed(csiDriverRow)},
		"volumeattributesclasses.storage.k8s.io": {"Name|DriverName|Age", typed(func(o *storagev1.VolumeAttributesClass) []any { return []any{o.DriverName} })},

		"roles.rbac.authorization.k8s.io":               {"Name|Created At", nil},
		"clusterroles.rbac.authorization.k8s.io":        {"Name|Created At", nil},
		"rolebindings.rbac.authorization.k8s.io":        {"Name|Role|Age|*Users|*Groups|*ServiceAccounts", typed(bindingRow)},
		"clusterrolebindings.rbac.authorization.k8s.io": {"Name|Role|Age|*Users|*Groups|*ServiceAccounts", typed(bindingRow)},
		"certificatesigningrequests.certificates.k8s.io": {"Name|Age|SignerName|Requestor|RequestedDuration|Condition",
			typed(signingRequestRow)},
		"leases.coordination.k8s.io":        {"Name|Holder|Age", typed(func(o *coordinationv1.Lease) []any { return []any{ptr.Deref(o.Spec.HolderIdentity, "")} })},
		"priorityclasses.scheduling.k8s.io": {"Name|Value|Global-Default|Age|PreemptionPolicy", typed(priorityClassRow)},
		"runtimeclasses.node.k8s.io":        {"Name|Handler|Age", typed(func(o *nodev1.RuntimeClass) []any { return []any{o.Handler} })},

		"validatingwebhookconfigurations.admissionregistration.k8s.io": {"Name|Webhooks|Age", typed(func(o *admissionv1.ValidatingWebhookConfiguration) []any { return []any{len(o.Webhooks)} })},
		"mutatingwebhookconfigurations.admissionregistration.k8s.io":   {"Name|Webhooks|Age", typed(func(o *admissionv1.ValidatingWebhookConfiguration) []any { return []any{len(o.Webhooks)} })},
		"validatingadmissionpolicies.admissionregistration.k8s.io": {"Name|Validations|ParamKind|Age", typed(func(o *admissionv1.ValidatingAdmissionPolicy) []any {
			return []any{int64(len(o.Spec.Validations)), paramKind(o.Spec.ParamKind)}
		})},
		"validatingadmissionpolicybindings.admissionregistration.k8s.io": {"Name|PolicyName|ParamRef|Age", typed(policyBindingRow)},
		"mutatingadmissionpolicies.admissionregistration.k8s.io":         {"Name|Mutations|ParamKind|Age", mutatingPolicyRow},
		"mutatingadmissionpolicybindings.admissionregistration.k8s.io":   {"Name|PolicyName|ParamRef|Age", typed(policyBindingRow)},
		"flowschemas.flowcontrol.apiserver.k8s.io": {"Name|PriorityLevel|MatchingPrecedence|DistinguisherMethod|Age|MissingPL",
			typed(flowSchemaRow)},
		"prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": {
			"Name|Type|NominalConcurrencyShares|Queues|HandSize|QueueLengthLimit|Age", typed(priorityLevelRow)},
		"apiservices.apiregistration.k8s.io": {"Name|Service|Available|Age", apiServiceRow},
	}
}
