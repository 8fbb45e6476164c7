package schema

import (
	"reflect"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
)

// asOnCreates reports that an update that only adds an annotation meets no rule of the schema that
// a create of the object does not: none compares with the old object, and none looks at
// annotations. False is for schemas for which this is not sure.
func asOnCreates(v *Version, props *apiextensions.JSONSchemaProps) bool {
	if props == nil || v.preserves() || props.AdditionalProperties != nil ||
		len(props.PatternProperties)+len(props.Enum)+len(props.Dependencies) > 0 {
		return false
	}
	for more := range combined(props) {
		if more != nil {
			return false
		}
	}
	if meta, declared := props.Properties["metadata"]; declared {
		meta.Description = ""
		if !reflect.DeepEqual(meta, apiextensions.JSONSchemaProps{Type: "object"}) {
			return false
		}
	}
	if v.spec.Subresources != nil && v.spec.Subresources.Scale != nil {
		scale := v.spec.Subresources.Scale
		paths := []string{scale.SpecReplicasPath, scale.StatusReplicasPath}
		if scale.LabelSelectorPath != nil {
			paths = append(paths, *scale.LabelSelectorPath)
		}
		if slices.ContainsFunc(paths, func(path string) bool { return fieldNames(path)[0] == "metadata" }) {
			return false
		}
	}
	return !compares(props)
}

// compares says whether a rule of the schema names the old object.
func compares(s *apiextensions.JSONSchemaProps) bool {
	return anySchema(s, func(s *apiextensions.JSONSchemaProps) bool {
		return slices.ContainsFunc(s.XValidations, func(rule apiextensions.ValidationRule) bool {
			return rule.OptionalOldSelf != nil || strings.Contains(rule.Rule, "oldSelf") ||
				strings.Contains(rule.MessageExpression, "oldSelf")
		})
	})
}
