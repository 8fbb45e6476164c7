package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	admission "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/etcdshift/etcdshift/inspect"
)

// params is the informer and lister of the params of one kind.
type params struct {
	cache.SharedIndexInformer
	scope meta.RESTScope
	gr    schema.GroupResource
	all   []*param // by namespace and name
	in    string   // a namespace; "" for all
}

type param struct {
	namespace, name string
	labels          labels.Set
	runtime.Object
}

// Informer is used only for HasSynced.
func (p *params) Informer() cache.SharedIndexInformer { return p }

// HasSynced returns true: all params were read.
func (p *params) HasSynced() bool { return true }

// Lister lists the params.
func (p *params) Lister() cache.GenericLister { return paramLister{p} }

type paramLister struct{ *params }

// List returns the params matching a selector.
func (p paramLister) List(selector labels.Selector) (found []runtime.Object, _ error) {
	for _, one := range p.all {
		if (p.in == "" || one.namespace == p.in) && selector.Matches(one.labels) {
			found = append(found, one.Object)
		}
	}
	return found, nil
}

// Get returns a param by name.
func (p paramLister) Get(name string) (runtime.Object, error) {
	for _, one := range p.all {
		if one.namespace == p.in && one.name == name {
			return one.Object, nil
		}
	}
	return nil, apierrors.NewNotFound(p.gr, name)
}

// ByNamespace returns the lister of a namespace.
func (p paramLister) ByNamespace(name string) cache.GenericNamespaceLister {
	in := *p.params
	in.in = name
	return paramLister{&in}
}

// paramReader reads the params of the bindings, of one kind.
type paramReader struct {
	Source
	types *inspect.Types
	given []*unstructured.Unstructured // from manifests; these replace stored params
	kind  schema.GroupVersionKind
	refs  []*admission.ParamRef
}

// errNoParamKind is a server's error about an unknown kind of params.
var errNoParamKind = errors.New("failed to find resource referenced by paramKind")

// paramError is the reason why a param is unusable.
type paramError struct {
	name string
	error
}

func (p *paramError) Error() string { return fmt.Sprintf("param %s: %v", p.name, p.error) }

// read reads the params. The error is errNoParamKind, a paramError, or a read error.
func (r *paramReader) read(ctx context.Context) (*params, error) {
	all := &params{scope: meta.RESTScopeRoot}
	known := map[types.NamespacedName]bool{}
	for _, u := range r.given {
		if u.GroupVersionKind() != r.kind || !r.wanted(u) {
			continue
		}
		if u.GetNamespace() != "" {
			all.scope = meta.RESTScopeNamespace
		}
		known[types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}] = true
		if err := all.add(u, nil, r.kind); err != nil {
			return nil, &paramError{u.GetName(), err}
		}
	}
	t := typeOf(r.types, r.kind.GroupKind())
	if t == nil && len(all.all) == 0 {
		return nil, fmt.Errorf("%w: '%v'", errNoParamKind, r.kind)
	}
	if t != nil {
		if all.gr, all.scope = t.Resource, meta.RESTScopeRoot; t.Namespaced {
			all.scope = meta.RESTScopeNamespace
		}
		if err := r.stored(ctx, t, all, known); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(all.all, func(a, b *param) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
	return all, nil
}

// typeOf returns the type of a kind; nil for none.
func typeOf(all *inspect.Types, kind schema.GroupKind) *inspect.Type {
	for _, t := range all.All() {
		if t.Kind == kind.Kind && t.Resource.Group == kind.Group {
			return t
		}
	}
	return nil
}

// stored adds the params of the snapshot.
func (r *paramReader) stored(
	ctx context.Context, t *inspect.Type, all *params, known map[types.NamespacedName]bool,
) error {
	var in inspect.Selection
	for _, ref := range r.refs {
		if ref.Name == "" {
			in.Names = nil
			break
		}
		in.Names = append(in.Names, ref.Name)
	}
	for e, err := range r.Entries(ctx, t, in) {
		if err != nil {
			return err
		}
		o := inspect.NewObject(t, e)
		u := &unstructured.Unstructured{Object: o.Content}
		if known[types.NamespacedName{Namespace: o.Parsed.Namespace, Name: o.Parsed.Name}] || o.Err == nil &&
			!r.wanted(u) {
			continue
		}
		if o.Err == nil {
			o.Err = all.add(u, t, r.kind)
		}
		if o.Err != nil {
			return &paramError{string(e.Key), o.Err}
		}
	}
	return nil
}

// wanted reports whether a binding may refer to an object.
func (r *paramReader) wanted(u *unstructured.Unstructured) bool {
	return slices.ContainsFunc(r.refs, func(ref *admission.ParamRef) bool {
		if ref.Namespace != "" && ref.Namespace != u.GetNamespace() {
			return false
		}
		if ref.Name != "" {
			return ref.Name == u.GetName()
		}
		selector, err := metav1.LabelSelectorAsSelector(ref.Selector)
		return err == nil && selector.Matches(labels.Set(u.GetLabels()))
	})
}

// add adds a param. t is the type of a stored param.
func (p *params) add(u *unstructured.Unstructured, t *inspect.Type, kind schema.GroupVersionKind) error {
	obj, err := toObject(u.Object)
	if err == nil && t != nil {
		obj, err = (&interfaces{Type: t, known: versionsOf(t)}).ConvertToVersion(obj, kind.GroupVersion())
	}
	if err != nil {
		return err
	}
	if _, custom := obj.(*unstructured.Unstructured); !custom { // like informers
		obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	p.all = append(p.all, &param{u.GetNamespace(), u.GetName(), u.GetLabels(), obj})
	return nil
}
