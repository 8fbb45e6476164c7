package schema

import (
	"fmt"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// Version is one version of a CRD.
type Version struct {
	crd  *CRD
	spec *apiextensionsv1.CustomResourceDefinitionVersion

	props      func() (*apiextensions.JSONSchemaProps, error)
	structural func() (*structuralschema.Structural, error) // nil without a schema
	shape      func() *shape                                // nil without a schema
	checked    func() *shape                                // with rules; nil if no server serves the version
	validators func() (validators, error)
	twins      sync.Map // by other version: whether the schemas are equal

	fieldType    func() (*typed.ParseableType, error)
	fieldManager func() (*managedfields.FieldManager, error)
}

func newVersion(c *CRD, spec *apiextensionsv1.CustomResourceDefinitionVersion) *Version {
	v := &Version{crd: c, spec: spec}
	v.props = lazy(v, internalProps)
	v.structural = lazy(v, compileStructural)
	v.shape = sync.OnceValue(func() *shape {
		structural, _ := v.structural()
		return newShape(structural)
	})
	v.checked = sync.OnceValue(func() *shape { return compileChecked(v) })
	v.validators = lazy(v, compileValidators)
	v.fieldType = lazy(v, compileFieldType)
	v.fieldManager = lazy(v, compileFieldManager)
	return v
}

// once compiles a part of a version on first use.
func lazy[T any](v *Version, compile func(*Version) (T, error)) func() (T, error) {
	return sync.OnceValues(func() (T, error) { return compile(v) })
}

// gvk returns the apiVersion and kind of an object at this version.
func (v *Version) gvk() schema.GroupVersionKind { return v.crd.GroupKind().WithVersion(v.spec.Name) }

// preserves reports whether unknown fields are kept: spec.preserveUnknownFields, the default in
// v1beta1.
func (v *Version) preserves() bool { return v.crd.v1.Spec.PreserveUnknownFields }

// internalProps returns the schema in the internal type, or nil.
func internalProps(v *Version) (*apiextensions.JSONSchemaProps, error) {
	if v.spec.Schema == nil || v.spec.Schema.OpenAPIV3Schema == nil {
		return nil, nil
	}
	out := &apiextensions.CustomResourceValidation{}
	err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(v.spec.Schema,
		out, nil)
	return out.OpenAPIV3Schema, err
}

// compileStructural follows getOrCreateServingInfoFor of the API server: with preserveUnknownFields
// a schema need not be structural, and its defaults are not pruned.
func compileStructural(v *Version) (*structuralschema.Structural, error) {
	props, err := v.props()
	if err != nil || props == nil {
		return nil, err
	}
	structural, err := structuralschema.NewStructural(props)
	if v.preserves() {
		return structural, nil
	}
	if err != nil {
		return nil, fmt.Errorf("schema is not structural: %w", err)
	}
	structural = structural.DeepCopy() // the defaults are shared, and pruned next
	if err := defaulting.PruneDefaults(structural); err != nil {
		return nil, fmt.Errorf("schema defaults: %w", err)
	}
	return structural, nil
}
