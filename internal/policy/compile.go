package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	admission "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/etcdshift/etcdshift/internal/bounded"
	"github.com/etcdshift/etcdshift/internal/pattern"
)

// compiler compiles the expressions of one policy, like the plugins of k8s.io/apiserver
// (mutating/compilation.go, validating/plugin.go), and collects the errors.
type compiler struct {
	policy string
	*cel.CompositedCompiler
	cel.OptionalVariableDeclarations
	errs []error
}

// sharedCompiler is for policies without variables: creating a compiler takes longer than
// compiling.
var sharedCompiler = sync.OnceValues(ownCompiler)

func ownCompiler() (*cel.CompositedCompiler, error) {
	return cel.NewCompositedCompiler(bounded.Environment())
}

// newCompiler compiles the variables of a policy.
func newCompiler(policy string, variables []admission.Variable, params bool, authorizer bool) (*compiler, error) {
	compile := sharedCompiler
	if len(variables) > 0 {
		compile = ownCompiler // the compiler stores the variables
	}
	composited, err := compile()
	if err != nil {
		return nil, err
	}
	has := cel.OptionalVariableDeclarations{HasParams: params, HasAuthorizer: authorizer}
	c := &compiler{policy: policy, CompositedCompiler: composited, OptionalVariableDeclarations: has}
	for _, v := range variables {
		accessor := &validating.Variable{Name: v.Name, Expression: v.Expression}
		result := c.CompileAndStoreVariable(accessor, c.OptionalVariableDeclarations, environment.StoredExpressions)
		if result.Error != nil {
			c.errs = append(c.errs, fmt.Errorf("variable %s: %w", v.Name, result.Error))
		}
	}
	return c, nil
}

// conditions compiles expressions.
func conditions[T any](
	c *compiler, what string, all []T, accessor func(*T) cel.ExpressionAccessor,
) cel.ConditionEvaluator {
	accessors := make([]cel.ExpressionAccessor, len(all))
	for i := range all {
		accessors[i] = accessor(&all[i])
	}
	compiled := c.CompileCondition(accessors, c.OptionalVariableDeclarations, environment.StoredExpressions)
	for _, err := range compiled.CompilationErrors() {
		c.errs = append(c.errs, fmt.Errorf("%s: %w", what, err))
	}
	if !slices.ContainsFunc(accessors, func(a cel.ExpressionAccessor) bool { return a != nil }) {
		return noExpressions{compiled, len(all)}
	}
	return costed{compiled, c.policy}
}

// matcher compiles match conditions; it returns nil if there are none.
func (c *compiler) matcher(
	all []admission.MatchCondition, failure *admission.FailurePolicyType, name string,
) matchconditions.Matcher {
	if len(all) == 0 {
		return nil
	}
	compiled := conditions(c, "matchConditions", all,
		func(m *admission.MatchCondition) cel.ExpressionAccessor { return (*matchconditions.MatchCondition)(m) })
	return matchconditions.NewMatcher(compiled, failure, "policy", "validate", name)
}

// place matches the position in an error of CEL: line and column of an expression.
var place = pattern.New(`ERROR: <input>:(\d+):(\d+)`)

// onOneLine returns compilation errors without the excerpts of the source.
func onOneLine(err error) string {
	var lines []string
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if !strings.HasPrefix(line, " | ") {
			lines = append(lines, place().ReplaceAllString(strings.TrimSpace(line), "line $1, column $2"))
		}
	}
	return strings.Join(lines, "; ")
}

// compileMutating compiles a policy.
func compileMutating(p *admission.MutatingAdmissionPolicy, authorizer bool) (mutating.PolicyEvaluator, error) {
	c, err := newCompiler(Mutating+" "+p.Name, p.Spec.Variables, p.Spec.ParamKind != nil, authorizer)
	if err != nil {
		return mutating.PolicyEvaluator{}, err
	}
	evaluator := mutating.PolicyEvaluator{CompositedCompiler: c.CompositedCompiler,
		Matcher: c.matcher(p.Spec.MatchConditions, p.Spec.FailurePolicy, p.Name)}
	c.HasPatchTypes = true
	for i, m := range p.Spec.Mutations {
		var accessor cel.ExpressionAccessor
		newPatcher := patch.NewApplyConfigurationPatcher
		if m.PatchType == admission.PatchTypeJSONPatch {
			accessor, newPatcher = &patch.JSONPatchCondition{Expression: m.JSONPatch.Expression}, patch.NewJSONPatcher
		} else {
			accessor = &patch.ApplyConfigurationCondition{Expression: m.ApplyConfiguration.Expression}
		}
		compiled := c.CompileMutatingEvaluator(accessor, c.OptionalVariableDeclarations, environment.StoredExpressions)
		for _, err := range compiled.CompilationErrors() {
			c.errs = append(c.errs, fmt.Errorf("mutations[%d]: %w", i, err))
		}
		evaluator.Mutators = append(evaluator.Mutators, newPatcher(costedMutation{compiled, c.policy}))
	}
	return evaluator, errors.Join(c.errs...)
}

// compileValidating compiles a policy.
func compileValidating(p *admission.ValidatingAdmissionPolicy, authorizer bool) (validating.Validator, error) {
	c, err := newCompiler(Validating+" "+p.Name, p.Spec.Variables, p.Spec.ParamKind != nil, authorizer)
	if err != nil {
		return nil, err
	}
	matcher := c.matcher(p.Spec.MatchConditions, p.Spec.FailurePolicy, p.Name)
	validations := conditions(c, "validations", p.Spec.Validations,
		func(v *admission.Validation) cel.ExpressionAccessor {
			return &validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason}
		})
	audits := conditions(c, "auditAnnotations", p.Spec.AuditAnnotations,
		func(a *admission.AuditAnnotation) cel.ExpressionAccessor {
			return &validating.AuditAnnotationCondition{Key: a.Key, ValueExpression: a.ValueExpression}
		})
	c.HasAuthorizer = false
	messages := conditions(c, "messageExpression", p.Spec.Validations,
		func(v *admission.Validation) cel.ExpressionAccessor {
			if v.MessageExpression == "" {
				return nil
			}
			return &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression}
		})
	return validating.NewValidator(validations, matcher, audits, messages, p.Spec.FailurePolicy, nil),
		errors.Join(c.errs...)
}
