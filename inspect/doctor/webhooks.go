package doctor

import (
	"context"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/etcdshift/etcdshift/finding"
)

// need is a request that must pass for a cluster, or a webhook, to start.
type need struct {
	operation       admissionv1.OperationType
	group, resource string // with its subresource, as rules name it
	namespace       string // "" for cluster-scoped objects
	what            string
	pods            labels.Selector // the objects are these Pods; nil for objects without labels
}

// ownNeeds are the requests that start the Pods of a Service and make them its endpoints.
func ownNeeds(svc *corev1.Service) []need {
	pods := labels.Nothing()
	if len(svc.Spec.Selector) > 0 {
		pods = labels.SelectorFromSet(svc.Spec.Selector)
	}
	return []need{
		{admissionv1.Create, "", "pods", svc.Namespace, "creating its Pods", pods},
		{admissionv1.Create, "", "pods/binding", svc.Namespace, "scheduling them", nil},
		{admissionv1.Update, "", "pods/status", svc.Namespace, "their status", pods},
	}
}

// coreNeeds are the requests without which nodes and the control plane do not come up.
func coreNeeds() []need {
	return []need{
		{admissionv1.Update, "", "nodes/status", "", "the status of nodes", nil},
		{admissionv1.Update, "coordination.k8s.io", "leases", corev1.NamespaceNodeLease, "heartbeats of nodes", nil},
		{admissionv1.Update, "coordination.k8s.io", "leases", "kube-system", "leader election in kube-system", nil},
		{admissionv1.Create, "", "pods", "kube-system", "creating Pods in kube-system", labels.Everything()},
	}
}

