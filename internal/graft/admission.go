package graft

import (
	"cmp"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"

	"github.com/etcdshift/etcdshift/internal/machines"
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

// selecting is a webhook or policy of the input.
type selecting struct {
	what           string
	rules, exclude []admissionv1.RuleWithOperations
	spaces, single *metav1.LabelSelector
}

const admissionGroup = ".admissionregistration.k8s.io"

// checkAdmission reports the webhooks and policies of the input that select items: they have not
// seen them.
func (r *run) checkAdmission() error {
	groups := r.groups()
	for _, storage := range r.storages() {
		storage.Source = r.view.Reader() // the items' own policies never saw them either
		err := cmp.Or(
			machines.Each(r.ctx, storage, "validatingwebhookconfigurations"+admissionGroup, "",
				func(e *transform.Entry, c *admissionv1.ValidatingWebhookConfiguration) error {
					return each(c.Webhooks, func(h admissionv1.ValidatingWebhook) error {
						hook := selecting{"webhook " + h.Name, h.Rules, nil, h.NamespaceSelector, h.ObjectSelector}
						return r.checkSelecting(storage, groups, e, hook)
					})
				}),
			machines.Each(r.ctx, storage, "mutatingwebhookconfigurations"+admissionGroup, "",
				func(e *transform.Entry, c *admissionv1.MutatingWebhookConfiguration) error {
					return each(c.Webhooks, func(h admissionv1.MutatingWebhook) error {
						hook := selecting{"webhook " + h.Name, h.Rules, nil, h.NamespaceSelector, h.ObjectSelector}
						return r.checkSelecting(storage, groups, e, hook)
					})
				}),
			machines.Each(r.ctx, storage, "validatingadmissionpolicies"+admissionGroup, "",
				func(e *transform.Entry, p *admissionv1.ValidatingAdmissionPolicy) error {
					return r.checkSelecting(storage, groups, e, selectingOf(p.Spec.MatchConstraints))
				}),
			machines.Each(r.ctx, storage, "mutatingadmissionpolicies"+admissionGroup, "",
				func(e *transform.Entry, p *admissionv1.MutatingAdmissionPolicy) error {
					return r.checkSelecting(storage, groups, e, selectingOf(p.Spec.MatchConstraints))
				}))
		if err != nil {
			return err
		}
	}
	return nil
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

// selectingOf returns the match constraints of a policy.
func selectingOf(m *admissionv1.MatchResources) selecting {
	if m == nil {
		return selecting{}
	}
	of := func(named []admissionv1.NamedRuleWithOperations) (all []admissionv1.RuleWithOperations) {
		for _, one := range named {
			all = append(all, one.RuleWithOperations)
		}
		return all
	}
	return selecting{"the policy", of(m.ResourceRules), of(m.ExcludeResourceRules), m.NamespaceSelector,
		m.ObjectSelector}
}

// checkSelecting reports a webhook or policy that selects items.
func (r *run) checkSelecting(storage machines.Storage, groups []*group, e *transform.Entry, one selecting) error {
	spaces, err := metav1.LabelSelectorAsSelector(cmp.Or(one.spaces, &metav1.LabelSelector{}))
	single, err2 := metav1.LabelSelectorAsSelector(cmp.Or(one.single, &metav1.LabelSelector{}))
	if err != nil || err2 != nil {
		return nil // it selects nothing
	}
	first, n := "", 0
	for _, g := range groups {
		if g.prefix != storage.Prefix || !g.matches(one) {
			continue
		}
		if in, err := r.inSpace(g, spaces); err != nil || !in {
			if err != nil {
				return err
			}
			continue
		}
		for _, it := range g.items {
			if !single.Empty() {
				if set, err := r.labelsOf(it.at); err != nil || !single.Matches(set) {
					if err != nil {
						return err
					}
					continue
				}
			}
			if n++; n == 1 {
				first = string(it.at)
			}
		}
	}
	if n > 0 {
		r.view.Raise(string(e.Key), codeUnadmitted.Because(
			"%s selects %d imported objects, and has not seen them; the first: %s", one.what, n, first))
	}
	return nil
}

// matches reports whether the rules match the creation of an object of the group.
func (g *group) matches(one selecting) bool {
	version := schema.GroupVersionResource{Group: g.resource.Group, Version: "v1", Resource: g.resource.Resource}
	name := g.items[0].key.Name
	attributes := admission.NewAttributesRecord(nil, nil, schema.GroupVersionKind{}, g.namespace, name, version, "",
		admission.Create, &metav1.CreateOptions{}, false, nil)
	match := func(rule admissionv1.RuleWithOperations) bool {
		rule.APIVersions = []string{"*"} // a version of the rule is equivalent to the stored one
		return (&rules.Matcher{Rule: rule, Attr: attributes}).Matches()
	}
	return slices.ContainsFunc(one.rules, match) && !slices.ContainsFunc(one.exclude, match)
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
