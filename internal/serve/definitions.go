package serve

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	generated "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// definitions describes the types of a scheme for OpenAPI. apimachinery and apiextensions-apiserver
// have generated definitions. The generated definitions of k8s.io/api are part of
// k8s.io/kubernetes: reflection and SwaggerDoc replace them here.
func definitions(scheme *runtime.Scheme) common.GetOpenAPIDefinitions {
	return func(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
		d := describer{ref: ref, out: map[string]common.OpenAPIDefinition{}}
		for _, t := range scheme.AllKnownTypes() {
			d.add(t)
		}
		for _, v := range []any{version.Info{}, metav1.APIGroupList{}, metav1.APIGroup{}, metav1.APIResourceList{},
			metav1.APIVersions{}} {
			d.add(reflect.TypeOf(v))
		}
		maps.Copy(d.out, generated.GetOpenAPIDefinitions(ref))
		return d.out
	}
}

type describer struct {
	ref common.ReferenceCallback
	out map[string]common.OpenAPIDefinition
}

// as returns a new value of a type as an interface, and whether the type implements the interface.
func as[T any](t reflect.Type) (T, bool) {
	v, is := reflect.New(t).Interface().(T)
	return v, is
}

func nameOf(t reflect.Type) string {
	if named, is := as[interface{ OpenAPIModelName() string }](t); is {
		return named.OpenAPIModelName()
	}
	return t.PkgPath() + "." + t.Name()
}

func docsOf(t reflect.Type) map[string]string {
	if documented, is := as[interface{ SwaggerDoc() map[string]string }](t); is {
		return documented.SwaggerDoc()
	}
	return nil
}

// add describes a struct and its nested structs, and returns the name.
func (d *describer) add(t reflect.Type) string {
	name := nameOf(t)
	if _, known := d.out[name]; known {
		return name
	}
	d.out[name] = common.OpenAPIDefinition{} // a type may contain itself
	docs := docsOf(t)
	s := spec.Schema{SchemaProps: spec.SchemaProps{Description: docs[""]}}
	if own, is := as[interface {
		OpenAPISchemaType() []string
		OpenAPISchemaFormat() string
	}](t); is {
		s.Type, s.Format = own.OpenAPISchemaType(), own.OpenAPISchemaFormat()
		d.out[name] = common.OpenAPIDefinition{Schema: s}
		if one, is := as[interface{ OpenAPIV3OneOfTypes() []string }](t); is {
			v3 := spec.Schema{SchemaProps: spec.SchemaProps{
				Description: s.Description, Format: s.Format,
				OneOf: common.GenerateOpenAPIV3OneOfSchema(one.OpenAPIV3OneOfTypes()),
			}}
			d.out[name] = common.EmbedOpenAPIDefinitionIntoV2Extension(common.OpenAPIDefinition{Schema: v3},
				d.out[name])
		}
		return name
	}
	s.Type, s.Properties = []string{"object"}, map[string]spec.Schema{}
	var uses []string
	d.fields(t, docs, &s, &uses)
	slices.Sort(s.Required)
	d.out[name] = common.OpenAPIDefinition{Schema: s, Dependencies: uses}
	return name
}

// fields describes the fields of a struct, including those of inlined structs.
func (d *describer) fields(t reflect.Type, docs map[string]string, s *spec.Schema, uses *[]string) {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if strings.Contains(options, "inline") || f.Anonymous && name == "" {
			inner := f.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			if inner.Kind() == reflect.Struct {
				own := docsOf(inner)
				if own == nil {
					own = docs
				}
				d.fields(inner, own, s, uses)
			}
			continue
		}
		if name == "" || name == "-" || !f.IsExported() {
			continue
		}
		p := d.schema(f.Type, uses)
		p.Description = docs[name]
		s.Properties[name] = p
		if !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") {
			s.Required = append(s.Required, name)
		}
	}
}

// schema describes the type of a field.
func (d *describer) schema(t reflect.Type, uses *[]string) spec.Schema {
	switch t.Kind() {
	case reflect.Pointer:
		return d.schema(t.Elem(), uses)
	case reflect.Struct:
		name := d.add(t)
		*uses = append(*uses, name)
		return spec.Schema{SchemaProps: spec.SchemaProps{Ref: d.ref(name)}}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return *spec.StrFmtProperty("byte")
		}
		return *spec.ArrayProperty(new(d.schema(t.Elem(), uses)))
	case reflect.Map:
		return *spec.MapProperty(new(d.schema(t.Elem(), uses)))
	case reflect.Bool:
		return *spec.BooleanProperty()
	case reflect.String:
		return *spec.StringProperty()
	case reflect.Float32, reflect.Float64:
		return *spec.Float64Property()
	case reflect.Int64, reflect.Uint64, reflect.Int:
		return *spec.Int64Property()
	case reflect.Interface:
		return spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}}}
	}
	return *spec.Int32Property()
}
