package doctor

import (
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/etcdshift/etcdshift/finding"
)

// need is a request that must pass for a cluster, or a webhook, to start.
type need struct {
	operation       admissionv1.OperationType
	group, resource string // with its subresource, as rules name it
	kind            string
	namespace       string // "" for a cluster-scoped object
	by              string // who makes it
	what            string
	labels          labels.Set // of the objects that it is about; none for any
}

// Who makes the requests, as kubeadm names them.
const (
	byAPIServer = "system:apiserver"
	byKubelet   = "system:node:"
	byScheduler = "system:kube-scheduler"
	byManager   = "system:kube-controller-manager"
	byAccount   = "system:serviceaccount:kube-system:"
)

const (
	create = admissionv1.Create
	update = admissionv1.Update
)

// ownNamespaces are those that API servers make where they are not there.
func ownNamespaces() []string {
	return []string{corev1.NamespaceDefault, corev1.NamespaceNodeLease, "kube-public", "kube-system"}
}

// needs returns the requests that the Pods of a Service, nodes and the control plane need to start.
func needs(svc *corev1.Service) map[*finding.Code][]need {
	own := labels.Set{"kubernetes.io/service-name": svc.Name}
	return map[*finding.Code][]need{
		codeWebhookDeadlock: {
			{create, "", "pods", "Pod", svc.Namespace, byAccount + "replicaset-controller", "creating its Pods", svc.Spec.Selector},
			{create, "", "pods/binding", "Binding", svc.Namespace, byScheduler, "scheduling them", nil},
			{update, "", "pods/status", "Pod", svc.Namespace, byKubelet, "their status", svc.Spec.Selector},
			{create, "", "serviceaccounts/token", "TokenRequest", svc.Namespace, byKubelet, "the tokens of its Pods", nil},
			{create, "apps", "replicasets", "ReplicaSet", svc.Namespace, byAccount + "deployment-controller", "its ReplicaSets", nil},
			{update, "apps", "replicasets", "ReplicaSet", svc.Namespace, byAccount + "deployment-controller", "its ReplicaSets", nil},
			{create, "apps", "controllerrevisions", "ControllerRevision", svc.Namespace, byAccount + "daemon-set-controller", "its ControllerRevisions", nil},
			{create, "discovery.k8s.io", "endpointslices", "EndpointSlice", svc.Namespace, byAccount + "endpointslice-controller", "its EndpointSlices", own},
			{update, "discovery.k8s.io", "endpointslices", "EndpointSlice", svc.Namespace, byAccount + "endpointslice-controller", "its EndpointSlices", own},
			{create, "", "endpoints", "Endpoints", svc.Namespace, byAccount + "endpoint-controller", "its Endpoints", nil},
			{update, "", "endpoints", "Endpoints", svc.Namespace, byAccount + "endpoint-controller", "its Endpoints", nil},
		},
		codeWebhookCore: slices.Concat(nodeNeeds(), systemNeeds(), serverNeeds()),
	}
}

