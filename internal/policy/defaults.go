package policy

import (
	"errors"
	"fmt"

	admission "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// This file has the defaults and checks of an API server at the creation of a policy
// (k8s.io/kubernetes/pkg/apis/admissionregistration), as far as an evaluation needs them.

// checkMutating sets defaults, and returns an error about missing fields.
func checkMutating(spec *admission.MutatingAdmissionPolicySpec) error {
	spec.FailurePolicy = orDefault(spec.FailurePolicy, admission.Fail)
	if spec.ReinvocationPolicy == "" {
		spec.ReinvocationPolicy = admission.NeverReinvocationPolicy
	}
	if len(spec.Mutations) == 0 {
		return errors.New("spec.mutations is missing")
	}
	for i, m := range spec.Mutations {
		apply, patch := m.PatchType == admission.PatchTypeApplyConfiguration,
			m.PatchType == admission.PatchTypeJSONPatch
		if !apply && !patch || apply != (m.ApplyConfiguration != nil) || patch != (m.JSONPatch != nil) {
			return fmt.Errorf("spec.mutations[%d]: patchType %q takes one of applyConfiguration (ApplyConfiguration) "+
				"and jsonPatch (JSONPatch)", i, m.PatchType)
		}
	}
	return checkMatch(spec.MatchConstraints)
}

// checkValidating sets defaults, and returns an error about missing fields.
func checkValidating(spec *admission.ValidatingAdmissionPolicySpec) error {
	spec.FailurePolicy = orDefault(spec.FailurePolicy, admission.Fail)
	if len(spec.Validations) == 0 && len(spec.AuditAnnotations) == 0 {
		return errors.New("spec.validations is missing")
	}
	return checkMatch(spec.MatchConstraints)
}

func checkMatch(m *admission.MatchResources) error {
	if m == nil || len(m.ResourceRules) == 0 {
		return errors.New("spec.matchConstraints.resourceRules is missing")
	}
	setMatchDefaults(m)
	return nil
}

func checkParamRef(ref *admission.ParamRef) error {
	switch {
	case ref == nil:
		return nil
	case (ref.Name == "") == (ref.Selector == nil):
		return errors.New("spec.paramRef takes one of name and selector")
	case ref.ParameterNotFoundAction == nil:
		return errors.New("spec.paramRef.parameterNotFoundAction is missing")
	}
	return nil
}

func setMatchDefaults(m *admission.MatchResources) {
	if m == nil {
		return
	}
	m.MatchPolicy = orDefault(m.MatchPolicy, admission.Equivalent)
	m.NamespaceSelector = orDefault(m.NamespaceSelector, metav1.LabelSelector{})
	m.ObjectSelector = orDefault(m.ObjectSelector, metav1.LabelSelector{})
	for _, rules := range [][]admission.NamedRuleWithOperations{m.ResourceRules, m.ExcludeResourceRules} {
		for i := range rules {
			rules[i].Scope = orDefault(rules[i].Scope, admission.AllScopes)
		}
	}
}

func orDefault[T any](v *T, fallback T) *T {
	if v == nil {
		return &fallback
	}
	return v
}
