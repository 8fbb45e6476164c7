package columns

import (
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func paramKind(k *admissionv1.ParamKind) string {
	if k == nil {
		return unset
	}
	return k.APIVersion + "/" + k.Kind
}

// policyBindingRow is for bindings of both kinds of policies.
func policyBindingRow(o *admissionv1.ValidatingAdmissionPolicyBinding) []any {
	ref := unset
	if r := o.Spec.ParamRef; r != nil {
		switch {
		case r.Selector != nil && r.Namespace != "":
			ref = r.Namespace + "/*"
		case r.Selector != nil:
			ref = "*"
		case r.Namespace != "":
			ref = r.Namespace + "/" + r.Name
		default:
			ref = r.Name
		}
	}
	return []any{o.Spec.PolicyName, ref}
}

// mutatingPolicyRow reads content: older servers store a version without Go type.
func mutatingPolicyRow(content map[string]any, _ time.Time) []any {
	mutations, _, _ := unstructured.NestedSlice(content, "spec", "mutations")
	kind := unset
	if k, has, _ := unstructured.NestedStringMap(content, "spec", "paramKind"); has {
		kind = k["apiVersion"] + "/" + k["kind"]
	}
	return []any{int64(len(mutations)), kind}
}

func flowSchemaRow(o *flowcontrolv1.FlowSchema) []any {
	method := none
	if o.Spec.DistinguisherMethod != nil {
		method = string(o.Spec.DistinguisherMethod.Type)
	}
	dangling := "?"
	for _, c := range o.Status.Conditions {
		if c.Type == flowcontrolv1.FlowSchemaConditionDangling {
			dangling = string(c.Status)
		}
	}
	return []any{
		o.Spec.PriorityLevelConfiguration.Name, int64(o.Spec.MatchingPrecedence), method, dangling,
	}
}

func priorityLevelRow(o *flowcontrolv1.PriorityLevelConfiguration) []any {
	var shares, queues, handSize, limit any = none, none, none, none
	if l := o.Spec.Limited; l != nil {
		if l.NominalConcurrencyShares != nil {
			shares = *l.NominalConcurrencyShares
		}
		if q := l.LimitResponse.Queuing; q != nil {
			queues, handSize, limit = q.Queues, q.HandSize, q.QueueLengthLimit
		}
	}
	return []any{string(o.Spec.Type), shares, queues, handSize, limit}
}

func apiServiceRow(content map[string]any, _ time.Time) []any {
	service := "Local"
	if s, has, _ := unstructured.NestedMap(content, "spec", "service"); has {
		service = fmt.Sprintf("%v/%v", s["namespace"], s["name"])
	}
	available := "Unknown"
	conditions, _, _ := unstructured.NestedSlice(content, "status", "conditions")
	for _, c := range conditions {
		c, _ := c.(map[string]any)
		if c["type"] != "Available" {
			continue
		}
		available = fmt.Sprint(c["status"])
		if available != "True" {
			available += fmt.Sprintf(" (%v)", c["reason"])
		}
	}
	return []any{service, available}
}
