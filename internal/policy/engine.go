package policy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	admissionapi "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/informers"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/bounded"
	"github.com/etcdshift/etcdshift/internal/redact"
	"github.com/etcdshift/etcdshift/keys"
)

// Options configure an Engine.
type Options struct {
	User   string // of the request; "" is DefaultUser
	Groups []string
	Cost   int64 // CEL budget of a run in addition to that of each object; 0 is bounded.RunCost
	Create bool  // requests create the objects; else they are updates without changes
}

// DefaultUser is the user of the request, with the groups of every authenticated user.
const DefaultUser = "etcdshift"

// Policy is a policy with the counts of its evaluations.
type Policy struct {
	Kind     string   `json:"kind"`
	Name     string   `json:"name"`
	Bindings []string `json:"bindings"`
	Matched  int      `json:"matched"` // objects matched by its rules, selectors and conditions
	Failed   int      `json:"failed"`  // objects that were denied or for which an expression failed

	match    *admissionapi.MatchResources
	does     admissionapi.OperationType // of the requests
	rejected *finding.Finding           // reason for not evaluating the policy, or nil
	secret   bool                       // its params are Secrets
	params   []runtime.Object           // objects that its expressions may quote

	mutating   *mutating.PolicyHook
	validating []validating.PolicyHook // one hook for each binding
}

// Engine evaluates the policies of a Set.
type Engine struct {
	Policies []*Policy // by kind and name
	set      *Set
	user     user.Info
	does     admissionapi.OperationType // of the requests
	types    *inspect.Types
	known    map[*inspect.Type][]string // versions by type
	unbound  []member                   // bindings without a policy
	hide     func() (*redact.Shared, error)

	namespaces *namespaces

	mutator   generic.Dispatcher[mutating.PolicyHook]
	validator generic.Dispatcher[validating.PolicyHook]

	budget *bounded.Budget
	left   []*inspect.Type // types of objects after the end of the budget
}

// New compiles the policies of a set. Namespaces and params are read from the source; params of the
// set replace stored params.
func New(ctx context.Context, set *Set, from Source, o Options) (*Engine, error) {
	e := &Engine{set: set, user: userOf(o), budget: &bounded.Budget{Limit: o.Cost}, known: map[*inspect.Type][]string{},
		does: admissionapi.Update}
	if o.Create {
		e.does = admissionapi.Create
	}
	for _, p := range set.Mutating {
		e.addMutating(p)
	}
	for _, p := range set.Validating {
		e.addValidating(p)
	}
	e.findUnbound()
	return e, e.Refresh(ctx, from)
}

func userOf(o Options) user.Info {
	if o.User == "" {
		o.User = DefaultUser
	}
	return &user.DefaultInfo{Name: o.User, Groups: append([]string{user.AllAuthenticated}, o.Groups...)}
}

// Refresh rereads Namespaces and params.
func (e *Engine) Refresh(ctx context.Context, from Source) (err error) {
	if e.types, err = from.Types(ctx); err != nil {
		return err
	}
	e.hide = func() (*redact.Shared, error) { return from.Secrets(ctx) }
	for _, t := range e.types.All() {
		e.known[t] = versionsOf(t)
	}
	of := e.types.Of(schema.GroupResource{Resource: "namespaces"})
	all := &namespaces{}
	if of != nil {
		if all, err = readNamespaces(ctx, from, of); err != nil {
			return err
		}
	}
	e.namespaces = all
	matcher := matching.NewMatcher(all.lister(), all)
	e.mutator = mutating.NewDispatcher(noAuthorizer{}, matcher, newConverters(e.types))
	e.validator = validating.NewDispatcher(noAuthorizer{}, generic.NewPolicyMatcher(matcher))
	return e.readParams(ctx, from)
}

// versions returns the versions of a type.
func (e *Engine) versions(t *inspect.Type) []string {
	if known, is := e.known[t]; is {
		return known
	}
	return versionsOf(t)
}

// noAuthorizer replaces the authorizer; policies with authorizer checks are not evaluated.
type noAuthorizer struct{}

// Authorize has no opinion.
func (noAuthorizer) Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionNoOpinion, "", errors.New("there is no authorizer")
}

