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

// errVersion is why an object cannot be shown to a policy at the version that the policy names.
var errVersion = errors.New("built-in kinds are not converted between versions")

// toObject returns content as an API server has it in memory: of a built-in kind its Go type, else
// unstructured. It keeps no part of content that may change.
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

// normal returns the result of a patch as it is when its Go type is encoded. Fields at the top that
// are equal to those of before, which is so already, are before's own.
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

// interfaces are the admission.ObjectInterfaces of the objects of one type. They are for one
// evaluation, whose failed conversion they keep.
type interfaces struct {
	*inspect.Type
	known  []string       // versions of the type
	plain  bool           // objects of a built-in kind are content that is normal, not their Go type
	valid  map[string]any // plain content that fits the schema
	failed error
}

// typed tells whether the objects have a Go type.
func (i *interfaces) typed() bool {
	return !i.plain && i.CRD == nil && len(i.known) > 0
}

// GetObjectCreater makes objects.
func (i *interfaces) GetObjectCreater() runtime.ObjectCreater {
	if i.typed() {
		return scheme.Scheme
	}
	return unstructuredscheme.NewUnstructuredCreator()
}

// GetObjectTyper tells kinds.
func (i *interfaces) GetObjectTyper() runtime.ObjectTyper {
	if i.typed() {
		return scheme.Scheme
	}
	return unstructuredscheme.NewUnstructuredObjectTyper()
}

// GetObjectDefaulter sets defaults of custom resources. Those of built-in kinds are code of
// kube-apiserver, which sets them again whenever it reads an object.
func (i *interfaces) GetObjectDefaulter() runtime.ObjectDefaulter { return i }

// GetObjectConvertor converts custom resources.
func (i *interfaces) GetObjectConvertor() runtime.ObjectConvertor { return i }

// GetEquivalentResourceMapper tells versions.
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

// fail keeps the first error.
func (i *interfaces) fail(err error) error {
	if i.failed == nil {
		i.failed = err
	}
	return err
}

// Convert converts in to the kind of out, at which in may be already.
func (i *interfaces) Convert(in, out, _ any) error {
	from, to := in.(runtime.Object), out.(runtime.Object)
	gv := to.GetObjectKind().GroupVersionKind().GroupVersion()
	if gv.Empty() { // of a Go type that was just made
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

// ConvertToVersion converts a custom resource, and makes the Go type of a built-in kind.
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

// ConvertFieldLabel is for field selectors, which policies do not have.
func (i *interfaces) ConvertFieldLabel(schema.GroupVersionKind, string, string) (string, string, error) {
	return "", "", errors.New("fields are not selected")
}
