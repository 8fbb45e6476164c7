package policy

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	admissionapi "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/bounded"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/internal/redact"
	"github.com/etcdshift/etcdshift/keys"
)

// Answer is the answer of policies for an object.
type Answer struct {
	Met      []*Policy          // matching policies
	Failed   []*Policy          // policies that deny the object, or with a failed expression
	Findings []*finding.Finding // without a key
	Content  map[string]any     // result of Mutate; nil if unchanged
	Meter    *bounded.Meter     // cost of the expressions
}

// add adds a finding about a policy.
func (a *Answer) add(p *Policy, f *finding.Finding) {
	if !slices.Contains(a.Failed, p) {
		a.Failed = append(a.Failed, p)
	}
	if !slices.ContainsFunc(a.Findings, func(o *finding.Finding) bool {
		return o.Code == f.Code &&
			o.Reason == f.Reason
	}) {
		a.Findings = append(a.Findings, f)
	}
}

// request is one evaluation of an object.
type request struct {
	*Engine
	*interfaces
	object   *inspect.Object
	content  map[string]any // the object at the version of the request, as a server reads it
	kind     schema.GroupVersionKind
	policies []*Policy       // policies that name the object
	secrets  *redact.Secrets // secrets of the object and of quotable objects; nil until needed
}

// request prepares the evaluation of an object by policies of a kind. It returns nil if no policy
// names the object, or after a finding that the object cannot be evaluated.
func (e *Engine) request(kind string, o *inspect.Object, a *Answer) *request {
	version, content, err := requested(o)
	r := &request{Engine: e, interfaces: &interfaces{Type: o.Type, known: e.versions(o.Type)}, object: o,
		content: content}
	for _, p := range e.Policies {
		if p.Kind != kind {
			continue
		}
		switch p.names(o.Type, version) {
		case byRules:
			r.policies = append(r.policies, p)
		case otherVersion:
			f := CodeNotEvaluated.Because("%s names exactly another version than %s, at which the object is stored", p,
				version)
			a.add(p, f.Decided(finding.Noted))
		}
	}
	switch {
	case len(r.policies) == 0 || err == nil && !a.Meter.Start(): // Take refuses the answer
		return nil
	case errors.Is(err, encoding.ErrEncrypted):
		a.Findings = append(a.Findings, finding.Encrypted.Because("%v", err))
	case errors.Is(err, errVersion):
		a.Findings = append(a.Findings, CodeNotEvaluated.Because("%v", err))
	case err != nil:
		a.Findings = append(a.Findings, finding.Undecodable.Because("%v", err))
	default:
		r.kind = schema.FromAPIVersionAndKind(content["apiVersion"].(string), o.Type.Kind)
		r.plain = r.mayBePlain()
		return r
	}
	return nil
}

// requested returns the object as a server reads it at the version of the request: the stored
// version, or the preferred version if the stored version is not served.
func requested(o *inspect.Object) (version string, content map[string]any, err error) {
	o.AsServed()
	switch {
	case o.Err != nil:
		return "", nil, o.Err
	case o.Partial:
		return "", nil, native.ErrUnknownKind
	}
	u := &unstructured.Unstructured{Object: o.Content}
	if u.GetAPIVersion() == "" {
		return "", nil, errors.New("it has no apiVersion")
	}
	version = u.GroupVersionKind().Version
	crd := o.Type.CRD
	if crd == nil {
		return version, o.Content, nil
	}
	content = runtime.DeepCopyJSON(o.Content)
	if _, err := crd.Begin(content); err != nil {
		return version, nil, err
	}
	if crd.Served(version) {
		return version, content, nil
	}
	preferred := crd.PreferredVersion()
	if preferred == "" {
		return version, nil, fmt.Errorf("no version of the kind is served: %w", errVersion)
	}
	if _, err := crd.Convert(content, preferred); err != nil {
		return version, nil, fmt.Errorf("the object is stored at %s, which is not served: %w: %w", version,
			err, errVersion)
	}
	return preferred, content, nil
}

// mayBePlain reports whether the policies can evaluate JSON content instead of the Go type of a
// built-in kind, without conversions. Protobuf was encoded from the Go type, and a mutation by
// ApplyConfiguration sees and merges the encoded form. Match conditions and the mutations after
// them see the Go type; JSONPatch decodes into it.
func (r *request) mayBePlain() bool {
	if value, err := r.object.ParseValue(); err != nil || value.Format != encoding.FormatProtobuf || !r.typed() {
		return false
	}
	return !slices.ContainsFunc(r.policies, func(p *Policy) bool {
		return p.mutating == nil || len(p.mutating.Policy.Spec.MatchConditions) > 0 ||
			slices.ContainsFunc(p.mutating.Policy.Spec.Mutations,
				func(m admissionapi.Mutation) bool { return m.ApplyConfiguration == nil })
	})
}

