package schema

import (
	"maps"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/kube-openapi/pkg/schemaconv"
	"k8s.io/kube-openapi/pkg/validation/spec"
	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// compileFieldType returns an API server's field manager type for objects of the version, like
// buildOpenAPIModelsForApply of pkg/apiserver and buildKubeNative of
// pkg/controller/openapi/builder, but with any metadata. Without a structural schema the type
// accepts everything.
func compileFieldType(v *Version) (*typed.ParseableType, error) {
	structural, err := v.structural()
	if err != nil {
		return nil, err
	}
	if structural == nil || len(structuralschema.ValidateStructural(nil, structural)) > 0 {
		return &typed.DeducedParseableType, nil
	}
	model := structural.ToKubeOpenAPI()
	addTypeMeta(model)
	addEmbedded(model)
	const name = "object"
	converted, err := schemaconv.ToSchemaFromOpenAPI(map[string]*spec.Schema{name: model}, v.preserves())
	if err != nil {
		return nil, err
	}
	parser := typed.Parser{Schema: smdschema.Schema{Types: converted.Types}}
	fieldType := parser.Type(name)
	return &fieldType, nil
}

func addTypeMeta(s *spec.Schema) {
	s.SetProperty("apiVersion", *spec.StringProperty())
	s.SetProperty("kind", *spec.StringProperty())
	s.SetProperty("metadata", *new(spec.Schema).Typed("object", ""))
}

// addEmbedded adds type meta to embedded resources.
func addEmbedded(s *spec.Schema) {
	if s == nil {
		return
	}
	for name, property := range s.Properties {
		addEmbedded(&property)
		s.Properties[name] = property
	}
	if s.Items != nil {
		addEmbedded(s.Items.Schema)
	}
	if s.AdditionalProperties != nil {
		addEmbedded(s.AdditionalProperties.Schema)
	}
	if embedded, ok := s.Extensions.GetBool("x-kubernetes-embedded-resource"); ok && embedded {
		addTypeMeta(s)
	}
}

// typedAt returns obj in the field manager's form at this version, converted with the strategy
// None, or the error of a server-side apply.
func (v *Version) typedAt(obj map[string]any, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	fieldType, err := v.fieldType()
	if err != nil {
		return nil, err
	}
	converted := maps.Clone(obj)
	converted["apiVersion"] = v.gvk().GroupVersion().String()
	delete(converted, "metadata") // metadata is valid at every version
	return fieldType.FromUnstructured(converted, options...)
}
