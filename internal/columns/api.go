package columns

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func paramRef(r *admissionv1.ParamRef) string {
	if r == nil {
		return unset
	}
	name := r.Name
	if r.Selector != nil {
		name = "*"
	}
	if r.Namespace != "" {
		name = r.Namespace + "/" + name
	}
	return name
}

// policy has the fields of both kinds of admission policies, at any version.
type policy struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Validations []any                  `json:"validations"`
		Mutations   []any                  `json:"mutations"`
		ParamKind   *admissionv1.ParamKind `json:"paramKind"`
	} `json:"spec"`
}

func policyCells(o *policy) []any {
	kind := unset
	if k := o.Spec.ParamKind; k != nil {
		kind = k.APIVersion + "/" + k.Kind
	}
	return []any{len(o.Spec.Validations) + len(o.Spec.Mutations), kind}
}

func flowSchemaCells(o *flowcontrolv1.FlowSchema) []any {
	var method any = none
	if m := o.Spec.DistinguisherMethod; m != nil {
		method = m.Type
	}
	dangling := flowcontrolv1.ConditionStatus("?")
	for _, c := range o.Status.Conditions {
		if c.Type == flowcontrolv1.FlowSchemaConditionDangling {
			dangling = c.Status
		}
	}
	return []any{o.Spec.PriorityLevelConfiguration.Name, o.Spec.MatchingPrecedence, method, dangling}
}

func priorityLevelCells(o *flowcontrolv1.PriorityLevelConfiguration) []any {
	out := []any{o.Spec.Type, none, none, none, none}
	if l := o.Spec.Limited; l != nil {
		out[1] = orElse(l.NominalConcurrencyShares, none)
		if q := l.LimitResponse.Queuing; q != nil {
			out[2], out[3], out[4] = q.Queues, q.HandSize, q.QueueLengthLimit
		}
	}
	return out
}

// apiService has the fields of k8s.io/kube-aggregator's APIService that its columns need.
type apiService struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Service *struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"service"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

func apiServiceCells(o *apiService) []any {
	service, available := "Local", "Unknown"
	if s := o.Spec.Service; s != nil {
		service = s.Namespace + "/" + s.Name
	}
	if c := meta.FindStatusCondition(o.Status.Conditions, "Available"); c != nil {
		if available = string(c.Status); c.Status != metav1.ConditionTrue {
			available += " (" + c.Reason + ")"
		}
	}
	return []any{service, available}
}
