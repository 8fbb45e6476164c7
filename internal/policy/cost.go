package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/bounded"
)

// mostCost bounds the cost of all policies for one object. An API server bounds each policy.
const mostCost = bounded.RunCost

// callCost is the cost of an evaluation regardless of the length of the expression.
const callCost = 10

// errCost is the error of an expression that is not evaluated.
var errCost = fmt.Errorf("the policies cost more than %d units of CEL for one object", mostCost)

// boundOf returns the code of an error about this program's bounds, nil for other errors: an API
// server has other bounds. A message that quotes the error counts too.
func boundOf(err error) *finding.Code {
	switch {
	case bounded.Is(err):
		return CodeNotEvaluated
	case strings.Contains(err.Error(), errCost.Error()):
		return CodeCost
	}
	return nil
}

// reasonOf returns the reason of a finding with such a code. It quotes no value.
func reasonOf(code *finding.Code) string {
	if code == CodeCost {
		return errCost.Error()
	}
	return bounded.ErrTooLarge.Error()
}

// costed counts the cost of a policy's expressions.
type costed struct {
	cel.ConditionEvaluator
	policy string
}

// ForInput evaluates the expressions.
func (c costed) ForInput(ctx context.Context, attributes *admission.VersionedAttributes,
	request *admissionv1.AdmissionRequest,
	inputs cel.OptionalVariableBindings, namespace *corev1.Namespace, budget int64,
) ([]cel.EvaluationResult, int64, error) {
	m := bounded.MeterOf(ctx)
	if m.Cost() > mostCost {
		return nil, -1, errCost
	}
	results, left, err := c.ConditionEvaluator.ForInput(ctx, attributes, request, inputs, namespace, budget)
	m.Add(c.policy, callCost+budget-max(0, left))
	return results, left, err
}

// noExpressions replaces absent expressions, such as the messages of a policy. It is a fast path:
// most policies lack some expressions.
type noExpressions struct {
	cel.ConditionEvaluator
	places int
}

// ForInput evaluates nothing.
func (n noExpressions) ForInput(_ context.Context, _ *admission.VersionedAttributes, _ *admissionv1.AdmissionRequest,
	_ cel.OptionalVariableBindings, _ *corev1.Namespace, budget int64,
) ([]cel.EvaluationResult, int64, error) {
	return make([]cel.EvaluationResult, n.places), budget, nil
}

// costedMutation counts the cost of a mutation, and refuses too large results.
type costedMutation struct {
	cel.MutatingEvaluator
	policy string
}

// ForInput evaluates the expression.
func (c costedMutation) ForInput(ctx context.Context, attributes *admission.VersionedAttributes,
	request *admissionv1.AdmissionRequest,
	inputs cel.OptionalVariableBindings, namespace *corev1.Namespace, budget int64,
) (cel.EvaluationResult, int64, error) {
	m := bounded.MeterOf(ctx)
	if m.Cost() > mostCost {
		return cel.EvaluationResult{}, -1, errCost
	}
	result, left, err := c.MutatingEvaluator.ForInput(ctx, attributes, request, inputs, namespace, budget)
	m.Add(c.policy, callCost+budget-max(0, left))
	if err == nil && result.EvalResult != nil && !bounded.Whole(result.EvalResult) {
		return cel.EvaluationResult{}, left, bounded.ErrTooLarge
	}
	return result, left, err
}

// Begin returns the answer for an object before evaluation in a context with the Meter. Call it in
// the order of the objects.
func (e *Engine) Begin() Answer { return Answer{Meter: e.budget.Meter()} }

// Take counts an answer in its policies and in the budget of the run, in the order of the objects.
// It returns false and clears the answer if the budget is used up. Take is for one goroutine.
func (e *Engine) Take(t *inspect.Type, a *Answer) bool {
	if a.Meter != nil && !a.Meter.Take() {
		*a = Answer{}
		e.left = append(e.left, t)
		return false
	}
	for _, p := range a.Met {
		p.Matched++
	}
	for _, p := range a.Failed {
		p.Failed++
	}
	return true
}

// Unchecked returns a finding about the objects refused by Take; nil if there are none.
func (e *Engine) Unchecked() *finding.Finding {
	if len(e.left) == 0 {
		return nil
	}
	var all []string
	for of := e.left; len(of) > 0; {
		n := slices.IndexFunc(of, func(t *inspect.Type) bool { return t != of[0] })
		if n < 0 {
			n = len(of)
		}
		all, of = append(all, fmt.Sprintf("%d of %s", n, of[0].Name())), of[n:]
	}
	return CodeCost.Because("the policies cost %s, and these were not checked: %s", e.budget, finding.List(all))
}
