package doctor

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/etcdshift/etcdshift/internal/bounded"
)

// A condition that would need gigabytes is stopped and counts as met: the webhook is reported.
func TestConditionsTakeLittleMemory(t *testing.T) {
	name := strings.Repeat("a", 1000)
	n := &need{operation: create, resource: "pods", kind: "Pod", namespace: "a", by: byAPIServer}
	// a constant is evaluated during compilation
	for _, text := range []string{`object.metadata.name`, `"` + name + `"`} {
		huge := text + strings.Repeat(`.replace("a", `+text+`)`, 2) + `.size() == 0`
		hook := &admissionv1.MutatingWebhook{Name: "h",
			MatchConditions: []admissionv1.MatchCondition{{Name: "huge", Expression: huge}}}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		c := newConditions(t.Context(), hook, &bounded.Budget{})
		require.True(t, c.match(t.Context(), n, n.newObject(name, nil)))
		runtime.ReadMemStats(&after)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(100<<20), text)
	}
}

// The conditions of all webhooks share one budget; beyond the budget webhooks are reported.
func TestConditionsHaveABudget(t *testing.T) {
	list := `[` + strings.Repeat("1,", 44) + `1]`
	hook := &admissionv1.MutatingWebhook{Name: "a.example.com", MatchConditions: []admissionv1.MatchCondition{
		{Name: "slow", Expression: list + `.all(a, ` + list + `.all(b, a + b > 0)) && object.metadata.name == ''`},
	}}
	budget, matched := &bounded.Budget{Limit: 100_000}, 0
	c := newConditions(t.Context(), hook, budget)
	for range 20 {
		n := &need{resource: "pods", kind: "Pod", operation: update}
		if c.match(t.Context(), n, n.newObject("x", nil)) {
			matched++
		}
	}
	require.Equal(t, 10, matched, "%s", budget)
}

// webhookDefects are defects of webhooks.
func webhookDefects() []defect { return slices.Concat(ruleDefects(), serviceDefects()) }

// ruleDefects are rules that match requests of the start of the webhook itself, or of the cluster.
func ruleDefects() []defect {
	hook := func(rest, groups, resources string) []record {
		return only(webhooks("Validating", "hook", fail+rest+
			`"rules":[{"operations":["CREATE","UPDATE"],"apiGroups":["`+groups+`"],"apiVersions":["*"],"resources":["`+
			resources+`"]}]`))
	}
	condition := func(expression string) string {
		return `"matchConditions":[{"name":"x","expression":"` + expression + `"}],`
	}
	const guard = "validatingwebhookconfigurations/guard"
	elsewhere :=
		`"namespaceSelector":{"matchExpressions":[{"key":"kubernetes.io/metadata.name","operator":"NotIn",` +
			`"values":["kube-system","kube-public","kube-node-lease","default","team"]}]},`
	return []defect{
		{codeWebhookDeadlock, hook("", "discovery.k8s.io", "endpointslices"), guard,
			"must answer for its EndpointSlices", hook(`"objectSelector":{"matchLabels":{"a":"b"}},`,
				"discovery.k8s.io", "endpointslices")},
		{codeWebhookDeadlock, hook("", "", "endpoints"), guard, "must answer for its Endpoints",
			hook("", "other", "endpoints")},
		{codeWebhookDeadlock, hook("", "", "serviceaccounts/token"), guard, "must answer for the tokens of its Pods",
			hook("", "", "serviceaccounts")},
		{codeWebhookDeadlock, hook("", "apps", "replicasets"), guard, "must answer for its ReplicaSets",
			hook("", "apps", "replicasets/status")},
		{codeWebhookDeadlock, hook("", "", "*/token"), guard, "the tokens of its Pods", nil},
		{codeWebhookCore, hook("", "", "nodes"), guard, "must answer for joining nodes, changes of nodes",
			hook("", "", "nodes/proxy")},
		{codeWebhookCore, hook("", "", "namespaces"), guard, "must answer for namespaces of the system",
			hook(elsewhere, "", "namespaces")},
		{codeWebhookCore, hook("", "rbac.authorization.k8s.io", "*"), guard,
			"must answer for what the API server writes at its start",
			hook(elsewhere, "rbac.authorization.k8s.io", "roles")},
		{codeWebhookCore, hook("", "rbac.authorization.k8s.io", "rolebindings"), guard,
			"must answer for what the API server writes at its start",
			hook("", "rbac.authorization.k8s.io", "rolebindings/x")},
		{codeWebhookCore, hook("", "networking.k8s.io", "ipaddresses"), guard,
			"must answer for what the API server writes at its start", hook("", "networking.k8s.io", "ingresses")},
		{codeWebhookCore, hook("", "certificates.k8s.io", "certificatesigningrequests/approval"), guard,
			"must answer for certificates of nodes", nil},
		{codeWebhookCore, hook("", "certificates.k8s.io", "*/status"), guard, "must answer for certificates of nodes",
			nil},
		{codeWebhookCore, hook("", "authorization.k8s.io", "subjectaccessreviews"), guard,
			"must answer for reviews of access", nil},
		{codeWebhookDeadlock, hook(condition("!('system:nodes' in request.userInfo.groups)"), "", "pods/*"), guard,
			"must answer for creating its Pods, scheduling them", nil},
		{codeWebhookDeadlock, hook(condition("object.metadata.labels.app == 'hook'"), "", "pods"), guard,
			"must answer for creating its Pods", append(hook(condition("object.metadata.labels.app != 'hook'"),
				"", "pods"), also(codeWebhookCore))},
		{codeWebhookDeadlock, hook(condition("object.spec.nowhere.no == 1"), "", "pods"), guard, "creating its Pods",
			append(hook(condition("request.namespace != 'team'"), "", "pods"), also(codeWebhookCore))},
		{codeWebhookDeadlock, hook(condition("!authorizer.group('').resource('pods').check('breakglass').allowed()"),
			"", "pods"), guard, "creating its Pods", nil},
	}
}

