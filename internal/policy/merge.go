package policy

import (
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// merger is a TypeConverter for one merge of a patch into plain content. The patch, the object and
// the result are converted in this order. Only the patch's top-level fields are merged; others
// stay. All fields are validated, but only once.
type merger struct {
	managedfields.TypeConverter
	valid *map[string]any // validated content
	patch map[string]any
	rest  map[string]any // fields of the object outside the patch
}

// ObjectToTyped converts first the patch, then the object.
func (m *merger) ObjectToTyped(obj runtime.Object, opts ...typed.ValidationOptions) (*typed.TypedValue, error) {
	content := obj.(*unstructured.Unstructured).Object
	if m.patch == nil {
		m.patch = content
		return m.TypeConverter.ObjectToTyped(obj, opts...)
	}
	touched, known := map[string]any{}, true
	m.rest = map[string]any{}
	for field, value := range content {
		if _, has := m.patch[field]; has {
			touched[field] = value
			continue
		}
		m.rest[field] = value
		was, has := (*m.valid)[field]
		known = known && has && reflect.DeepEqual(was, value)
	}
	if !known {
		if _, err := m.TypeConverter.ObjectToTyped(obj, opts...); err != nil {
			return nil, err
		}
		*m.valid = content
	}
	return m.TypeConverter.ObjectToTyped(&unstructured.Unstructured{Object: touched}, opts...)
}

// TypedToObject returns the result with the unmerged fields.
func (m *merger) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	obj, err := m.TypeConverter.TypedToObject(value)
	if err != nil {
		return nil, err
	}
	maps.Copy(obj.(*unstructured.Unstructured).Object, m.rest)
	return obj, nil
}
