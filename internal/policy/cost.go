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

// An API server bounds the cost of one policy for one object. These bound the cost of all policies
// for one object, and for all objects of a run: runCost and objectCost for each of them. Four
// million units take about a second. No time counts, so that each run ends at the same object.
const (
	mostCost   = 30_000_000
	runCost    = 30_000_000
	objectCost = 20_000
)

// errCost is the error of an expression that is not evaluated.
var errCost = fmt.Errorf("the policies cost more than %d units of CEL for one object", mostCost)

// boundOf is the code of an error, or of a message that quotes one, about the bounds of this
// program, nil for others: an API server has other bounds.
func boundOf(err error) *finding.Code {
	switch {
	case bounded.Is(err):
		return CodeNotEvaluated
	case strings.Contains(err.Error(), errCost.Error()):
		return CodeCost
	}
	return nil
}

// reasonOf is the reason of a finding of such a code. It quotes no value.
func reasonOf(code *finding.Code) string {
	if code == CodeCost {
		return errCost.Error()
	}
	return bounded.ErrTooLarge.Error()
}

// costed counts the cost of expressions in the record of an evaluation.
type costed struct{ cel.ConditionEvaluator }

// ForInput evaluates the expressions.
func (c costed) ForInput(ctx context.Context, attributes *admission.VersionedAttributes, request *admissionv1.AdmissionRequest,
	inputs cel.OptionalVariableBindings, namespace *corev1.Namespace, budget int64,
) ([]cel.EvaluationResult, int64, error) {
	r := recordOf(ctx)
	if r.cost > mostCost {
		return nil, -1, errCost
	}
	results, left, err := c.ConditionEvaluator.ForInput(ctx, attributes, request, inputs, namespace, budget)
	r.cost += budget - max(0, left)
	return results, left, err
}

// costedMutation does so for a mutation, and lets no result pass that is too large.
type costedMutation struct{ cel.MutatingEvaluator }

// ForInput evaluates the expression.
func (c costedMutation) ForInput(ctx context.Context, attributes *admission.VersionedAttributes, request *admissionv1.AdmissionRequest,
	inputs cel.OptionalVariableBindings, namespace *corev1.Namespace, budget int64,
) (cel.EvaluationResult, int64, error) {
	r := recordOf(ctx)
	if r.cost > mostCost {
		return cel.EvaluationResult{}, -1, errCost
	}
	result, left, err := c.MutatingEvaluator.ForInput(ctx, attributes, request, inputs, namespace, budget)
	r.cost += budget - max(0, left)
	if err == nil && result.EvalResult != nil && !bounded.Whole(result.EvalResult) {
		return cel.EvaluationResult{}, left, bounded.ErrTooLarge
	}
	return result, left, err
}

// Take counts an answer in its policies and in the budget of the run, in the order of the objects.
// It returns false, and leaves nothing of the answer, where the budget is used up. It is for one
// goroutine.
func (e *Engine) Take(t *inspect.Type, a *Answer) bool {
	if e.over.Load() {
		*a = Answer{}
		e.left = append(e.left, t)
		return false
	}
	e.checked++
	if e.spent += a.cost; e.spent > e.budget+int64(e.checked)*objectCost {
		e.over.Store(true)
	}
	for _, p := range a.Met {
		p.Matched++
	}
	for _, p := range a.Failed {
		p.Failed++
	}
	return true
}

// Unchecked is a finding about the objects that Take left; nil if there are none.
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
	return CodeCost.Because("the policies cost %d units of CEL for the first %d objects, and these were not checked: %s", e.spent, e.checked, finding.List(all))
}
