package graft

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/bounded"
	"github.com/etcdshift/etcdshift/internal/machines"
	"github.com/etcdshift/etcdshift/internal/policy"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/transform"
)

// group counts the items of a type in a namespace.
type group struct {
	prefix, namespace string
	resource          schema.GroupResource
	items             []*item
}

// groups returns the items by prefix, namespace and type, in the order of the items.
func (r *run) groups() (all []*group) {
	type at struct {
		prefix, namespace string
		resource          schema.GroupResource
	}
	by := map[at]*group{}
	for _, it := range r.items {
		if it.key.Name == "" {
			continue
		}
		in := at{it.key.Prefix, it.key.Namespace, it.key.Resource}
		if by[in] == nil {
			by[in] = &group{in.prefix, in.namespace, in.resource, nil}
			all = append(all, by[in])
		}
		by[in].items = append(by[in].items, it)
	}
	return all
}

// hook is an admission webhook of the input.
type hook struct {
	name           string
	rules          []admissionv1.RuleWithOperations
	spaces, single *metav1.LabelSelector
	conditions     []admissionv1.MatchCondition
	failure        *admissionv1.FailurePolicyType
}

const admissionGroup = ".admissionregistration.k8s.io"

// checkAdmission reports what the policies and webhooks of the input would do to the items. Those
// of the archive have not seen them in the origin either.
func (r *run) checkAdmission() error {
	groups := r.groups()
	for _, storage := range r.storages() {
		set := &policy.Set{}
		err := policy.Choice{Stored: true}.Complete(r.ctx, set, below{r.view.Reader(), storage.Prefix})
		if err != nil && r.ctx.Err() == nil {
			r.view.Raise(storage.Prefix+"/", codeNotEvaluated.Because("a policy of B is unreadable: %v", err))
			set, err = &policy.Set{}, nil
		}
		if err != nil {
			return err
		}
		engine, err := policy.New(r.ctx, set, below{r.view, storage.Prefix}, policy.Options{Create: true})
		if err != nil {
			return err
		}
		a := &admitting{run: r, storage: storage, engine: engine, groups: groups}
		if err := cmp.Or(a.checkPolicies(), a.checkHooks()); err != nil {
			return err
		}
	}
	return nil
}

// below has the objects of a source below one storage prefix.
type below struct {
	policy.Source
	prefix string
}

// Entries yields the entries of a type.
func (b below) Entries(
	ctx context.Context, t *inspect.Type, in inspect.Selection,
) iter.Seq2[*inspect.Entry, error] {
	return stream.Of(func(yield func(*inspect.Entry) error) error {
		return stream.Each(b.Source.Entries(ctx, t, in), func(e *inspect.Entry) error {
			if key, err := e.ParseKey(); err != nil || key.Prefix != b.prefix {
				return nil
			}
			return yield(e)
		})
	})
}

// admitting is the admission of a storage.
type admitting struct {
	*run
	storage machines.Storage // with the result
	engine  *policy.Engine
	groups  []*group
}

// seen counts the items for a finding.
type seen struct {
	first string // key
	items int
}

func (s *seen) add(key []byte) {
	if s.items++; s.items == 1 {
		s.first = string(key)
	}
}