// attributes returns the attributes of a creation, or of an update without changes.
func (r *request) attributes() (admission.Attributes, error) {
	var object, old runtime.Object
	var options runtime.Object = &metav1.CreateOptions{}
	var err error
	if object = (&unstructured.Unstructured{Object: r.content}); !r.plain { // plain content is not changed in place
		if object, err = toObject(r.content); err != nil {
			return nil, err
		}
	}
	if r.does == admissionapi.Update {
		options = &metav1.UpdateOptions{}
		if old = (&unstructured.Unstructured{Object: r.content}); !r.plain {
			old = object.DeepCopyObject()
		}
	}
	at, name, namespace := r.kind.GroupVersion().WithResource(r.Resource.Resource), r.object.Parsed.Name,
		r.object.Parsed.Namespace
	if r.Resource == (schema.GroupResource{Resource: "namespaces"}) {
		namespace = name
	}
	return admission.NewAttributesRecord(object, old, r.kind, namespace, name, at, "", admission.Operation(r.does),
		options, false, r.user), nil
}

// Validate evaluates the ValidatingAdmissionPolicies.
func (e *Engine) Validate(ctx context.Context, o *inspect.Object) (a Answer) {
	a.Meter = bounded.MeterOf(ctx)
	r := e.request(Validating, o, &a)
	if r == nil {
		return a
	}
	attributes, err := r.attributes()
	if err != nil {
		a.Findings = append(a.Findings, finding.Undecodable.Because("%v", err))
		return a
	}
	for _, p := range r.policies {
		for _, hook := range p.validating {
			ctx, done := withRecord(ctx)
			err := e.validator.Dispatch(ctx, attributes, r.interfaces, []validating.PolicyHook{hook})
			if len(done.decisions) > 0 && !slices.Contains(a.Met, p) {
				a.Met = append(a.Met, p)
			}
			r.addDecisions(&a, p, hook, done.decisions, err)
			r.failed = nil
			if a.Meter.Cost() > mostCost {
				a.Findings = append(a.Findings, CodeCost.Because("%v, the most of it %s", errCost, a.Meter.Dearest()))
				return a
			}
		}
	}
	return a
}

// addDecisions adds the decisions of a policy with one binding.
func (r *request) addDecisions(
	a *Answer, p *Policy, hook validating.PolicyHook, decisions []validating.PolicyDecision, err error,
) {
	if r.failed != nil {
		a.add(p, CodeNotEvaluated.Because("%s: %v", p, r.failed))
		return
	}
	binding, denied := hook.Bindings[0], false
	for i, d := range decisions {
		if d.Action == validating.ActionAdmit && d.Evaluation != validating.EvalError {
			continue
		}
		text := staticMessage(hook.Policy.Spec.Validations, i, d)
		if !secret(r.Type) && !p.secret && text != d.Message { // result of an expression
			text = r.quote(d.Message)
		}
		if code := boundOf(errors.New(d.Message)); code != nil && d.Evaluation == validating.EvalError {
			a.add(p, code.Because("%s with binding %s: %s", p, binding.Name, reasonOf(code)))
			denied = true
			continue
		}
		if d.Action == validating.ActionAdmit && d.Evaluation == validating.EvalError {
			a.add(p, CodeIgnored.Because("%s with binding %s: %s", p, binding.Name, text))
		}
		if d.Action != validating.ActionDeny {
			continue
		}
		for _, action := range binding.Spec.ValidationActions {
			switch action {
			case admissionapi.Deny:
				denied = true
				a.add(p, CodeDenied.Because("ValidatingAdmissionPolicy '%s' with binding '%s' denied request: %s",
					p.Name, binding.Name, text))
			case admissionapi.Warn:
				a.add(p, CodeWarned.Because("Validation failed for ValidatingAdmissionPolicy '%s' with "+
					"binding '%s': %s", p.Name, binding.Name, text))
			case admissionapi.Audit:
				a.add(p, CodeAudited.Because("ValidatingAdmissionPolicy '%s' with binding '%s': %s", p.Name,
					binding.Name, text))
			}
		}
	}
	if err != nil && !denied { // the configuration failed, not a validation
		a.add(p, CodeDenied.Because("%s", strings.Join(r.messages(p, err), "; ")))
	}
}

