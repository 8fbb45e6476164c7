package doctor

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/machines"
)

const (
	validating = "validatingwebhookconfigurations.admissionregistration.k8s.io"
	mutating   = "mutatingwebhookconfigurations.admissionregistration.k8s.io"
)

// Codes about webhooks.
var (
	codeWebhookServiceGone = finding.Lookup("webhook-service-gone")
	codeWebhookDeadlock    = finding.Lookup("webhook-deadlock")
	codeWebhookCore        = finding.Lookup("webhook-blocks-core")
	codeWebhookEndpoints   = finding.Lookup("webhook-no-endpoints")
)

// checkWebhooks checks admission webhooks in the cluster whose failure refuses requests.
func checkWebhooks(d *doctor) error {
	for _, o := range slices.Concat(d.kept[validating], d.kept[mutating]) {
		// a MutatingWebhookConfiguration has every field of a validating one
		config, err := decodeAs[admissionv1.MutatingWebhookConfiguration](o.entry)
		if err != nil {
			continue
		}
		policy := admissionv1.Fail
		if strings.HasSuffix(config.APIVersion, "/v1beta1") {
			policy = admissionv1.Ignore
		}
		for _, hook := range config.Webhooks {
			if *cmp.Or(hook.FailurePolicy, &policy) != admissionv1.Fail || hook.ClientConfig.Service == nil ||
				len(hook.Rules) == 0 {
				continue
			}
			if err := checkWebhook(d, o, &hook); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkWebhook(d *doctor, o stored, hook *admissionv1.MutatingWebhook) error {
	ref, conditions := hook.ClientConfig.Service, newConditions(d.ctx, hook, &d.hooks)
	if conditions.never {
		return nil
	}
	name := ref.Namespace + "/" + ref.Name
	refuses := func(code *finding.Code, why string) {
		d.raise(o.entry.Key, code, "webhook %s: its Service %s %s, and failurePolicy is Fail: it refuses %s%s",
			hook.Name, name, why, describeRules(hook.Rules), conditions.faulty)
	}
	storage := d.storage(o.Prefix)
	svc, err := storage.Service(d.ctx, ref.Namespace, ref.Name)
	switch {
	case err != nil:
		return err
	case svc == nil:
		refuses(codeWebhookServiceGone, "is not there")
		return nil
	case machines.Outside(svc):
		return nil
	}
	idle, err := storage.Idle(d.ctx, svc)
	if err != nil {
		return err
	}
	if idle {
		refuses(codeWebhookEndpoints, "has no ready endpoint")
	}
	for code, needs := range needs(svc) {
		var guarded []string
		for _, n := range needs {
			if slices.Contains(guarded, n.what) || !slices.ContainsFunc(hook.Rules, n.matches) {
				continue
			}
			selected, err := selects(d, o.Prefix, hook, &n, conditions)
			if err != nil {
				return err
			}
			if selected {
				guarded = append(guarded, n.what)
			}
		}
		if len(guarded) > 0 {
			d.raise(o.entry.Key, code, "webhook %s of Service %s, failurePolicy Fail, must answer for %s%s", hook.Name,
				name, list(guarded), conditions.faulty)
		}
	}
	return nil
}

// matches implements k8s.io/apiserver pkg/admission/plugin/webhook/predicates/rules.
func (n need) matches(r admissionv1.RuleWithOperations) bool {
	has := func(list []string, want string) bool {
		return slices.Contains(list, "*") || slices.Contains(list, want)
	}
	scope := admissionv1.NamespacedScope
	if n.namespace == "" {
		scope = admissionv1.ClusterScope
	}
	resource, sub, _ := strings.Cut(n.resource, "/")
	return (slices.Contains(r.Operations, admissionv1.OperationAll) || slices.Contains(r.Operations, n.operation)) &&
		has(r.APIGroups, n.group) && has(r.APIVersions, "v1") &&
		(r.Scope == nil || *r.Scope == admissionv1.AllScopes || *r.Scope == scope) &&
		slices.ContainsFunc(r.Resources, func(rule string) bool {
			ruleResource, ruleSub, _ := strings.Cut(rule, "/")
			return (ruleResource == "*" || ruleResource == resource) && (ruleSub == sub || ruleSub == "*")
		})
}

// selects reports whether a webhook selects an object of a need, based on the objects in the file.
func selects(
	d *doctor, prefix string, hook *admissionv1.MutatingWebhook, n *need, conditions *conditions,
) (bool, error) {
	inSpace, err := selectorOf(hook.NamespaceSelector)
	ofObject, err2 := selectorOf(hook.ObjectSelector)
	if err != nil || err2 != nil {
		return false, nil
	}
	if n.namespace != "" {
		namespace, there := d.namespaces[space{prefix, n.namespace}]
		if !there || !inSpace.Matches(namespace) {
			return false, nil
		}
	}
	if n.resource == "namespaces" { // the selector tests their own labels
		return selectsNamespace(d, prefix, inSpace, ofObject, n, conditions), nil
	}
	looked, own := 0, labels.SelectorFromSet(n.labels)
	for e, err := range objectsOf(d, prefix, n) {
		if err != nil {
			return false, err
		}
		meta, err := encoding.ReadMeta(e.Value)
		if err != nil || !own.Matches(labels.Set(meta.Labels)) {
			continue
		}
		if looked++; ofObject.Matches(labels.Set(meta.Labels)) &&
			(looked > mostLooks || conditions.match(d.ctx, n, content(d, e))) {
			return true, nil
		}
	}
	if looked > 0 && (n.operation != create || n.resource == "pods") { // new Pods are like the existing ones
		return false, nil
	}
	return ofObject.Matches(n.labels) && conditions.match(d.ctx, n, n.newObject("new", n.labels)), nil
}

// mostLooks is the number of objects tested with match conditions; further objects count as
// matched.
const mostLooks = 1000

// selectsNamespace handles the namespaces created by API servers if missing.
func selectsNamespace(
	d *doctor, prefix string, inSpace, ofObject labels.Selector, n *need, conditions *conditions,
) bool {
	for _, name := range ownNamespaces() {
		set := labels.Merge(d.namespaces[space{prefix, name}], labels.Set{corev1.LabelMetadataName: name})
		if inSpace.Matches(set) && ofObject.Matches(set) && conditions.match(d.ctx, n, n.newObject(name, set)) {
			return true
		}
	}
	return false
}

// objectsOf yields the objects in the file to which a needed request applies; none for subresources
// that are never stored.
func objectsOf(d *doctor, prefix string, n *need) iter.Seq2[*inspect.Entry, error] {
	resource, sub, _ := strings.Cut(n.resource, "/")
	if sub != "" && sub != "status" {
		return func(func(*inspect.Entry, error) bool) {}
	}
	return d.storage(prefix).Live(d.ctx, gvr.GroupResource{Group: n.group, Resource: resource}.String(), n.namespace)
}

// content returns an object for match conditions; only metadata for an unknown kind.
func content(d *doctor, e *inspect.Entry) map[string]any {
	key, _ := e.ParseKey() // did not fail before
	return inspect.NewObject(d.types.Of(key.Resource), e).Content
}

// selectorOf parses a selector like admission: no selector selects everything.
func selectorOf(s *metav1.LabelSelector) (labels.Selector, error) {
	return metav1.LabelSelectorAsSelector(cmp.Or(s, &metav1.LabelSelector{}))
}

// describeRules lists the operations and resources of rules.
func describeRules(rules []admissionv1.RuleWithOperations) string {
	var parts []string
	for _, r := range rules {
		var operations []string
		for _, o := range r.Operations {
			operations = append(operations, string(o))
		}
		part := strings.Join(operations, ",") + " " + strings.Join(r.Resources, ",") + " of " +
			strings.Join(r.APIGroups, ",")
		parts = append(parts, strings.TrimSuffix(part, " of ")) // the core group has no name
	}
	return strings.Join(parts, "; ")
}

// need is a request that must succeed before a cluster, or a webhook, can start.
type need struct {
	operation       admissionv1.OperationType
	group, resource string // with its subresource, as in rules
	kind            string
	namespace       string // "" for a cluster-scoped object
	by              string // user name of the request
	what            string
	labels          labels.Set // of its objects; none for any
}

// The users of the requests, with kubeadm's names.
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

// ownNamespaces returns the namespaces created by API servers if missing.
func ownNamespaces() []string {
	return []string{corev1.NamespaceDefault, corev1.NamespaceNodeLease, "kube-public", "kube-system"}
}

// needs returns the requests that the Pods of a Service, nodes and the control plane need to start.
func needs(svc *corev1.Service) map[*finding.Code][]need {
	own := labels.Set{"kubernetes.io/service-name": svc.Name}
	return map[*finding.Code][]need{
		codeWebhookDeadlock: {
			{create, "", "pods", "Pod", svc.Namespace, byAccount + "replicaset-controller", "creating its Pods",
				svc.Spec.Selector},
			{create, "", "pods/binding", "Binding", svc.Namespace, byScheduler, "scheduling them", nil},
			{update, "", "pods/status", "Pod", svc.Namespace, byKubelet, "their status", svc.Spec.Selector},
			{create, "", "serviceaccounts/token", "TokenRequest", svc.Namespace, byKubelet,
				"the tokens of its Pods", nil},
			{create, "apps", "replicasets", "ReplicaSet", svc.Namespace, byAccount + "deployment-controller",
				"its ReplicaSets", nil},
			{update, "apps", "replicasets", "ReplicaSet", svc.Namespace, byAccount + "deployment-controller",
				"its ReplicaSets", nil},
			{create, "apps", "controllerrevisions", "ControllerRevision", svc.Namespace,
				byAccount + "daemon-set-controller", "its ControllerRevisions", nil},
			{create, "discovery.k8s.io", "endpointslices", "EndpointSlice", svc.Namespace,
				byAccount + "endpointslice-controller", "its EndpointSlices", own},
			{update, "discovery.k8s.io", "endpointslices", "EndpointSlice", svc.Namespace,
				byAccount + "endpointslice-controller", "its EndpointSlices", own},
			{create, "", "endpoints", "Endpoints", svc.Namespace, byAccount + "endpoint-controller",
				"its Endpoints", nil},
			{update, "", "endpoints", "Endpoints", svc.Namespace, byAccount + "endpoint-controller",
				"its Endpoints", nil},
		},
		codeWebhookCore: slices.Concat(nodeNeeds(), systemNeeds(), serverNeeds()),
	}
}

// nodeNeeds returns the requests of kubelets, leaders and of Pods on nodes.
func nodeNeeds() []need {
	const leases, storage, certificates = "coordination.k8s.io", "storage.k8s.io", "certificates.k8s.io"
	const byCertificates = byAccount + "certificate-controller"
	return []need{
		{update, "", "nodes/status", "Node", "", byKubelet, "the status of nodes", nil},
		{update, leases, "leases", "Lease", corev1.NamespaceNodeLease, byKubelet, "heartbeats of nodes", nil},
		{create, leases, "leases", "Lease", corev1.NamespaceNodeLease, byKubelet, "heartbeats of nodes", nil},
		{update, "coordination.k8s.io", "leases", "Lease", "kube-system", byManager, "leader election in kube-system",
			nil},
		{create, "coordination.k8s.io", "leases", "Lease", "kube-system", byManager, "leader election in kube-system",
			nil},
		{create, "", "nodes", "Node", "", byKubelet, "joining nodes", nil},
		{update, "", "nodes", "Node", "", byAccount + "node-controller", "changes of nodes", nil},
		{create, storage, "csinodes", "CSINode", "", byKubelet, "drivers of volumes on nodes", nil},
		{update, storage, "csinodes", "CSINode", "", byKubelet, "drivers of volumes on nodes", nil},
		{create, storage, "volumeattachments", "VolumeAttachment", "", byAccount + "attachdetach-controller",
			"attaching volumes", nil},
		{create, certificates, "certificatesigningrequests", "CertificateSigningRequest", "", byKubelet,
			"certificates of nodes", nil},
		{update, certificates, "certificatesigningrequests/approval", "CertificateSigningRequest", "", byCertificates,
			"certificates of nodes", nil},
		{update, certificates, "certificatesigningrequests/status", "CertificateSigningRequest", "", byCertificates,
			"certificates of nodes", nil},
		{create, "authentication.k8s.io", "tokenreviews", "TokenReview", "", byKubelet, "reviews of tokens", nil},
		{create, "authorization.k8s.io", "subjectaccessreviews", "SubjectAccessReview", "", byKubelet,
			"reviews of access", nil},
	}
}

// systemNeeds returns the requests of kube-system.
func systemNeeds() []need {
	const system = "kube-system"
	return []need{
		{create, "", "serviceaccounts/token", "TokenRequest", system, byKubelet, "the tokens of Pods in kube-system",
			nil},
		{update, "apps", "replicasets", "ReplicaSet", system, byAccount + "deployment-controller",
			"ReplicaSets in kube-system", nil},
		{update, "discovery.k8s.io", "endpointslices", "EndpointSlice", system, byAccount + "endpointslice-controller",
			"EndpointSlices in kube-system", nil},
		{update, "", "configmaps", "ConfigMap", system, byAPIServer, "ConfigMaps of the API server", nil},
		{create, "", "pods", "Pod", system, byAccount + "replicaset-controller", "creating Pods in kube-system", nil},
		{create, "", "pods/binding", "Binding", system, byScheduler, "scheduling Pods in kube-system", nil},
		{update, "", "pods/status", "Pod", system, byKubelet, "the status of Pods in kube-system", nil},
	}
}

// serverNeeds returns the requests of API servers when they start: pkg/controlplane and the hooks
// of pkg/registry/{rbac,scheduling,flowcontrol}/rest.
func serverNeeds() []need {
	const rbac, start = "rbac.authorization.k8s.io", "what the API server writes at its start"
	return []need{
		{create, "", "namespaces", "Namespace", "", byAPIServer, "namespaces of the system", nil},
		{update, "", "endpoints", "Endpoints", corev1.NamespaceDefault, byAPIServer,
			"the endpoints of the Service kubernetes", nil},
		{update, "discovery.k8s.io", "endpointslices", "EndpointSlice", corev1.NamespaceDefault, byAPIServer,
			"the endpoints of the Service kubernetes", nil},
		{create, "", "services", "Service", corev1.NamespaceDefault, byAPIServer, start, nil},
		{update, rbac, "clusterroles", "ClusterRole", "", byAPIServer, start, nil},
		{create, rbac, "clusterrolebindings", "ClusterRoleBinding", "", byAPIServer, start, nil},
		{create, rbac, "roles", "Role", "kube-system", byAPIServer, start, nil},
		{create, rbac, "rolebindings", "RoleBinding", "kube-system", byAPIServer, start, nil},
		{create, "scheduling.k8s.io", "priorityclasses", "PriorityClass", "", byAPIServer, start, nil},
		{update, "flowcontrol.apiserver.k8s.io", "flowschemas", "FlowSchema", "", byAPIServer, start, nil},
		{update, "flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations", "PriorityLevelConfiguration", "",
			byAPIServer, start, nil},
		{create, "apiregistration.k8s.io", "apiservices", "APIService", "", byAPIServer, start, nil},
		{create, "networking.k8s.io", "servicecidrs", "ServiceCIDR", "", byAPIServer, start, nil},
		{create, "networking.k8s.io", "ipaddresses", "IPAddress", "", byAPIServer, start, nil},
	}
}
