package policy

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// record holds the results of one evaluation, stored in the context. The dispatchers of
// k8s.io/apiserver return only the first denial, and no ignored errors.
type record struct {
	decisions []validating.PolicyDecision
	met       []*Policy // without duplicates
	errors    []policyError
}

type policyError struct {
	*Policy
	error
}

type recordKey struct{}

func withRecord(ctx context.Context) (context.Context, *record) {
	r := &record{}
	return context.WithValue(ctx, recordKey{}, r), r
}

func recordOf(ctx context.Context) *record { return ctx.Value(recordKey{}).(*record) }

// recordedValidator records all decisions.
type recordedValidator struct{ validating.Validator }

// Validate records the decisions of a policy.
func (v recordedValidator) Validate(ctx context.Context, resource schema.GroupVersionResource,
	a *admission.VersionedAttributes, params runtime.Object,
	namespace *corev1.Namespace, budget int64, authz authorizer.UnconditionalAuthorizer,
) validating.ValidateResult {
	result := v.Validator.Validate(ctx, resource, a, params, namespace, budget, authz)
	r := recordOf(ctx)
	r.decisions = append(r.decisions, result.Decisions...)
	return result
}

// recordMutating makes an evaluator record the policies that match an object, and their errors.
func recordMutating(p *Policy, e mutating.PolicyEvaluator) mutating.PolicyEvaluator {
	if e.Matcher != nil {
		e.Matcher = recordedMatcher{p, e.Matcher}
	}
	for i, m := range e.Mutators {
		e.Mutators[i] = recordedPatcher{p, m}
	}
	return e
}

type recordedMatcher struct {
	*Policy
	matchconditions.Matcher
}

// Match records an error.
func (m recordedMatcher) Match(ctx context.Context, a *admission.VersionedAttributes, params runtime.Object,
	authz authorizer.UnconditionalAuthorizer,
) matchconditions.MatchResult {
	result := m.Matcher.Match(ctx, a, params, authz)
	recordOf(ctx).fail(m.Policy, result.Error)
	return result
}

type recordedPatcher struct {
	*Policy
	patch.Patcher
}

// Patch records a match and an error. For plain content, Patch also converts the result to the Go
// type, as the dispatcher does for Go types.
func (p recordedPatcher) Patch(ctx context.Context, request patch.Request, budget int64) (runtime.Object, error) {
	r := recordOf(ctx)
	if !slices.Contains(r.met, p.Policy) {
		r.met = append(r.met, p.Policy)
	}
	o, is := request.ObjectInterfaces.(*interfaces)
	plain := is && o.plain
	if plain {
		request.TypeConverter = &merger{TypeConverter: request.TypeConverter, valid: &o.valid}
	}
	obj, err := p.Patcher.Patch(ctx, request, budget)
	r.fail(p.Policy, err)
	if err == nil && plain {
		before := request.VersionedAttributes.VersionedObject.Object().(*unstructured.Unstructured)
		content, err := normal(before.Object, obj.(*unstructured.Unstructured).Object)
		return &unstructured.Unstructured{Object: content}, o.fail(err)
	}
	return obj, err
}

func (r *record) fail(p *Policy, err error) {
	if err != nil {
		r.errors = append(r.errors, policyError{p, err})
	}
}