// checkPolicies evaluates the bound policies: it reports items that a policy denies, policies that
// would change items, and policies that only a server can evaluate.
func (a *admitting) checkPolicies() error {
	changing, unknown := map[*policy.Policy]*seen{}, map[string]*seen{}
	for _, kind := range []string{policy.Validating, policy.Mutating} {
		types := a.engine.Types(kind)
		err := a.eachItem(types, func(it *item, o *inspect.Object) {
			answer := a.engine.Begin()
			evaluate := a.engine.Validate
			if kind == policy.Mutating {
				evaluate = a.engine.Mutate
			}
			answer = evaluate(bounded.WithMeter(a.ctx, answer.Meter), o)
			if !a.engine.Take(o.Type, &answer) {
				return // see Unchecked
			}
			if answer.Content != nil {
				for _, p := range answer.Met {
					changing[p] = cmp.Or(changing[p], &seen{})
					changing[p].add(it.at)
				}
			}
			for _, f := range answer.Findings {
				switch f.Code {
				case policy.CodeDenied:
					a.view.Raise(string(it.at), codeDenied.Because("%s", f.Reason))
				case policy.CodeNotEvaluated, policy.CodeCost, policy.CodeFailed, policy.CodeNotIdempotent:
					unknown[f.Reason] = cmp.Or(unknown[f.Reason], &seen{})
					unknown[f.Reason].add(it.at)
				}
			}
		})
		if err != nil {
			return err
		}
	}
	for _, p := range a.engine.Policies {
		if s := changing[p]; s != nil {
			a.view.Raise(s.first, codeUnadmitted.Because("%s would change the imported object; objects: %d", p,
				s.items))
		}
		if f := p.Rejected(); f != nil {
			a.view.Raise(a.storage.Prefix+"/", codeNotEvaluated.Because("%s", f.Reason))
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(unknown)) {
		a.view.Raise(unknown[reason].first, codeNotEvaluated.Because("%s; objects: %d", reason, unknown[reason].items))
	}
	if f := a.engine.Unchecked(); f != nil {
		a.view.Raise(a.storage.Prefix+"/", codeNotEvaluated.Because("%s", f.Reason))
	}
	return nil
}

// eachItem calls fn with the readable items of some types, as they are in the output.
func (a *admitting) eachItem(types []*inspect.Type, fn func(*item, *inspect.Object)) error {
	by := map[schema.GroupResource]*inspect.Type{}
	for _, t := range types {
		by[t.Resource] = t
	}
	for _, it := range a.items {
		t := by[it.key.Resource]
		if t == nil || it.key.Name == "" || it.key.Prefix != a.storage.Prefix {
			continue
		}
		e, err := a.view.Get(a.ctx, it.at)
		if err != nil {
			return err
		}
		if o := inspect.NewObject(t, e); o.Err == nil { // else it is reported as unreadable
			fn(it, o)
		}
	}
	return nil
}

// checkHooks reports the webhooks that select items.
func (a *admitting) checkHooks() error {
	storage := a.storage
	storage.Source = a.view.Reader()
	return cmp.Or(
		machines.Each(a.ctx, storage, "validatingwebhookconfigurations"+admissionGroup, "",
			func(e *transform.Entry, c *admissionv1.ValidatingWebhookConfiguration) error {
				return each(c.Webhooks, func(h admissionv1.ValidatingWebhook) error {
					return a.checkHook(e, hook{h.Name, h.Rules, h.NamespaceSelector, h.ObjectSelector,
						h.MatchConditions, h.FailurePolicy})
				})
			}),
		machines.Each(a.ctx, storage, "mutatingwebhookconfigurations"+admissionGroup, "",
			func(e *transform.Entry, c *admissionv1.MutatingWebhookConfiguration) error {
				return each(c.Webhooks, func(h admissionv1.MutatingWebhook) error {
					return a.checkHook(e, hook{h.Name, h.Rules, h.NamespaceSelector, h.ObjectSelector,
						h.MatchConditions, h.FailurePolicy})
				})
			}))
}

// each calls fn with the elements of a list until an error.
func each[T any](all []T, fn func(T) error) error {
	for _, one := range all {
		if err := fn(one); err != nil {
			return err
		}
	}
	return nil
}

// checkHook reports a webhook that selects items.
func (a *admitting) checkHook(e *transform.Entry, one hook) error {
	spaces, err := metav1.LabelSelectorAsSelector(cmp.Or(one.spaces, &metav1.LabelSelector{}))
	single, err2 := metav1.LabelSelectorAsSelector(cmp.Or(one.single, &metav1.LabelSelector{}))
	if err != nil || err2 != nil {
		return nil // it selects nothing
	}
	conditions := policy.CompileConditions("webhook "+one.name, one.conditions, one.failure)
	selected := seen{}
	for _, g := range a.groups {
		if g.prefix != a.storage.Prefix || !g.matches(one) {
			continue
		}
		if in, err := a.inSpace(g, spaces); err != nil || !in {
			if err != nil {
				return err
			}
			continue
		}
		for _, it := range g.items {
			is, err := a.selects(it, single, conditions)
			if err != nil {
				return err
			}
			if is {
				selected.add(it.at)
			}
		}
	}
	if selected.items > 0 {
		a.view.Raise(string(e.Key), codeUnadmitted.Because(
			"webhook %s selects %d imported objects, and has not seen them; the first: %s", one.name, selected.items,
			selected.first))
	}
	return nil
}

// selects reports whether the selector and the matchConditions of a webhook select an item.
func (a *admitting) selects(it *item, single labels.Selector, c *policy.Conditions) (bool, error) {
	if !single.Empty() {
		if set, err := a.labelsOf(it.at); err != nil || !single.Matches(set) {
			return false, err
		}
	}
	t := a.types.Of(it.key.Resource)
	if t == nil {
		return true, nil
	}
	e, err := a.view.Get(a.ctx, it.at)
	if err != nil {
		return false, err
	}
	is, err := a.engine.Matches(a.ctx, inspect.NewObject(t, e), c)
	return is || err != nil, nil // an unreadable object is reported
}

// matches reports whether the rules match the creation of an object of the group.
func (g *group) matches(one hook) bool {
	version := schema.GroupVersionResource{Group: g.resource.Group, Version: "v1", Resource: g.resource.Resource}
	name := g.items[0].key.Name
	attributes := admission.NewAttributesRecord(nil, nil, schema.GroupVersionKind{}, g.namespace, name, version, "",
		admission.Create, &metav1.CreateOptions{}, false, nil)
	match := func(rule admissionv1.RuleWithOperations) bool {
		rule.APIVersions = []string{"*"} // a version of the rule is equivalent to the stored one
		return (&rules.Matcher{Rule: rule, Attr: attributes}).Matches()
	}
	return slices.ContainsFunc(one.rules, match)
}

// inSpace reports whether a selector of namespaces selects the objects of a group. Objects without
// a namespace are selected.
func (r *run) inSpace(g *group, spaces labels.Selector) (bool, error) {
	if g.namespace == "" || spaces.Empty() {
		return true, nil
	}
	storage := machines.Storage{Source: r.view, Prefix: g.prefix}
	set, err := r.labelsOf(storage.Key("namespaces", "", g.namespace))
	return err == nil && spaces.Matches(set), err
}

// labelsOf returns the labels of an object, none for a missing one.
func (r *run) labelsOf(key []byte) (labels.Set, error) {
	e, err := r.view.Get(r.ctx, key)
	if e == nil || err != nil {
		return nil, err
	}
	meta, err := e.Meta()
	if err != nil || e.Undecryptable != nil {
		return nil, nil
	}
	return meta.Labels, nil
}