// serviceDefects are webhooks without an answer from their Service.
func serviceDefects() []defect {
	condition := func(expression string) string {
		return `"matchConditions":[{"name":"x","expression":"` + expression + `"}],`
	}
	const guard = "validatingwebhookconfigurations/guard"
	return []defect{
		{codeWebhookServiceGone, only(webhooks("Validating", "gone", fail+allPods)),
			"validatingwebhookconfigurations/guard", "refuses CREATE pods",
			only(webhooks("Validating", "gone", `"failurePolicy":"Ignore",`+allPods))},
		{codeWebhookDeadlock, only(webhooks("Mutating", "hook", fail+allPods)), "mutatingwebhookconfigurations/guard",
			"must answer for creating its Pods", only(webhooks("Mutating", "hook",
				fail+`"namespaceSelector":{"matchLabels":{"a":"b"}},`+allPods))},
		{codeWebhookDeadlock, only(webhooks("Mutating", "hook",
			fail+`"objectSelector":{"matchLabels":{"app":"hook"}},`+allPods)), "mutatingwebhookconfigurations/guard",
			"", only(webhooks("Mutating", "hook",
				fail+`"objectSelector":{"matchExpressions":[{"key":"app","operator":"NotIn","values":["hook"]}]},`+
					allPods), also(codeWebhookCore))},
		{codeWebhookDeadlock, only(webhooks("Mutating", "hook", fail+allKinds)), "mutatingwebhookconfigurations/guard",
			"creating its Pods, scheduling them, their status",
			only(webhooks("Mutating", "hook", fail+`"matchConditions":[{"name":"x","expression":"false"}],`+allKinds))},
		{codeWebhookCore, only(webhooks("Validating", "hook", fail+allKinds)), "validatingwebhookconfigurations/guard",
			"the status of nodes, heartbeats of nodes, leader election in kube-system",
			only(webhooks("Validating", "hook", fail+strings.Replace(allKinds, `"*/*"]`, `"*/*"],"scope":"Namespaced"`,
				1)+`,"namespaceSelector":{"matchLabels":{"a":"b"}}`))},
		{codeWebhookEndpoints, only(webhooks("Validating", "hook", fail+allPods), idle()),
			"validatingwebhookconfigurations/guard", "Service team/hook has no ready endpoint",
			only(webhooks("Validating", "hook", fail+allPods), idle(), ready(), also(codeWebhookDeadlock),
				also(codeWebhookCore))},
		{codeWebhookEndpoints, only(webhooks("Validating", "hook",
			fail+condition("object.metadata.name != 'a'")+allPods), idle()), guard, "it refuses CREATE pods",
			only(webhooks("Validating", "hook", fail+condition("object.metadata.name == 'a' && false")+allPods),
				idle())},
		{codeWebhookEndpoints, only(webhooks("Validating", "hook", fail+condition("1 / 0 == 1")+allPods), idle()),
			guard, `it refuses CREATE pods; its match condition "x" cannot be evaluated: division by zero`, nil},
		{codeWebhookServiceGone, only(webhooks("Validating", "gone", fail+condition("object.")+allPods)), guard,
			`its match condition "x" cannot be evaluated: compilation failed`,
			only(webhooks("Validating", "gone", fail+condition("false")+allPods))},
		{codeWebhookEndpoints, only(webhooks("Validating", "alias", fail+allPods), alias("gone.team.svc")), guard,
			"Service team/alias has no ready endpoint", only(webhooks("Validating", "alias", fail+allPods),
				alias("hook.team.svc"), also(codeWebhookDeadlock), also(codeWebhookCore))},
		{codeWebhookEndpoints, only(webhooks("Validating", "alias", fail+allPods), alias("alias.team.svc")), guard,
			"Service team/alias has no ready endpoint", only(webhooks("Validating", "alias", fail+allPods),
				alias("hooks.example.com"))},
		{codeWebhookDeadlock, only(webhooks("Validating", "alias", fail+allPods),
			alias("hook-0.hook.team.svc.cluster.local.")), guard, "creating its Pods",
			only(webhooks("Validating", "alias", fail+allPods), alias("hooks.example.com"))},
		{codeWebhookCore, only(webhooks("Validating", "alias", fail+allKinds), alias("hook.team.svc")), guard,
			"the status of nodes", only(webhooks("Validating", "alias", fail+allKinds), alias("hooks.example.com"))},
	}
}

// apiServiceDefects are defects of APIServices.
func apiServiceDefects() []defect {
	return []defect{
		{codeAPIServiceGone, only(aggregated("gone", "True")),
			"apiregistration.k8s.io/apiservices/v1.metrics.example.org", "Service team/gone",
			only(aggregated("hook", "True"))},
		{codeAPIServiceEndpoints, only(aggregated("hook", "True"), idle()),
			"apiregistration.k8s.io/apiservices/v1.metrics.example.org", "team/hook has no ready endpoint",
			only(aggregated("hook", "True"), idle(), ready())},
		{codeAPIServiceEndpoints, only(aggregated("alias", "True"), alias("hook.team.svc"), idle()),
			"apiregistration.k8s.io/apiservices/v1.metrics.example.org", "team/alias has no ready endpoint",
			only(aggregated("alias", "True"), alias("hooks.example.com"), idle())},
		{codeAPIServiceUnavailable, only(aggregated("hook", "False")),
			"apiregistration.k8s.io/apiservices/v1.metrics.example.org", "False: Why",
			only(aggregated("hook", "Unknown"))},
	}
}