// compiled records why a policy cannot be evaluated. with is the error of compiling with an
// authorizer; without compiles without one, if the text of the policy mentions it.
func (p *Policy) compiled(spec any, with error, without func() error) {
	text, err := json.Marshal(spec)
	switch {
	case with != nil:
		p.rejected = CodeInvalid.Because("%s: %s", p, onOneLine(with))
	case (err != nil || bytes.Contains(text, []byte("uthorizer"))) && without() != nil:
		p.rejected = CodeNotEvaluated.Because("%s asks the API server's authorizer, which no snapshot has", p)
	}
}

// String returns the kind and name of a policy.
func (p *Policy) String() string { return p.Kind + " " + p.Name }

func (e *Engine) addMutating(spec *admissionapi.MutatingAdmissionPolicy) {
	p := &Policy{Kind: Mutating, Name: spec.Name, Bindings: []string{}, match: spec.Spec.MatchConstraints,
		does: e.does}
	hook := &mutating.PolicyHook{Policy: spec}
	for _, b := range e.set.MutatingBindings {
		if b.Spec.PolicyName == spec.Name {
			hook.Bindings = append(hook.Bindings, b)
			p.Bindings = append(p.Bindings, b.Name)
		}
	}
	evaluator, err := compileMutating(spec, true)
	p.compiled(spec, err, func() error { _, err := compileMutating(spec, false); return err })
	hook.Evaluator = recordMutating(p, evaluator)
	p.mutating = hook
	e.Policies = append(e.Policies, p)
}

func (e *Engine) addValidating(spec *admissionapi.ValidatingAdmissionPolicy) {
	p := &Policy{Kind: Validating, Name: spec.Name, Bindings: []string{}, match: spec.Spec.MatchConstraints,
		does: e.does}
	evaluator, err := compileValidating(spec, true)
	p.compiled(spec, err, func() error { _, err := compileValidating(spec, false); return err })
	for _, b := range e.set.ValidatingBindings {
		if b.Spec.PolicyName == spec.Name {
			p.validating = append(p.validating, validating.PolicyHook{
				Policy: spec, Bindings: []*admissionapi.ValidatingAdmissionPolicyBinding{b},
				Evaluator: recordedValidator{evaluator},
			})
			p.Bindings = append(p.Bindings, b.Name)
		}
	}
	e.Policies = append(e.Policies, p)
}

// findUnbound finds bindings to a policy outside the set.
func (e *Engine) findUnbound() {
	for _, m := range e.set.members() {
		of := member{strings.TrimSuffix(m.kind, "Binding"), m.policy, ""}
		if m.binds() && !slices.Contains(e.set.members(), of) {
			e.unbound = append(e.unbound, m)
		}
	}
}

// readParams reads the params of all policies.
func (e *Engine) readParams(ctx context.Context, from Source) error {
	for _, p := range e.Policies {
		kind, refs := p.paramRefs()
		if kind == nil || p.rejected != nil {
			continue
		}
		gv, err := schema.ParseGroupVersion(kind.APIVersion)
		if err != nil {
			p.rejected = CodeInvalid.Because("%s: spec.paramKind: %v", p, err)
			continue
		}
		p.secret = gv.Group == "" && kind.Kind == "Secret"
		reader := paramReader{from, e.types, e.set.Others, gv.WithKind(kind.Kind), refs}
		params, err := reader.read(ctx)
		var unusable *paramError
		switch {
		case errors.As(err, &unusable):
			p.rejected = CodeNotEvaluated.Because("%s: %v", p, err)
		case err != nil && !errors.Is(err, errNoParamKind):
			return err
		}
		p.setParams(params, err)
	}
	return nil
}

// paramRefs returns the kind of the params, nil for none, and the references of the bindings.
func (p *Policy) paramRefs() (kind *admissionapi.ParamKind, refs []*admissionapi.ParamRef) {
	add := func(ref *admissionapi.ParamRef) {
		if ref != nil {
			refs = append(refs, ref)
		}
	}
	if p.mutating != nil {
		for _, b := range p.mutating.Bindings {
			add(b.Spec.ParamRef)
		}
		return p.mutating.Policy.Spec.ParamKind, refs
	}
	for _, hook := range p.validating {
		kind = hook.Policy.Spec.ParamKind
		add(hook.Bindings[0].Spec.ParamRef)
	}
	return kind, refs
}

