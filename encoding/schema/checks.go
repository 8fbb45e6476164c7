package schema

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"regexp/syntax"
	"slices"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/internal/bounded"
)

// maxChecks limits the work of validating one object: one check for each pair of a value and a
// schema, more for wide objects, long texts, paths, enumerations and patterns. The library needs
// some microseconds for each check and cannot be interrupted. Large real objects need some hundred
// thousand.
const maxChecks = 1 << 21

// A check takes as long as checkUnits units of CEL. One check for each bytesPerCheck bytes of the
// object's weight is free; the budget of the run pays for the others.
const (
	checkUnits    = 4
	bytesPerCheck = 4

	formatSize = 16 // instructions of a pattern that takes as long as a format
)

// errChecks is returned for an object or a schema that takes too long to validate.
var errChecks = errors.New("the object takes too long to validate")

// checks counts down the remaining work.
type checks int

// costs holds the parts of a schema that determine the number of checks. Look-ups are quick; a
// schema holds its properties by value.
type costs struct {
	schema            *apiextensions.JSONSchemaProps
	validator         func() (validation.SchemaValidator, error) // compiled on first use
	enum, pattern     int
	combined          []*costs // in the order of func combined
	properties        map[string]*costs
	additional, items *costs
}

func newCosts(s *apiextensions.JSONSchemaProps) *costs {
	if s == nil {
		return nil
	}
	c := &costs{
		schema: s, enum: len(s.Enum), pattern: int(bounded.Instructions(s.Pattern)),
		properties: make(map[string]*costs, len(s.Properties)),
		validator: sync.OnceValues(func() (validation.SchemaValidator, error) {
			validator, _, err := validation.NewSchemaValidator(s)
			return validator, err
		}),
	}
	if s.Format != "" {
		c.pattern += formatSize
	}
	for more := range combined(s) {
		c.combined = append(c.combined, newCosts(more))
	}
	for name, property := range s.Properties {
		c.properties[name] = newCosts(&property)
	}
	if s.AdditionalProperties != nil {
		c.additional = newCosts(s.AdditionalProperties.Schema)
	}
	if s.Items != nil {
		c.items = newCosts(s.Items.Schema)
	}
	return c
}

// checkable returns the reason why an object takes too long to validate. The checks count in the
// meter of ctx.
func (v *Version) checkable(ctx context.Context, obj map[string]any, c *costs) error {
	meter, free, left := bounded.MeterOf(ctx), checks(encoding.Weigh(obj)/bytesPerCheck), checks(maxChecks)
	if meter.Over() {
		left = min(left, free)
	}
	all := left
	err := left.spend(obj, c, 0)
	if more := all - left - free; more > 0 {
		if !meter.Start() {
			return errRules
		}
		meter.Add(v.crd.v1.Name, int64(more)*checkUnits)
	}
	if err != nil {
		return err
	}
	return tooMany(ctx, obj, c)
}

// spend subtracts the checks of a value; path is the length of its path.
func (c *checks) spend(value any, s *costs, path int) error {
	if s == nil {
		return nil
	}
	text, _ := value.(string)
	fields, _ := value.(map[string]any) // each schema reads each field, and on updates each of its properties again
	cost := 1 + path/16 + s.enum/32 + len(fields)/8 + len(fields)*len(s.properties)/4 + len(text)/1024 +
		s.pattern*len(text)/128
	if *c -= checks(cost); *c < 0 {
		return fmt.Errorf("%w: more than %d checks", errChecks, maxChecks)
	}
	for _, more := range s.combined { // a schema that does not match causes an error, which takes longer
		*c -= 3
		if err := c.spend(value, more, path); err != nil {
			return err
		}
	}
	for p := range s.parts(value) {
		if err := c.spend(p.value, p.costs, path+p.length()); err != nil {
			return err
		}
	}
	return nil
}

// part is a field of an object or an element of a list, with the costs of its schema.
type part struct {
	name  string // in an object
	index int    // in a list; -1 in an object
	value any
	costs *costs
}

