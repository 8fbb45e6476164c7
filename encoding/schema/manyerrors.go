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

	// partPairs is how many pairs of a value and a schema are validated at once before the whole
	// object is, where it has many.
	partPairs = 100
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
	if pairs(obj, c, maxErrors) < maxErrors {
		return nil
	}
	count := &errorCount{ctx: ctx, validators: map[*costs]validation.SchemaValidator{}}
	return count.add(nil, obj, c, s)
}

// pairs counts the pairs of a value and a schema in a value, up to most. Each may be an error, and
// so may each required field that a value lacks.
func pairs(value any, c *costs, most int) int {
	if c == nil || value == nil {
		return 0
	}
	n := 1 + c.missing(value)
	for _, more := range c.combined {
		if n >= most {
			break
		}
		n += pairs(value, more, most-n)
	}
	switch value := value.(type) {
	case map[string]any:
		for name, element := range value {
			if n >= most {
				break
			}
			below, declared := c.properties[name]
			if !declared {
				below = c.additional
			}
			n += pairs(element, below, most-n)
		}
	case []any:
		for _, element := range value {
			if n >= most {
				break
			}
			n += pairs(element, c.items, most-n)
		}
	}
	return n
}

// missing counts the required fields that a value lacks.
func (c *costs) missing(value any) (n int) {
	fields, is := value.(map[string]any)
	if !is {
		return 0
	}
	for _, name := range c.required {
		if _, there := fields[name]; !there {
			n++
		}
	}
	return n
}

// add counts the errors of a value, of a large one those of its parts.
func (e *errorCount) add(path *field.Path, value any, c *costs, s *apiextensions.JSONSchemaProps) error {
	if c == nil || s == nil || value == nil {
		return nil
	}
	if pairs(value, c, partPairs) < partPairs {
		return e.validate(path, value, c, s)
	}
	if err := e.count(path, c.missing(value)); err != nil {
		return err
	}
	if err := e.addCombined(path, value, c.combined, s); err != nil {
		return err
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

// addCombined counts the errors in allOf, anyOf, oneOf and not of s; c is in that order.
func (e *errorCount) addCombined(path *field.Path, value any, c []*costs, s *apiextensions.JSONSchemaProps) error {
	for i := range s.AllOf {
		if err := e.add(path, value, c[i], &s.AllOf[i]); err != nil {
			return err
		}
	}
	c = c[len(s.AllOf):]
	for _, alternatives := range [][]apiextensions.JSONSchemaProps{s.AnyOf, s.OneOf} {
		least, err := e.least(path, value, c, alternatives)
		if err == nil {
			err = e.count(path, least)
		}
		if err != nil {
			return err
		}
		c = c[len(alternatives):]
	}
	if s.Not == nil {
		return nil
	}
	_, err := e.least(path, value, c, []apiextensions.JSONSchemaProps{*s.Not})
	return err
}

// least returns the errors of the alternative that has the fewest. Those of the others are no
// errors of the object, but the library finds them too.
func (e *errorCount) least(path *field.Path, value any, c []*costs, alternatives []apiextensions.JSONSchemaProps) (least int, err error) {
	for i := range alternatives {
		of := &errorCount{ctx: e.ctx, validators: e.validators}
		if err := of.add(path, value, c[i], &alternatives[i]); err != nil {
			return 0, err
		}
		if i == 0 || of.errors < least {
			least = of.errors
		}
	}
	return least, nil
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
	errs := validation.ValidateCustomResource(path, value, validator)
	if len(errs) > 0 && e.first == "" {
		e.first = errs[0].Field
	}
	return e.count(path, len(errs))
}

// count adds so many errors at a path or below.
func (e *errorCount) count(path *field.Path, errs int) error {
	if e.errors += errs; errs > 0 && e.first == "" {
		e.first = path.String()
	}
	if e.errors > maxErrors {
		return fmt.Errorf("%w: more than %d of its fields are not as the schema says, one is %s", errChecks, maxErrors, e.first)
	}
	return e.ctx.Err()
}
