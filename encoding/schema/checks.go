package schema

import (
	"errors"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxChecks bounds the work of validating one object: one for each value and schema
// that meet, more for wide objects, long texts, paths, enumerations and patterns. The library takes some
// microseconds for each, and cannot be interrupted. Large real objects take some
// hundred thousand.
const maxChecks = 1 << 21

// errChecks is the error for an object and a schema that take longer to validate.
var errChecks = errors.New("the object takes too long to validate")

// checks counts down what is left.
type checks int

// spend counts the checks of a value whose path has so many bytes.
func (c *checks) spend(value any, s *apiextensions.JSONSchemaProps, path int) error {
	if s == nil {
		return nil
	}
	text, _ := value.(string)
	fields, _ := value.(map[string]any) // each schema looks at each, and on updates at each of its properties again
	cost := 1 + path/16 + len(s.Enum)/32 + len(fields)/8 + len(fields)*len(s.Properties)/4 + (1+len(s.Pattern))*len(text)/1024
	if *c -= checks(cost); *c < 0 {
		return fmt.Errorf("%w: more than %d checks", errChecks, maxChecks)
	}
	for _, more := range [][]apiextensions.JSONSchemaProps{s.AllOf, s.AnyOf, s.OneOf} {
		for i := range more {
			if err := c.spend(value, &more[i], path); err != nil {
				return err
			}
		}
	}
	if err := c.spend(value, s.Not, path); err != nil {
		return err
	}
	switch value := value.(type) {
	case map[string]any:
		for name, element := range value {
			if err := c.spend(element, property(s, name), path+len(name)+1); err != nil {
				return err
			}
		}
	case []any:
		for _, element := range value {
			if s.Items == nil {
				break
			}
			if err := c.spend(element, s.Items.Schema, path+4); err != nil {
				return err
			}
		}
	}
	return nil
}

// Unchecked returns why Validate or ValidateUpdate could not judge an object, empty
// where it could.
func Unchecked(errs field.ErrorList) string {
	if len(errs) == 1 && errs[0].Type == field.ErrorTypeInternal {
		return errs[0].Detail
	}
	return ""
}

// property is the schema of a property, nil where it has none.
func property(s *apiextensions.JSONSchemaProps, name string) *apiextensions.JSONSchemaProps {
	if _, found := s.Properties[name]; found {
		declared := s.Properties[name] // a large copy, only where it is needed
		return &declared
	}
	if s.AdditionalProperties != nil {
		return s.AdditionalProperties.Schema
	}
	return nil
}