// length returns the part's share of the length of a path.
func (p part) length() int {
	if p.index >= 0 {
		return len("[10]")
	}
	return len(p.name) + 1
}

// parts yields the fields of an object, or the elements of a list, each with the costs of its
// schema.
func (c *costs) parts(value any) iter.Seq[part] {
	return func(yield func(part) bool) {
		fields, _ := value.(map[string]any)
		for name, element := range fields {
			below, declared := c.properties[name]
			if !declared {
				below = c.additional
			}
			if !yield(part{name, -1, element, below}) {
				return
			}
		}
		list, _ := value.([]any)
		for i, element := range list {
			if !yield(part{"", i, element, c.items}) {
				return
			}
		}
	}
}

// combined yields the further schemas of a value of s: allOf, anyOf, oneOf and not.
func combined(s *apiextensions.JSONSchemaProps) iter.Seq[*apiextensions.JSONSchemaProps] {
	return func(yield func(*apiextensions.JSONSchemaProps) bool) {
		for _, more := range [][]apiextensions.JSONSchemaProps{s.AllOf, s.AnyOf, s.OneOf} {
			for i := range more {
				if !yield(&more[i]) {
					return
				}
			}
		}
		yield(s.Not)
	}
}

// Unchecked returns the reason why Validate or Refused could not check an object, or "".
func Unchecked(errs field.ErrorList) string {
	if len(errs) == 1 && errs[0].Type == field.ErrorTypeInternal {
		return errs[0].Detail
	}
	return ""
}

const (
	// maxInstructions limits the compiled patterns of one version, which the library keeps: x{1000}
	// compiles to a thousand instructions. Large real schemas need some thousand.
	maxInstructions = 1 << 18

	// maxCaptures limits the memory of one match: an instruction may store each group.
	maxCaptures = 1 << 23
)

// patterns sums the compiled sizes of a schema's distinct patterns.
type patterns struct {
	seen         map[string]bool
	instructions int
}

// checkPatterns returns errChecks if the patterns of a schema take too much memory.
func checkPatterns(s *apiextensions.JSONSchemaProps) (err error) {
	p := patterns{seen: map[string]bool{}}
	anySchema(s, func(s *apiextensions.JSONSchemaProps) bool {
		for _, pattern := range append(slices.Collect(maps.Keys(s.PatternProperties)), s.Pattern) {
			if err = p.add(pattern); err != nil {
				return true
			}
		}
		return false
	})
	return err
}

// anySchema reports whether is returns true for s or for a schema below s.
func anySchema(s *apiextensions.JSONSchemaProps, is func(*apiextensions.JSONSchemaProps) bool) bool {
	if s == nil {
		return false
	}
	below := func(s *apiextensions.JSONSchemaProps) bool { return anySchema(s, is) }
	return is(s) || slices.ContainsFunc(schemasBelow(s), below)
}

// schemasBelow lists the schemas directly below s, including nil.
func schemasBelow(s *apiextensions.JSONSchemaProps) []*apiextensions.JSONSchemaProps {
	below := slices.Collect(combined(s))
	for _, more := range []map[string]apiextensions.JSONSchemaProps{s.Properties, s.PatternProperties} {
		for _, property := range more {
			below = append(below, &property)
		}
	}
	if s.AdditionalProperties != nil {
		below = append(below, s.AdditionalProperties.Schema)
	}
	if s.Items != nil {
		below = append(below, s.Items.Schema)
	}
	return below
}

// add compiles a pattern like package regexp.
func (p *patterns) add(pattern string) error {
	if pattern == "" || p.seen[pattern] {
		return nil
	}
	p.seen[pattern] = true
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil // the library reports the error
	}
	compiled, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil
	}
	p.instructions += len(compiled.Inst)
	if p.instructions > maxInstructions || len(compiled.Inst)*compiled.NumCap > maxCaptures {
		return fmt.Errorf("%w: the patterns of its schema need too much memory", errChecks)
	}
	return nil
}