// nodeNeeds are those of kubelets, leaders and of Pods on nodes.
func nodeNeeds() []need {
	const leases, storage, certificates = "coordination.k8s.io", "storage.k8s.io", "certificates.k8s.io"
	const byCertificates = byAccount + "certificate-controller"
	return []need{
		{update, "", "nodes/status", "Node", "", byKubelet, "the status of nodes", nil},
		{update, leases, "leases", "Lease", corev1.NamespaceNodeLease, byKubelet, "heartbeats of nodes", nil},
		{create, leases, "leases", "Lease", corev1.NamespaceNodeLease, byKubelet, "heartbeats of nodes", nil},
		{update, "coordination.k8s.io", "leases", "Lease", "kube-system", byManager, "leader election in kube-system", nil},
		{create, "coordination.k8s.io", "leases", "Lease", "kube-system", byManager, "leader election in kube-system", nil},
		{create, "", "nodes", "Node", "", byKubelet, "joining nodes", nil},
		{update, "", "nodes", "Node", "", byAccount + "node-controller", "changes of nodes", nil},
		{create, storage, "csinodes", "CSINode", "", byKubelet, "drivers of volumes on nodes", nil},
		{update, storage, "csinodes", "CSINode", "", byKubelet, "drivers of volumes on nodes", nil},
		{create, storage, "volumeattachments", "VolumeAttachment", "", byAccount + "attachdetach-controller", "attaching volumes", nil},
		{create, certificates, "certificatesigningrequests", "CertificateSigningRequest", "", byKubelet, "certificates of nodes", nil},
		{update, certificates, "certificatesigningrequests/approval", "CertificateSigningRequest", "", byCertificates, "certificates of nodes", nil},
		{update, certificates, "certificatesigningrequests/status", "CertificateSigningRequest", "", byCertificates, "certificates of nodes", nil},
		{create, "authentication.k8s.io", "tokenreviews", "TokenReview", "", byKubelet, "reviews of tokens", nil},
		{create, "authorization.k8s.io", "subjectaccessreviews", "SubjectAccessReview", "", byKubelet, "reviews of access", nil},
	}
}

// systemNeeds are those of kube-system.
func systemNeeds() []need {
	const system = "kube-system"
	return []need{
		{create, "", "serviceaccounts/token", "TokenRequest", system, byKubelet, "the tokens of Pods in kube-system", nil},
		{update, "apps", "replicasets", "ReplicaSet", system, byAccount + "deployment-controller", "ReplicaSets in kube-system", nil},
		{update, "discovery.k8s.io", "endpointslices", "EndpointSlice", system, byAccount + "endpointslice-controller", "EndpointSlices in kube-system", nil},
		{update, "", "configmaps", "ConfigMap", system, byAPIServer, "ConfigMaps of the API server", nil},
		{create, "", "pods", "Pod", system, byAccount + "replicaset-controller", "creating Pods in kube-system", nil},
		{create, "", "pods/binding", "Binding", system, byScheduler, "scheduling Pods in kube-system", nil},
		{update, "", "pods/status", "Pod", system, byKubelet, "the status of Pods in kube-system", nil},
	}
}

// serverNeeds are those of API servers when they start: pkg/controlplane and the hooks of
// pkg/registry/{rbac,scheduling,flowcontrol}/rest.
func serverNeeds() []need {
	const rbac, start = "rbac.authorization.k8s.io", "what the API server writes at its start"
	return []need{
		{create, "", "namespaces", "Namespace", "", byAPIServer, "namespaces of the system", nil},
		{update, "", "endpoints", "Endpoints", corev1.NamespaceDefault, byAPIServer, "the endpoints of the Service kubernetes", nil},
		{update, "discovery.k8s.io", "endpointslices", "EndpointSlice", corev1.NamespaceDefault, byAPIServer, "the endpoints of the Service kubernetes", nil},
		{create, "", "services", "Service", corev1.NamespaceDefault, byAPIServer, start, nil},
		{update, rbac, "clusterroles", "ClusterRole", "", byAPIServer, start, nil},
		{create, rbac, "clusterrolebindings", "ClusterRoleBinding", "", byAPIServer, start, nil},
		{create, rbac, "roles", "Role", "kube-system", byAPIServer, start, nil},
		{create, rbac, "rolebindings", "RoleBinding", "kube-system", byAPIServer, start, nil},
		{create, "scheduling.k8s.io", "priorityclasses", "PriorityClass", "", byAPIServer, start, nil},
		{update, "flowcontrol.apiserver.k8s.io", "flowschemas", "FlowSchema", "", byAPIServer, start, nil},
		{update, "flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations", "PriorityLevelConfiguration", "", byAPIServer, start, nil},
		{create, "apiregistration.k8s.io", "apiservices", "APIService", "", byAPIServer, start, nil},
		{create, "networking.k8s.io", "servicecidrs", "ServiceCIDR", "", byAPIServer, start, nil},
		{create, "networking.k8s.io", "ipaddresses", "IPAddress", "", byAPIServer, start, nil},
	}
}
