package schema

import (
	"reflect"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
)

// asOnCreates reports whether an update that only adds an annotation is subject to the same rules
// as a create of the object: no rule compares with the old object or reads annotations. The result
// is also false for schemas that asOnCreates cannot decide.
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

// compares reports whether a rule of the schema names the old object.
func compares(s *apiextensions.JSONSchemaProps) bool {
	return anySchema(s, func(s *apiextensions.JSONSchemaProps) bool {
		return slices.ContainsFunc(s.XValidations, func(rule apiextensions.ValidationRule) bool {
			return rule.OptionalOldSelf != nil || strings.Contains(rule.Rule, "oldSelf") ||
				strings.Contains(rule.MessageExpression, "oldSelf")
		})
	})
}
