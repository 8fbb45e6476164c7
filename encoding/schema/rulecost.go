package schema

import (
	"context"
	"errors"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"

	"github.com/etcdshift/etcdshift/internal/bounded"
)

// The library's Validator bounds the cost of rules, but not the memory that they take, and compiles
// them itself. So each rule is evaluated before with a bound: the Validator then does the same.

// errBudget is the error of a server for an object whose rules cost too much together.
var errBudget = errors.New("validation failed due to running out of cost budget, no further validation rules will be run")

// tooCostly returns why a Validator must not be asked about an object; nil if it may.
func (c validators) tooCostly(ctx context.Context, obj, old any) error {
	check := ruleCheck{ctx, celconfig.RuntimeCELCostBudget}
	return check.cost(c.created(), obj, old)
}

// cost evaluates the rules of a node and of those below it.
func (c *ruleCheck) cost(node *ruleNode, value, old any) error {
	if node == nil || value == nil {
		return nil
	}
	if err := c.costHere(node, value, old); err != nil {
		return err
	}
	switch value := value.(type) {
	case map[string]any:
		old, _ := old.(map[string]any)
		for name, element := range value {
			for _, below := range []*ruleNode{node.properties[name], node.additional} {
				if err := c.cost(below, element, old[name]); err != nil {
					return err
				}
			}
		}
	case []any:
		if node.items == nil {
			return nil
		}
		list, _ := old.([]any)
		before := common.MakeMapList(node.schema, list)
		for _, element := range value {
			if err := c.cost(node.items, element, before.Get(element)); err != nil {
				return err
			}
		}
	}
	return nil
}

// costHere evaluates the rules of a node, and the messages of those that are not met.
func (c *ruleCheck) costHere(node *ruleNode, value, old any) error {
	if len(node.rules) == 0 {
		return nil
	}
	variables := map[string]any{"self": common.UnstructuredToVal(value, node.schema)}
	optional := map[string]any{"self": variables["self"], "oldSelf": types.OptionalNone}
	if old != nil {
		before := common.UnstructuredToVal(old, node.schema)
		variables["oldSelf"], optional["oldSelf"] = before, types.OptionalOf(before)
	}
	for i, rule := range node.rules {
		if rule.Program == nil || rule.UsesOldSelf && old == nil && !node.optional[i] {
			continue
		}
		in := variables
		if node.optional[i] {
			in = optional
		}
		met, err := c.spend(rule.Program, in)
		if err == nil && !met && rule.MessageExpression != nil {
			_, err = c.spend(rule.MessageExpression, variables)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// spend evaluates an expression. Errors of it that are about neither size nor cost are the
// Validator's.
func (c *ruleCheck) spend(expression cel.Program, variables map[string]any) (isTrue bool, err error) {
	result, details, err := expression.ContextEval(c.ctx, variables)
	if bounded.Is(err) {
		return false, bounded.ErrTooLarge
	}
	if details != nil && details.ActualCost() != nil {
		c.budget -= int64(min(*details.ActualCost(), celconfig.RuntimeCELCostBudget))
	}
	if c.budget < 0 {
		return false, errBudget
	}
	return err == nil && result == types.True, c.ctx.Err()
}

// hoist gives a schema and those below it the rules that stand in their allOf.
func hoist(s *structuralschema.Structural) {
	if s == nil {
		return
	}
	if s.ValueValidation != nil {
		for i := range s.ValueValidation.AllOf {
			hoistFrom(s, &s.ValueValidation.AllOf[i])
		}
	}
	hoist(s.Items)
	if s.AdditionalProperties != nil {
		hoist(s.AdditionalProperties.Structural)
	}
	for name, property := range s.Properties {
		hoist(&property)
		s.Properties[name] = property
	}
}

func hoistFrom(s *structuralschema.Structural, more *structuralschema.NestedValueValidation) {
	if s == nil || more == nil {
		return
	}
	s.XValidations = append(s.XValidations, more.XValidations...)
	for i := range more.AllOf {
		hoistFrom(s, &more.AllOf[i])
	}
	hoistFrom(s.Items, more.Items)
	if s.AdditionalProperties != nil {
		hoistFrom(s.AdditionalProperties.Structural, more.AdditionalProperties)
	}
	for name, below := range more.Properties {
		if property, declared := s.Properties[name]; declared {
			hoistFrom(&property, &below)
			s.Properties[name] = property
		}
	}
}
