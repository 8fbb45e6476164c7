package doctor

import (
	"cmp"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
)

// need is a request that must pass for a cluster, or a webhook, to start.
type need struct {
	operation       admissionv1.OperationType
	group, resource string // with its subresource, as rules name it
	namespace       string // "" for a cluster-scoped object
	what            string
	pods            labels.Selector // of Pods whose labels the object has; nil for an object without labels
}

// needs returns the requests that the Pods of a Service, nodes and the control plane need to start.
func needs(svc *corev1.Service) map[*finding.Code][]need {
	pods := labels.Nothing()
	if len(svc.Spec.Selector) > 0 {
		pods = labels.SelectorFromSet(svc.Spec.Selector)
	}
	return map[*finding.Code][]need{
		codeWebhookDeadlock: {
			{admissionv1.Create, "", "pods", svc.Namespace, "creating its Pods", pods},
			{admissionv1.Create, "", "pods/binding", svc.Namespace, "scheduling them", nil},
			{admissionv1.Update, "", "pods/status", svc.Namespace, "their status", pods},
		},
		codeWebhookCore: {
			{admissionv1.Update, "", "nodes/status", "", "the status of nodes", nil},
			{admissionv1.Update, "coordination.k8s.io", "leases", corev1.NamespaceNodeLease, "heartbeats of nodes", nil},
			{admissionv1.Update, "coordination.k8s.io", "leases", "kube-system", "leader election in kube-system", nil},
			{admissionv1.Create, "", "pods", "kube-system", "creating Pods in kube-system", labels.Everything()},
		},
	}
}

// checkWebhooks checks admission webhooks in the cluster whose silence refuses requests.
func (d *doctor) checkWebhooks() {
	for _, o := range slices.Concat(d.kept["validatingwebhookconfigurations"], d.kept["mutatingwebhookconfigurations"]) {
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
			if *cmp.Or(hook.FailurePolicy, &policy) == admissionv1.Fail && hook.ClientConfig.Service != nil && len(hook.Rules) > 0 {
				d.checkWebhook(o, &hook)
			}
		}
	}
}

func (d *doctor) checkWebhook(o stored, hook *admissionv1.MutatingWebhook) {
	ref := hook.ClientConfig.Service
	name := ref.Namespace + "/" + ref.Name
	refuses := func(code *finding.Code, why string) {
		d.raise(o.entry.Key, code, "webhook %s: its Service %s %s, and failurePolicy is Fail: it refuses %s", hook.Name, name, why, describeRules(hook.Rules))
	}
	svc := d.service(o.Prefix, ref.Namespace, ref.Name)
	if svc == nil {
		refuses(codeWebhookServiceGone, "is not there")
		return
	}
	if d.idle(o.Prefix, svc) {
		refuses(codeWebhookEndpoints, "has no ready endpoint")
	}
	if len(hook.MatchConditions) > 0 { // which only a server evaluates
		return
	}
	for code, needs := range needs(svc) {
		var guarded []string
		for _, n := range needs {
			if slices.ContainsFunc(hook.Rules, n.matches) && d.selects(o.Prefix, hook, n) {
				guarded = append(guarded, n.what)
			}
		}
		if len(guarded) > 0 {
			d.raise(o.entry.Key, code, "webhook %s of Service %s, failurePolicy Fail, must answer for %s", hook.Name, name, list(guarded))
		}
	}
}

// matches is k8s.io/apiserver pkg/admission/plugin/webhook/predicates/rules.
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
		has(r.APIGroups, n.group) && has(r.APIVersions, "v1") && (r.Scope == nil || *r.Scope == admissionv1.AllScopes || *r.Scope == scope) &&
		slices.ContainsFunc(r.Resources, func(rule string) bool {
			ruleResource, ruleSub, _ := strings.Cut(rule, "/")
			return (ruleResource == "*" || ruleResource == resource) && (ruleSub == sub || ruleSub == "*")
		})
}

// selects tells whether a webhook selects the object of a need, by the labels of Pods in the file.
func (d *doctor) selects(prefix string, hook *admissionv1.MutatingWebhook, n need) bool {
	if n.namespace != "" {
		namespace, there := d.namespaces[space{prefix, n.namespace}]
		selector, err := selectorOf(hook.NamespaceSelector)
		if !there || err != nil || !selector.Matches(namespace) {
			return false
		}
	}
	selector, err := selectorOf(hook.ObjectSelector)
	if err != nil || selector.Empty() || n.pods == nil {
		return err == nil && selector.Matches(labels.Set{})
	}
	for e := range d.within(prefix, gvr.GroupResource{Resource: "pods"}, n.namespace) {
		meta, err := encoding.ReadMeta(e.Value)
		if pod := labels.Set(meta.Labels); err == nil && n.pods.Matches(pod) && selector.Matches(pod) {
			return true
		}
	}
	return false
}

// selectorOf parses a selector as admission does: none selects everything.
func selectorOf(s *metav1.LabelSelector) (labels.Selector, error) {
	return metav1.LabelSelectorAsSelector(cmp.Or(s, &metav1.LabelSelector{}))
}

// describeRules says what rules are about.
func describeRules(rules []admissionv1.RuleWithOperations) string {
	var parts []string
	for _, r := range rules {
		var operations []string
		for _, o := range r.Operations {
			operations = append(operations, string(o))
		}
		part := strings.Join(operations, ",") + " " + strings.Join(r.Resources, ",") + " of " + strings.Join(r.APIGroups, ",")
		parts = append(parts, strings.TrimSuffix(part, " of ")) // the core group has no name
	}
	return strings.Join(parts, "; ")
}
