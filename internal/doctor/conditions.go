package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
	apiadmission "k8s.io/api/admission/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/bounded"
)

// conditions are the match conditions of a webhook.
type conditions struct {
	matchconditions.Matcher // nil for none

	never  bool   // one condition is false for every request
	faulty string // conditions that fail for every request, as text for people
}

// newConditions compiles match conditions like API servers.
func newConditions(ctx context.Context, hook *admissionv1.MutatingWebhook, budget *bounded.Budget) *conditions {
	c := &conditions{}
	if len(hook.MatchConditions) == 0 {
		return c
	}
	var accessors []cel.ExpressionAccessor
	compiler, options := cel.NewCompiler(bounded.Environment()), cel.OptionalVariableDeclarations{HasAuthorizer: true}
	for i, m := range hook.MatchConditions {
		accessors = append(accessors, (*matchconditions.MatchCondition)(&hook.MatchConditions[i]))
		is, err := constantResult(ctx, budget, compiler.CompileCELExpression(accessors[i], options,
			environment.StoredExpressions))
		if c.never = c.never || is == types.False; err != nil {
			c.faulty += fmt.Sprintf("; its match condition %q cannot be evaluated: %s", m.Name,
				finding.Clip(err.Error(), 200))
		}
	}
	compiled := cel.NewConditionCompiler(bounded.Environment()).CompileCondition(accessors, options,
		environment.StoredExpressions)
	c.Matcher = matchconditions.NewMatcher(metered{compiled, budget}, nil, "webhook", "admit", hook.Name)
	return c
}

// constantResult returns the constant value or error of an expression, nil if the result depends on
// the request: the expression uses a variable.
func constantResult(ctx context.Context, budget *bounded.Budget, compiled cel.CompilationResult) (ref.Val, error) {
	if compiled.Error != nil {
		return nil, compiled.Error
	}
	meter := budget.Meter()
	defer meter.Take()
	if !meter.Start() {
		return nil, nil
	}
	var request unknown
	value, details, err := compiled.Program.ContextEval(ctx, &request)
	if details != nil && details.ActualCost() != nil {
		meter.Add("match conditions", int64(*details.ActualCost()))
	}
	if err != nil && request.asked {
		return nil, nil
	}
	return value, err
}

// metered are match conditions that fail once the conditions of all webhooks together cost too
// much; such a webhook counts as matching.
type metered struct {
	cel.ConditionEvaluator
	budget *bounded.Budget
}

var errConditions = errors.New("the match conditions of webhooks cost too much")

// ForInput evaluates the conditions.
func (m metered) ForInput(ctx context.Context, attributes *admission.VersionedAttributes,
	request *apiadmission.AdmissionRequest,
	inputs cel.OptionalVariableBindings, namespace *corev1.Namespace, most int64,
) ([]cel.EvaluationResult, int64, error) {
	meter := m.budget.Meter()
	defer meter.Take()
	if !meter.Start() {
		return nil, -1, errConditions
	}
	results, left, err := m.ConditionEvaluator.ForInput(ctx, attributes, request, inputs, namespace, most)
	meter.Add("match conditions", most-max(0, left))
	return results, left, err
}

// unknown has no variables.
type unknown struct{ asked bool }

// ResolveName finds no variable.
func (u *unknown) ResolveName(string) (any, bool) {
	u.asked = true
	return nil, false
}

// Parent returns nil: there are no other variables.
func (u *unknown) Parent() interpreter.Activation { return nil }

// match reports whether a request meets the conditions. An evaluation error counts as a match: API
// servers then refuse the request.
func (c *conditions) match(ctx context.Context, n *need, content map[string]any) bool {
	if c.Matcher == nil {
		return true
	}
	resource, sub, _ := strings.Cut(n.resource, "/")
	kind := gvr.GroupVersionKind{Group: n.group, Version: "v1", Kind: n.kind}
	object := &unstructured.Unstructured{Object: content}
	attributes := &admission.VersionedAttributes{VersionedKind: kind, VersionedObject: admission.NewLazyObject(object)}
	if n.operation == update {
		attributes.VersionedOldObject = admission.NewLazyObject(object)
	}
	attributes.Attributes = admission.NewAttributesRecord(object, nil, kind, n.namespace, object.GetName(),
		gvr.GroupVersionResource{Group: n.group, Version: "v1", Resource: resource}, sub,
		admission.Operation(n.operation), nil, false, n.user())
	result := c.Match(ctx, attributes, nil, noOpinion{})
	return result.Matches || result.Error != nil
}

// user returns the user of the request.
func (n *need) user() user.Info {
	name, groups := n.by, []string{user.AllAuthenticated}
	switch {
	case n.by == byKubelet:
		name, groups = name+"node", append(groups, user.NodesGroup)
	case n.by == byAPIServer:
		groups = append(groups, user.SystemPrivilegedGroup)
	case strings.HasPrefix(n.by, byAccount):
		groups = append(groups, "system:serviceaccounts", "system:serviceaccounts:kube-system")
	}
	return &user.DefaultInfo{Name: name, Groups: groups}
}

// newObject returns an object missing in the file.
func (n *need) newObject(name string, set labels.Set) map[string]any {
	u := unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(gvr.GroupVersionKind{Group: n.group, Version: "v1", Kind: n.kind})
	u.SetName(name)
	u.SetNamespace(n.namespace)
	u.SetLabels(set)
	return u.Object
}

// noOpinion replaces the authorizer of the API server, which a file does not have.
type noOpinion struct{}

// Authorize has no opinion.
func (noOpinion) Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionNoOpinion, "", errors.New("there is no authorizer")
}
