package schema

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// maxErrors is how many errors of one object are found. The library compares each with all.
	maxErrors = 1000

	// partValues is how many values of an object are validated at once before the whole object is.
	partValues = 1000
)

// errUniqueItems is returned for a schema that makes the library compare each item with all others.
var errUniqueItems = errors.New("its schema has uniqueItems, which no API server accepts in a CustomResourceDefinition")

// checkUniqueItems returns errUniqueItems for a schema that has them.
func checkUniqueItems(s *apiextensions.JSONSchemaProps) error {
	if s == nil {
		return nil
	}
	if s.UniqueItems {
		return errUniqueItems
	}
	for below := range schemasBelow(s) {
		if err := checkUniqueItems(below); err != nil {
			return err
		}
	}
	return nil
}

// errorCount counts the errors of an object, part by part.
type errorCount struct {
	ctx        context.Context
	validators map[*costs]validation.SchemaValidator
	errors     int
	first      string
}

// tooMany returns why a large object is not validated: it has too many errors, or the context ends.
func tooMany(ctx context.Context, obj any, c *costs, s *apiextensions.JSONSchemaProps) error {
	if values(obj, partValues) < partValues {
		return nil
	}
	count := &errorCount{ctx: ctx, validators: map[*costs]validation.SchemaValidator{}}
	return count.add(nil, obj, c, s)
}

// values counts the values in a value, up to most.
func values(value any, most int) int {
	n := 1
	switch value := value.(type) {
	case map[string]any:
		for _, element := range value {
			if n >= most {
				break
			}
			n += values(element, most-n)
		}
	case []any:
		for _, element := range value {
			if n >= most {
				break
			}
			n += values(element, most-n)
		}
	}
	return n
}

// add counts the errors of a value, of a large one those of its parts.
func (e *errorCount) add(path *field.Path, value any, c *costs, s *apiextensions.JSONSchemaProps) error {
	if c == nil || s == nil || value == nil {
		return nil
	}
	if values(value, partValues) < partValues {
		return e.validate(path, value, c, s)
	}
	at := 0
	for more := range combined(s) {
		if err := e.add(path, value, c.combined[at], more); err != nil {
			return err
		}
		at++
	}
	switch value := value.(type) {
	case map[string]any:
		for name, element := range value {
			below, costs := additional(s), c.additional
			if property, declared := s.Properties[name]; declared {
				below, costs = &property, c.properties[name]
			}
			if err := e.add(path.Child(name), element, costs, below); err != nil {
				return err
			}
		}
	case []any:
		if s.Items == nil {
			return nil
		}
		for i, element := range value {
			if err := e.add(path.Index(i), element, c.items, s.Items.Schema); err != nil {
				return err
			}
		}
	}
	return nil
}

func additional(s *apiextensions.JSONSchemaProps) *apiextensions.JSONSchemaProps {
	if s.AdditionalProperties == nil {
		return nil
	}
	return s.AdditionalProperties.Schema
}

// validate counts the errors of a small value.
func (e *errorCount) validate(path *field.Path, value any, c *costs, s *apiextensions.JSONSchemaProps) error {
	validator, made := e.validators[c]
	if !made {
		var err error
		if validator, _, err = validation.NewSchemaValidator(s); err != nil {
			return err
		}
		e.validators[c] = validator
	}
	if errs := validation.ValidateCustomResource(path, value, validator); len(errs) > 0 {
		if e.errors += len(errs); e.first == "" {
			e.first = errs[0].Field
		}
	}
	if e.errors > maxErrors {
		return fmt.Errorf("%w: more than %d of its fields are not as the schema says, one is %s", errChecks, maxErrors, e.first)
	}
	return e.ctx.Err()
}