// Mutate evaluates the MutatingAdmissionPolicies. If they change the object, Content is the new
// object at the stored version.
func (e *Engine) Mutate(ctx context.Context, o *inspect.Object) (a Answer) {
	a.Meter = bounded.MeterOf(ctx)
	r := e.request(Mutating, o, &a)
	if r == nil {
		return a
	}
	before := r.content
	once := r.mutate(ctx, &a)
	if once == nil {
		return a
	}
	r.content, r.secrets = once, nil
	switch twice := r.mutate(ctx, &a); {
	case r.Resource == keys.DefinitionType():
		a.Findings = append(a.Findings, CodeNotEvaluated.Because("%s: CustomResourceDefinitions are not changed",
			Names(a.Met)))
		return a
	case twice != nil:
		a.Findings = append(a.Findings, CodeNotIdempotent.Because("applied again, they change it again: %s",
			Names(a.Met)))
		return a
	case refused(a.Findings):
		return a
	}
	a.Content = once
	if err := r.restore(&a, before); err != nil {
		a.Content = nil
		a.Findings = append(a.Findings, CodeFailed.Because("%s: %v", Names(a.Met), err))
	}
	return a
}

// refused reports whether a server would not store the object.
func refused(all []*finding.Finding) bool {
	return slices.ContainsFunc(all, func(f *finding.Finding) bool { return f.Level == finding.Error })
}

// Names lists policies for a message.
func Names(all []*Policy) string {
	names := make([]string, len(all))
	for i, p := range all {
		names[i] = p.String()
	}
	return finding.List(names)
}

// mutate returns the mutated content; nil if the policies change nothing.
func (r *request) mutate(ctx context.Context, a *Answer) map[string]any {
	attributes, err := r.attributes()
	if err != nil {
		a.Findings = append(a.Findings, finding.Undecodable.Because("%v", err))
		return nil
	}
	var hooks []mutating.PolicyHook
	for _, p := range r.policies {
		hooks = append(hooks, *p.mutating)
	}
	ctx, done := withRecord(ctx)
	err = r.mutator.Dispatch(ctx, attributes, r.interfaces, hooks)
	if again := attributes.GetReinvocationContext(); err == nil && again.ShouldReinvoke() && r.mayReinvoke() {
		again.SetIsReinvoke()
		err = r.mutator.Dispatch(ctx, attributes, r.interfaces, hooks)
	}
	for _, p := range done.met {
		if !slices.Contains(a.Met, p) {
			a.Met = append(a.Met, p)
		}
	}
	r.addErrors(a, done, err)
	if err != nil || reflect.DeepEqual(attributes.GetOldObject(), attributes.GetObject()) {
		return nil
	}
	content, err := toContent(attributes.GetObject())
	if err != nil || reflect.DeepEqual(content, r.content) {
		return nil
	}
	return content
}

// mayReinvoke reports whether a second round may change something.
func (r *request) mayReinvoke() bool {
	return !r.plain || slices.ContainsFunc(r.policies, func(p *Policy) bool {
		return p.mutating.Policy.Spec.ReinvocationPolicy != admissionapi.NeverReinvocationPolicy
	})
}

// addErrors adds findings about failed expressions and about a refusal.
func (r *request) addErrors(a *Answer, done *record, err error) {
	if r.failed != nil {
		a.Findings = append(a.Findings, CodeNotEvaluated.Because("%s: %v", Names(r.policies), r.failed))
		return
	}
	for _, failed := range done.errors {
		text := errQuiet
		if !secret(r.Type) && !failed.secret {
			text = r.quote(failed.Error())
		}
		code := CodeFailed
		switch {
		case boundOf(failed.error) != nil:
			code = boundOf(failed.error)
			text = reasonOf(code)
		case errors.Is(failed.error, errNoSchema):
			code, text = CodeNotEvaluated, errNoSchema.Error()
		case *failed.mutating.Policy.Spec.FailurePolicy == admissionapi.Ignore:
			code = CodeIgnored
		}
		a.add(failed.Policy, code.Because("%s: %s", failed.Policy, text))
	}
	if err != nil && !refused(a.Findings) {
		for _, text := range r.messages(nil, err) {
			a.Findings = append(a.Findings, CodeFailed.Because("%s", text))
		}
	}
}

// restore converts the new content to the stored version. It returns an error if fields changed
// that no update may change.
func (r *request) restore(a *Answer, before map[string]any) error {
	was, is := &unstructured.Unstructured{Object: before}, &unstructured.Unstructured{Object: a.Content}
	switch {
	case was.GroupVersionKind() != is.GroupVersionKind():
		return errors.New("they change apiVersion or kind")
	case was.GetName() != is.GetName() || was.GetNamespace() != is.GetNamespace() || was.GetUID() != is.GetUID():
		return errors.New("they change metadata.name, metadata.namespace or metadata.uid")
	}
	stored := schema.FromAPIVersionAndKind(r.object.Content["apiVersion"].(string), r.Kind)
	if r.CRD == nil || is.GroupVersionKind() == stored {
		return nil
	}
	_, err := r.CRD.Convert(a.Content, stored.Version)
	return err
}
