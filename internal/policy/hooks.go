package policy

import (
	"context"

	admissionapi "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/bounded"
)

// Conditions are the matchConditions of a webhook.
type Conditions struct{ matcher matchconditions.Matcher } // nil if all objects match

// CompileConditions compiles the matchConditions of a webhook. Conditions that no server would
// accept, and those that ask the authorizer, match all objects.
func CompileConditions(
	name string, all []admissionapi.MatchCondition, failure *admissionapi.FailurePolicyType,
) *Conditions {
	c, err := newCompiler(name, nil, false, false)
	if err != nil {
		return &Conditions{}
	}
	matcher := c.matcher(all, failure, name)
	if len(c.errs) > 0 {
		return &Conditions{}
	}
	return &Conditions{matcher}
}

// Matches evaluates the matchConditions of a webhook. Conditions that only a server can evaluate
// match.
func (e *Engine) Matches(ctx context.Context, o *inspect.Object, c *Conditions) (bool, error) {
	_, content, err := requested(o)
	if err != nil || c.matcher == nil {
		return true, err
	}
	r := &request{Engine: e, interfaces: &interfaces{Type: o.Type, known: e.versions(o.Type)}, object: o,
		content: content, kind: schema.FromAPIVersionAndKind(content["apiVersion"].(string), o.Type.Kind)}
	attributes, err := r.attributes()
	if err != nil {
		return true, err
	}
	versioned, err := admission.NewVersionedAttributes(attributes, r.kind, r.interfaces)
	if err != nil {
		return true, err
	}
	result := c.matcher.Match(bounded.WithMeter(ctx, e.budget.Meter()), versioned, nil, noAuthorizer{})
	return result.Matches || result.Error != nil, nil
}
