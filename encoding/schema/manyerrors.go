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
	// maxErrors is the maximum number of errors of one object. The library compares each error with
	// all others.
	maxErrors = 1000

	// partPairs limits the pairs of a value and a schema in one part of a large object. The parts
	// are validated before the whole.
	partPairs = 100
)

// errUniqueItems is returned for a schema that makes the library compare each item with all others.
var errUniqueItems = errors.New("its schema has uniqueItems, which no API server accepts in a CustomResourceDefinition")

// checkUniqueItems returns errUniqueItems for a schema with uniqueItems.
func checkUniqueItems(s *apiextensions.JSONSchemaProps) error {
	if anySchema(s, func(s *apiextensions.JSONSchemaProps) bool { return s.UniqueItems }) {
		return errUniqueItems
	}
	return nil
}

// errorCount counts the errors of an object, part by part.
type errorCount struct {
	ctx    context.Context
	errors int
	first  string
}

// tooMany returns the reason not to validate a large object: too many errors, or the end of the
// context.
func tooMany(ctx context.Context, obj any, c *costs) error {
	if pairs(obj, c, maxErrors) < maxErrors {
		return nil
	}
	count := &errorCount{ctx: ctx}
	return count.add(nil, obj, c)
}

// pairs counts the pairs of a value and a schema in a value, up to most. Each pair may be an error,
// and so may each missing required field.
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
	for p := range c.parts(value) {
		if n >= most {
			break
		}
		n += pairs(p.value, p.costs, most-n)
	}
	return n
}

// missing counts the required fields missing in a value.
func (c *costs) missing(value any) (n int) {
	fields, is := value.(map[string]any)
	if !is {
		return 0
	}
	for _, name := range c.schema.Required {
		if _, there := fields[name]; !there {
			n++
		}
	}
	return n
}

// add counts the errors of a value; those of a large value part by part.
func (e *errorCount) add(path *field.Path, value any, c *costs) error {
	if c == nil || value == nil {
		return nil
	}
	if pairs(value, c, partPairs) < partPairs {
		return e.validate(path, value, c)
	}
	if err := e.count(path, c.missing(value)); err != nil {
		return err
	}
	if err := e.addCombined(path, value, c); err != nil {
		return err
	}
	for p := range c.parts(value) {
		at := path.Child(p.name)
		if p.index >= 0 {
			at = path.Index(p.index)
		}
		if err := e.add(at, p.value, p.costs); err != nil {
			return err
		}
	}
	return nil
}

// addCombined counts the errors in allOf, anyOf, oneOf and not.
func (e *errorCount) addCombined(path *field.Path, value any, c *costs) error {
	all, either := len(c.schema.AllOf), len(c.schema.AllOf)+len(c.schema.AnyOf)
	one := either + len(c.schema.OneOf)
	for _, each := range c.combined[:all] {
		if err := e.add(path, value, each); err != nil {
			return err
		}
	}
	for _, alternatives := range [][]*costs{c.combined[all:either], c.combined[either:one]} {
		least, err := e.least(path, value, alternatives)
		if err == nil {
			err = e.count(path, least)
		}
		if err != nil {
			return err
		}
	}
	_, err := e.least(path, value, c.combined[one:])
	return err
}

// least returns the smallest number of errors of any alternative. Errors of the other alternatives
// are not errors of the object, but the library finds them too.
func (e *errorCount) least(path *field.Path, value any, alternatives []*costs) (least int, err error) {
	for i, c := range alternatives {
		of := &errorCount{ctx: e.ctx}
		if err := of.add(path, value, c); err != nil {
			return 0, err
		}
		if i == 0 || of.errors < least {
			least = of.errors
		}
	}
	return least, nil
}

// validate counts the errors that the library finds in a value of fewer than partPairs pairs.
func (e *errorCount) validate(path *field.Path, value any, c *costs) error {
	validator, err := c.validator()
	if err != nil {
		return err
	}
	errs := validation.ValidateCustomResource(path, value, validator)
	if len(errs) > 0 && e.first == "" {
		e.first = errs[0].Field
	}
	return e.count(path, len(errs))
}

// count adds errs errors at or below a path.
func (e *errorCount) count(path *field.Path, errs int) error {
	if e.errors += errs; errs > 0 && e.first == "" {
		e.first = path.String()
	}
	if e.errors > maxErrors {
		return fmt.Errorf("%w: more than %d of its fields are not as the schema says, one is %s", errChecks,
			maxErrors, e.first)
	}
	return e.ctx.Err()
}