// concludeWebhooks checks the admission webhooks with failurePolicy Fail that run in the cluster.
// Only a server can evaluate matchConditions: a webhook with some is taken to match nothing.
func (d *doctor) concludeWebhooks(ctx context.Context) error {
	const group = ".admissionregistration.k8s.io"
	for _, s := range slices.Concat(d.kept["mutatingwebhookconfigurations"+group], d.kept["validatingwebhookconfigurations"+group]) {
		// a MutatingWebhookConfiguration has every field that a validating one has
		var config admissionv1.MutatingWebhookConfiguration
		if decodeInto(s.entry, &config) != nil {
			continue
		}
		for _, hook := range config.Webhooks {
			beta := strings.HasSuffix(config.APIVersion, "/v1beta1")
			fails := hook.FailurePolicy == nil && !beta || hook.FailurePolicy != nil && *hook.FailurePolicy == admissionv1.Fail
			if !fails || hook.ClientConfig.Service == nil || len(hook.Rules) == 0 {
				continue
			}
			if err := d.checkWebhook(ctx, s, &hook); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *doctor) checkWebhook(ctx context.Context, s stored, hook *admissionv1.MutatingWebhook) error {
	ref := hook.ClientConfig.Service
	name := ref.Namespace + "/" + ref.Name
	svc, err := d.service(ctx, s.key.Prefix, ref.Namespace, ref.Name)
	if err != nil {
		return err
	}
	idle, err := d.idle(ctx, s.key.Prefix, svc)
	switch {
	case err != nil:
		return err
	case svc == nil:
		d.raise(s.entry.Key, codeWebhookServiceGone.Because(
			"webhook %s: its Service %s is not there, and failurePolicy is Fail: it refuses %s", hook.Name, name, describeRules(hook.Rules)))
		return nil
	case idle:
		d.raise(s.entry.Key, codeWebhookEndpoints.Because(
			"webhook %s: its Service %s has no ready endpoint, and failurePolicy is Fail: it refuses %s", hook.Name, name, describeRules(hook.Rules)))
	}
	for code, needs := range map[*finding.Code][]need{codeWebhookDeadlock: ownNeeds(svc), codeWebhookCore: coreNeeds()} {
		guarded, err := d.guarded(ctx, s.key.Prefix, hook, needs)
		if err != nil {
			return err
		}
		if len(guarded) > 0 {
			d.raise(s.entry.Key, code.Because("webhook %s of Service %s, failurePolicy Fail, must answer for %s", hook.Name, name, strings.Join(guarded, ", ")))
		}
	}
	return nil
}

// guarded lists the needs that a webhook matches.
func (d *doctor) guarded(ctx context.Context, prefix string, hook *admissionv1.MutatingWebhook, needs []need) (guarded []string, err error) {
	if len(hook.MatchConditions) > 0 {
		return nil, nil
	}
	for _, n := range needs {
		if !slices.ContainsFunc(hook.Rules, func(r admissionv1.RuleWithOperations) bool { return matchesRule(r, n) }) || !d.selectsNamespace(prefix, hook, n) {
			continue
		}
		selects, err := d.selectsObject(ctx, prefix, hook, n)
		if err != nil {
			return nil, err
		}
		if selects {
			guarded = append(guarded, n.what)
		}
	}
	return guarded, nil
}

// matchesRule is k8s.io/apiserver pkg/admission/plugin/webhook/predicates/rules, for a version that
// is served.
func matchesRule(r admissionv1.RuleWithOperations, n need) bool {
	if !hasOrAll(r.Operations, n.operation) || !hasOrAll(r.APIGroups, n.group) || !hasOrAll(r.APIVersions, "v1") {
		return false
	}
	if r.Scope != nil && (*r.Scope == admissionv1.ClusterScope && n.namespace != "" || *r.Scope == admissionv1.NamespacedScope && n.namespace == "") {
		return false
	}
	resource, sub, _ := strings.Cut(n.resource, "/")
	return slices.ContainsFunc(r.Resources, func(rule string) bool {
		ruleResource, ruleSub, _ := strings.Cut(rule, "/")
		return (ruleResource == "*" || ruleResource == resource) && (ruleSub == sub || ruleSub == "*")
	})
}

func hasOrAll[S ~string](list []S, want S) bool {
	return slices.Contains(list, want) || slices.Contains(list, "*")
}

// selectsNamespace reports whether the namespaceSelector matches the namespace of a need.
func (d *doctor) selectsNamespace(prefix string, hook *admissionv1.MutatingWebhook, n need) bool {
	if n.namespace == "" {
		return true
	}
	ns := d.namespaces[space{prefix, n.namespace}]
	selector, err := selectorOf(hook.NamespaceSelector)
	return ns != nil && err == nil && selector.Matches(labels.Set(ns.meta.Labels))
}

// selectsObject reports whether the objectSelector matches the object of a need: one of the Pods in
// the file, or an object without labels.
func (d *doctor) selectsObject(ctx context.Context, prefix string, hook *admissionv1.MutatingWebhook, n need) (bool, error) {
	selector, err := selectorOf(hook.ObjectSelector)
	if err != nil || selector.Empty() {
		return err == nil, nil
	}
	if n.pods == nil {
		return selector.Matches(labels.Set{}), nil
	}
	sets, err := d.podLabels(ctx, prefix, n.namespace, n.pods)
	return slices.ContainsFunc(sets, func(set labels.Set) bool { return selector.Matches(set) }), err
}

// selectorOf is a selector of admission, where none selects everything.
func selectorOf(s *metav1.LabelSelector) (labels.Selector, error) {
	if s == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(s)
}

// describeRules describes the requests that match the rules.
func describeRules(rules []admissionv1.RuleWithOperations) string {
	var parts []string
	for _, r := range rules {
		var operations []string
		for _, o := range r.Operations {
			operations = append(operations, string(o))
		}
		groups := strings.Join(r.APIGroups, ",")
		if groups != "" {
			groups = " of " + groups
		}
		parts = append(parts, strings.Join(operations, ",")+" "+strings.Join(r.Resources, ",")+groups)
	}
	return strings.Join(parts, "; ")
}
