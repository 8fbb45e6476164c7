package schema

import (
	"fmt"
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateScale checks the fields of the scale subresource as the API server's
// customResourceValidator does.
func (v *Version) validateScale(obj map[string]any) field.ErrorList {
	if v.spec.Subresources == nil || v.spec.Subresources.Scale == nil {
		return nil
	}
	scale := v.spec.Subresources.Scale
	errs := validateReplicas(obj, scale.SpecReplicasPath)
	errs = append(errs, validateReplicas(obj, scale.StatusReplicasPath)...)
	if scale.LabelSelectorPath != nil {
		path := *scale.LabelSelectorPath
		if value, _, err := unstructured.NestedString(obj, fieldNames(path)...); err != nil {
			errs = append(errs, field.Invalid(field.NewPath(path), value, err.Error()))
		}
	}
	return errs
}

func validateReplicas(obj map[string]any, path string) field.ErrorList {
	replicas, _, err := unstructured.NestedInt64(obj, fieldNames(path)...)
	var reason string
	switch {
	case err != nil:
		reason = err.Error()
	case replicas < 0:
		reason = "should be a non-negative integer"
	case replicas > math.MaxInt32:
		reason = fmt.Sprintf("should be less than or equal to %v", math.MaxInt32)
	default:
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath(path), replicas, reason)}
}

// fieldNames splits a path such as ".spec.replicas".
func fieldNames(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }
