package schema

import (
	"fmt"
	"regexp/syntax"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
)

const (
	// maxInstructions bounds the compiled patterns of one version, which the library keeps: x{1000}
	// compiles to a thousand instructions. Large real schemas have some thousand.
	maxInstructions = 1 << 18

	// maxCaptures bounds the memory of one match: each instruction may store the position of each
	// group.
	maxCaptures = 1 << 23
)

// patterns sums the compiled sizes of a schema's distinct patterns.
type patterns struct {
	seen         map[string]bool
	instructions int
}

// checkPatterns returns errChecks if the patterns of a schema take too much memory.
func checkPatterns(s *apiextensions.JSONSchemaProps) error {
	p := patterns{seen: map[string]bool{}}
	return p.addSchema(s)
}

func (p *patterns) addSchema(s *apiextensions.JSONSchemaProps) error {
	if s == nil {
		return nil
	}
	if err := p.add(s.Pattern); err != nil {
		return err
	}
	below := slices.Collect(combined(s))
	for _, property := range s.Properties {
		below = append(below, &property)
	}
	for pattern, property := range s.PatternProperties {
		if err := p.add(pattern); err != nil {
			return err
		}
		below = append(below, &property)
	}
	if s.AdditionalProperties != nil {
		below = append(below, s.AdditionalProperties.Schema)
	}
	if s.Items != nil {
		below = append(below, s.Items.Schema)
	}
	for _, child := range below {
		if err := p.addSchema(child); err != nil {
			return err
		}
	}
	return nil
}

// add compiles a pattern as package regexp does.
func (p *patterns) add(pattern string) error {
	if pattern == "" || p.seen[pattern] {
		return nil
	}
	p.seen[pattern] = true
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil // the library reports it
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