// setParams gives the hooks their params, or the error of a server that does not know the kind.
func (p *Policy) setParams(all *params, err error) {
	var informer informers.GenericInformer
	var scope meta.RESTScope
	p.params = nil
	if all != nil {
		informer, scope = all, all.scope
		for _, one := range all.all {
			p.params = append(p.params, one.Object)
		}
	}
	if p.mutating != nil {
		p.mutating.ParamInformer, p.mutating.ParamScope, p.mutating.ConfigurationError = informer, scope, err
	}
	for i := range p.validating {
		hook := &p.validating[i]
		hook.ParamInformer, hook.ParamScope, hook.ConfigurationError = informer, scope, err
	}
}

// The kinds of policies.
const (
	Mutating   = "MutatingAdmissionPolicy"
	Validating = "ValidatingAdmissionPolicy"
)

// Of returns the policies of a kind.
func (e *Engine) Of(kind string) []*Policy {
	return slices.DeleteFunc(append([]*Policy{}, e.Policies...), func(p *Policy) bool { return p.Kind != kind })
}

// Types returns the types that policies of a kind may match, in a fixed order.
func (e *Engine) Types(kind string) (all []*inspect.Type) {
	for _, t := range e.types.All() {
		// servers evaluate no policy on policies
		if slices.Contains(Resources(), t.Resource) || keys.IsRecord(t.Resource) {
			continue
		}
		if slices.ContainsFunc(e.Policies, func(p *Policy) bool {
			return p.Kind == kind &&
				p.names(t, "") != notNamed
		}) {
			all = append(all, t)
		}
	}
	return all
}

// isParam reports whether a type is the param kind of a policy.
func (e *Engine) isParam(t *inspect.Type) bool {
	return slices.ContainsFunc(e.Policies, func(p *Policy) bool {
		kind, _ := p.paramRefs()
		return kind != nil && kind.Kind == t.Kind && schema.FromAPIVersionAndKind(kind.APIVersion,
			kind.Kind).Group == t.Resource.Group
	})
}

// Rejected returns why a bound policy is not evaluated, nil if it is.
func (p *Policy) Rejected() *finding.Finding {
	if len(p.Bindings) == 0 {
		return nil
	}
	return p.rejected
}

// names returns how the rules of a policy name a type; a rejected or unbound policy names none.
func (p *Policy) names(t *inspect.Type, version string) named {
	if p.rejected != nil || len(p.Bindings) == 0 {
		return notNamed
	}
	return names(p.match, t, version, p.does)
}

// Unused returns a finding for each policy that is not evaluated or that matched no object, and for
// each binding without a policy.
func (e *Engine) Unused(kind string) (found []*finding.Finding) {
	for _, p := range e.Policies {
		if p.Kind != kind {
			continue
		}
		updates := slices.ContainsFunc(p.match.ResourceRules, func(r admissionapi.NamedRuleWithOperations) bool {
			return has(r.Operations, admissionapi.Update, admissionapi.OperationAll)
		})
		switch {
		case p.rejected != nil:
			found = append(found, p.rejected)
		case p.Matched > 0:
		case len(p.Bindings) == 0:
			found = append(found, CodeUnmatched.Because("%s has no binding", p))
		case !updates:
			found = append(found, CodeUnmatched.Because("%s does not name UPDATE in its rules: stored objects meet "+
				"policies at updates", p))
		default:
			found = append(found, CodeUnmatched.Because("%s: no stored object matches its rules, selectors "+
				"and conditions", p))
		}
	}
	for _, m := range e.unbound {
		if m.kind == kind+"Binding" {
			found = append(found, CodeUnmatched.Because("%s names policy %q, which is not given", m, m.policy))
		}
	}
	return found
}

// secret reports whether findings about an object must not quote it.
func secret(t *inspect.Type) bool { return t.Resource == schema.GroupResource{Resource: "secrets"} }
