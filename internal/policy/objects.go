package policy

import (
	"errors"
	"fmt"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured/unstructuredscheme"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/etcdshift/etcdshift/inspect"
)

// errVersion is returned if an object would need conversion to the version in the policy.
var errVersion = errors.New("built-in kinds are not converted between versions")

// toObject returns content in an API server's form: the Go type of a built-in kind, or
// unstructured. The result shares no mutable part with content.
func toObject(content map[string]any) (runtime.Object, error) {
	u := &unstructured.Unstructured{Object: content}
	gvk := u.GroupVersionKind()
	typed, err := scheme.Scheme.New(gvk)
	if err != nil {
		return u.DeepCopy(), nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, typed); err != nil {
		// the error may quote the value
		return nil, fmt.Errorf("a field of %s has a value that its type cannot have", gvk.Kind)
	}
	typed.GetObjectKind().SetGroupVersionKind(gvk)
	return typed, nil
}

// toContent is the reverse of toObject.
func toContent(obj runtime.Object) (map[string]any, error) {
	if u, is := obj.(*unstructured.Unstructured); is {
		return u.Object, nil
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
}

// normal returns the result of a patch in the encoding of its Go type. Equal top-level fields are
// taken from before, which is already in this form.
func normal(before, patched map[string]any) (map[string]any, error) {
	changed, out := map[string]any{}, maps.Clone(before)
	for field, was := range before {
		if is, both := patched[field]; !both || !reflect.DeepEqual(was, is) {
			delete(out, field)
		}
	}
	for field, is := range patched {
		if _, kept := out[field]; !kept {
			changed[field] = is
		}
	}
	if len(changed) == 0 && len(out) == len(before) {
		return before, nil
	}
	changed["apiVersion"], changed["kind"] = patched["apiVersion"], patched["kind"]
	typed, err := toObject(changed)
	if err != nil {
		return nil, err
	}
	converted, err := toContent(typed)
	if err != nil {
		return nil, err
	}
	maps.Copy(converted, out)
	return converted, nil
}

// interfaces implements admission.ObjectInterfaces for objects of one type. A value is for one
// evaluation, and stores its failed conversion.
type interfaces struct {
	*inspect.Type
	known  []string       // versions of the type
	plain  bool           // objects of a built-in kind are normal content, not their Go type
	valid  map[string]any // plain content that fits the schema
	failed error
}

// typed reports whether objects are in their Go type.
func (i *interfaces) typed() bool {
	return !i.plain && i.CRD == nil && len(i.known) > 0
}

// GetObjectCreater returns the creator of objects.
func (i *interfaces) GetObjectCreater() runtime.ObjectCreater {
	if i.typed() {
		return scheme.Scheme
	}
	return unstructuredscheme.NewUnstructuredCreator()
}

// GetObjectTyper returns the typer of objects.
func (i *interfaces) GetObjectTyper() runtime.ObjectTyper {
	if i.typed() {
		return scheme.Scheme
	}
	return unstructuredscheme.NewUnstructuredObjectTyper()
}

// GetObjectDefaulter returns the defaulter of custom resources. Defaults of built-in kinds are code
// of kube-apiserver, applied at each read of an object.
func (i *interfaces) GetObjectDefaulter() runtime.ObjectDefaulter { return i }

// GetObjectConvertor returns the converter of custom resources.
func (i *interfaces) GetObjectConvertor() runtime.ObjectConvertor { return i }

// GetEquivalentResourceMapper returns the mapper of versions.
func (i *interfaces) GetEquivalentResourceMapper() runtime.EquivalentResourceMapper {
	return equivalents{i.Type, i.known}
}

// Default sets the defaults of a custom resource.
func (i *interfaces) Default(obj runtime.Object) {
	u, is := obj.(*unstructured.Unstructured)
	if !is || i.CRD == nil {
		return
	}
	v, err := i.CRD.Version(u.GroupVersionKind().Version)
	if err == nil {
		err = v.Default(u.Object)
	}
	i.fail(err)
}

// fail records the first error.
func (i *interfaces) fail(err error) error {
	if i.failed == nil {
		i.failed = err
	}
	return err
}

// Convert converts in to the kind of out, if necessary.
func (i *interfaces) Convert(in, out, _ any) error {
	from, to := in.(runtime.Object), out.(runtime.Object)
	gv := to.GetObjectKind().GroupVersionKind().GroupVersion()
	if gv.Empty() { // a new Go object
		kinds, _, err := scheme.Scheme.ObjectKinds(to)
		if err != nil {
			return i.fail(err)
		}
		gv = kinds[0].GroupVersion()
	}
	converted, err := i.ConvertToVersion(from, gv)
	if err != nil {
		return err
	}
	if u, is := converted.(*unstructured.Unstructured); is {
		into, is := to.(*unstructured.Unstructured)
		if !is {
			return i.fail(fmt.Errorf("%s is no kind of %s", from.GetObjectKind().GroupVersionKind(), i.Name()))
		}
		into.Object = u.Object
		return nil
	}
	if reflect.TypeOf(to) != reflect.TypeOf(converted) {
		return i.fail(fmt.Errorf("%s is no kind of %s", from.GetObjectKind().GroupVersionKind(), i.Name()))
	}
	reflect.ValueOf(to).Elem().Set(reflect.ValueOf(converted).Elem())
	return nil
}

// ConvertToVersion converts a custom resource, or decodes a built-in kind into its Go type.
func (i *interfaces) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	is := in.GetObjectKind().GroupVersionKind()
	wanted, ok := target.KindForGroupVersionKinds([]schema.GroupVersionKind{is})
	u, unstructuredContent := in.(*unstructured.Unstructured)
	switch {
	case !ok || wanted.Empty():
		return nil, i.fail(fmt.Errorf("%s is not converted", is))
	case wanted != is && i.CRD == nil:
		return nil, i.fail(fmt.Errorf("the object is stored at %s, the policy names %s: %w", is.GroupVersion(),
			wanted.GroupVersion(), errVersion))
	case i.typed() && unstructuredContent:
		obj, err := toObject(u.Object)
		return obj, i.fail(err)
	case wanted == is:
		return in, nil
	}
	converted := u.DeepCopy()
	_, err := i.CRD.Convert(converted.Object, wanted.Version)
	if err != nil {
		return nil, i.fail(fmt.Errorf("the object is stored at %s, the policy names %s: %w", is.Version,
			wanted.Version, err))
	}
	i.Default(converted)
	return converted, nil
}

// ConvertFieldLabel fails: policies have no field selectors.
func (i *interfaces) ConvertFieldLabel(schema.GroupVersionKind, string, string) (string, string, error) {
	return "", "", errors.New("fields are not selected")
}
