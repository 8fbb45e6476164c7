package schema

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/etcdshift/etcdshift/internal/bounded"
)

const (
	repeats  = `(a{0,900})(a{0,900})(a{0,900})(a{0,900})(a{0,900}) b` // a short pattern of 9,000 instructions
	tooLong  = "the object takes too long to validate"
	manyOfIt = "more than 1000 of its fields are not as the schema says"
	tooLarge = "takes too long in one call"
	invalid  = "s (FieldValueInvalid)"
)

// hostileSchema is an expensive schema, and an object.
type hostileSchema struct {
	schema, content string
	said            string // the error for one object
	cheap           bool   // many objects pass too
}

func hostileSchemas() map[string]hostileSchema {
	a := func(n int) string { return `"s":"` + strings.Repeat("a", n) + `"` }
	text := func(more string) string { return `"s":{"type":"string",` + more + `}` }
	rule := func(rule string) string {
		return `"x-kubernetes-validations":[{"rule":"` + rule + `"}]`
	}
	deep := `{"type":"object"}`
	for range 200 {
		deep = `{"type":"object","additionalProperties":false,"properties":{"a":` + deep + `}}`
	}
	deepOf := func(more string) string {
		of := `{"maxLength":1}`
		for range 12 {
			of = `{"` + more + `":[` + of + `,` + of + `]}`
		}
		return text(`"` + more + `":[` + of + `]`)
	}
	return map[string]hostileSchema{
		"deep nesting": {`"o":` + deep, `"o":` + strings.Repeat(`{"a":`, 200) + `{}` + strings.Repeat("}", 200),
			"", true},
		"a pattern":   {text(`"pattern":"` + repeats + `"`), a(64 << 10), tooLong, false},
		"short texts": {text(`"pattern":"` + repeats + `"`), a(500), invalid, false},
		"a pattern in a list": {`"l":{"type":"array","items":{"type":"string","pattern":"` + repeats + `"}}`,
			`"l":[` + list(`"aaaaaaaa"`, 5000) + `]`, tooLong, false},
		"patterns in anyOf": {text(`"anyOf":[` + list(`{"pattern":"`+strings.Repeat("a?", 50)+`b"}`, 1000) + `]`),
			a(8000), tooLong, false},
		"oneOf": {text(`"oneOf":[` + list(`{"minLength":1}`, 3000) + `]`), a(5),
			"the object itself (FieldValueInvalid)", false},
		"anyOf in anyOf":  {deepOf("anyOf"), a(5), "s (FieldValueTooLong)", false},
		"allOf in allOf":  {deepOf("allOf"), a(5), "s (FieldValueTooLong)", false},
		"required fields": {`"o":{"type":"object","required":[` + names(10_000) + `]}`, `"o":{}`, manyOfIt, true},
		"an enum": {`"l":{"type":"array","items":{"type":"string","enum":[` + list(`"b"`, 50_000) + `]}}`,
			`"l":[` + list(`"a"`, 2000) + `]`, tooLong, false},
		"an enum, few values": {text(`"enum":[` + list(`"b"`, 50_000) + `]`), a(5), `s (FieldValueNotSupported)`,
			false},
		"formats": {text(`"allOf":[` + list(`{"format":"hostname"}`, 2000) + `]`), a(20_000),
			tooLong, false},
		"a format": {text(`"format":"hostname"`), a(1 << 20), `s (FieldValueTypeInvalid)`, true},
		"uniqueItems": {`"l":{"type":"array","uniqueItems":true,"items":{"type":"string"}}`, `"l":["a"]`,
			errUniqueItems.Error(), true},
		"loops": {`"l":{"type":"array","items":{"type":"string"},` +
			rule(`self.all(a, self.all(b, self.all(c, a == b || c == a)))`) + `}`, `"l":[` + list(`"a"`, 500) + `]`, "",
			false},
		"a match":              {text(rule(`self.matches('` + repeats + `')`)), a(64 << 10), tooLarge, true},
		"a match, or not":      {text(rule(`self.matches('` + repeats + `') || true`)), a(64 << 10), tooLarge, true},
		"a search":             {text(rule(`self.findAll('a.*b|a').size() == 1`)), a(64 << 10), tooLarge, false},
		"a match of few bytes": {text(rule(`self.matches('` + repeats + `')`)), a(500), invalid, false},
		"an index": {text(rule(`self.indexOf(self.substring(0, 60000) + 'b') == 1`)), a(120_000),
			tooLarge, false},
		"an exponent": {text(rule(`quantity(self).isGreaterThan(quantity('2'))`)), `"s":"1e999999999"`,
			tooLarge, true},
		"a message": {text(`"x-kubernetes-validations":[{"rule":"false","messageExpression":"self.find('` +
			repeats + `')"}]`), a(64 << 10), invalid, true},
	}
}

// For each schema and object, the check ends soon with an error, or is cheap; so are many such
// objects with one shared budget. Most take minutes or hours in the library. No time is measured: a
// run that does not end fails.
func TestHostileSchemas(t *testing.T) {
	for name, c := range hostileSchemas() {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			v := thing(t, `{"type":"object","properties":{`+c.schema+`}}`)
			obj := object(t, `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"x"},`+c.content+`}`)
			budget := &bounded.Budget{Limit: 1}
			for i := range 20 {
				meter := budget.Meter()
				said := saidOf(v.Validate(bounded.WithMeter(ctx, meter), obj))
				if i == 0 {
					require.Contains(t, said, c.said)
					if name == "uniqueItems" { // rejected before any comparison
						require.Equal(t, said, Unchecked(v.Refused(ctx, obj)))
					}
				}
				if !meter.Take() {
					require.False(t, c.cheap, "object %d", i)
					require.Contains(t, said, "cost too much for all objects together")
					return
				}
			}
			require.True(t, c.cheap, "%s", budget)
		})
	}
}

// saidOf returns the errors of an object in one text.
func saidOf(errs field.ErrorList) string {
	if why := Unchecked(errs); why != "" {
		return why
	}
	return strings.Join(Fields(errs), "; ")
}
