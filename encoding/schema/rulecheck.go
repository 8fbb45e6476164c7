package schema

import (
	"context"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	servercel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"

	"github.com/etcdshift/etcdshift/internal/bounded"
)

// ruleCheck checks CEL rules for a created object, like the library's Validator. The Validator
// copies the schemas of all fields of an object at each step of a rule.
type ruleCheck struct {
	ctx    context.Context
	budget int64 // the remaining cost of the rules
}

// ruleNode holds the compiled rules of a schema and of the schemas below.
type ruleNode struct {
	schema            common.Schema
	rules             []servercel.CompilationResult
	unsure            bool // a Validator must check the value; Tell does not accept the value either
	items, additional *ruleNode
	properties        map[string]*ruleNode
}

// newRoot compiles the rules of a resource.
func newRoot(s *structuralschema.Structural) *ruleNode {
	if !hasRules(s) {
		return nil
	}
	return newRuleNode(s, keep(&model.Structural{Structural: model.WithTypeAndObjectMeta(s)}),
		model.SchemaDeclType(s, true))
}

// newRuleNode compiles the rules of a schema like a Validator, or returns nil without rules. shown
// is the schema as seen by rules, and of is its type in CEL.
func newRuleNode(s *structuralschema.Structural, shown common.Schema, of *apiservercel.DeclType) *ruleNode {
	if !hasRules(s) {
		return nil
	}
	if of == nil {
		return &ruleNode{unsure: true} // no rule of the schema compiles
	}
	if s.XEmbeddedResource {
		shown = keep(&model.Structural{Structural: model.WithTypeAndObjectMeta(s)})
	}
	rules, err := servercel.Compile(s, of, celconfig.PerCallLimit, bounded.Environment(),
		servercel.StoredExpressionsEnvLoader())
	n := &ruleNode{schema: shown, rules: rules, properties: map[string]*ruleNode{}}
	n.unsure = err != nil || s.XEmbeddedResource || s.ValueValidation != nil && len(s.ValueValidation.AllOf) > 0
	for _, rule := range rules {
		n.unsure = n.unsure || rule.Error != nil || rule.UsesOldSelf
	}
	n.items = newRuleNode(s.Items, shown.Items(), of.ElemType)
	if s.AdditionalProperties != nil {
		n.additional = newRuleNode(s.AdditionalProperties.Structural, shown.AdditionalProperties().Schema(),
			of.ElemType)
	}
	for name, property := range s.Properties {
		if in := typeOf(of, name, &property); in != nil { // rules ignore other fields
			n.properties[name] = newRuleNode(&property, shown.Properties()[name], in)
		}
	}
	return n
}

// typeOf returns the type in CEL of a field, or nil.
func typeOf(object *apiservercel.DeclType, name string, property *structuralschema.Structural) *apiservercel.DeclType {
	escaped, ok := apiservercel.Escape(name)
	if !ok {
		return model.SchemaDeclType(property, property.XEmbeddedResource)
	}
	if field := object.Fields[escaped]; field != nil {
		return field.Type
	}
	return nil
}

// hasRules reports whether s or a schema below has rules, or may have rules in allOf.
func hasRules(s *structuralschema.Structural) bool {
	return anyStructural(s, func(s *structuralschema.Structural) bool {
		return len(s.XValidations) > 0 || s.ValueValidation != nil && len(s.ValueValidation.AllOf) > 0
	})
}

// anyStructural reports whether is returns true for s or for a schema below s.
func anyStructural(s *structuralschema.Structural, is func(*structuralschema.Structural) bool) bool {
	if s == nil {
		return false
	}
	if is(s) || anyStructural(s.Items, is) || s.AdditionalProperties != nil &&
		anyStructural(s.AdditionalProperties.Structural, is) {
		return true
	}
	for _, property := range s.Properties {
		if anyStructural(&property, is) {
			return true
		}
	}
	return false
}

// meets reports whether a value meets the rules of a node and of the nodes below.
func (c *ruleCheck) meets(node *ruleNode, value any) bool {
	if node == nil || value == nil {
		return true
	}
	if node.unsure || !c.holds(node, value) {
		return false
	}
	switch value := value.(type) {
	case map[string]any:
		for name, element := range value {
			if !c.meets(node.properties[name], element) || !c.meets(node.additional, element) {
				return false
			}
		}
	case []any:
		for _, element := range value {
			if !c.meets(node.items, element) {
				return false
			}
		}
	}
	return true
}

// holds reports whether a value meets the rules of the node itself.
func (c *ruleCheck) holds(node *ruleNode, value any) bool {
	if len(node.rules) == 0 {
		return true
	}
	self, err := cel.NewActivation(map[string]any{"self": common.UnstructuredToVal(value, node.schema)})
	if err != nil {
		return false
	}
	for _, rule := range node.rules {
		if rule.Program == nil {
			continue // an empty rule
		}
		result, details, err := rule.Program.ContextEval(c.ctx, self)
		if details == nil || details.ActualCost() == nil {
			return false
		}
		if c.budget -= int64(min(*details.ActualCost(), celconfig.RuntimeCELCostBudget)); err != nil ||
			result != types.True || c.budget < 0 {
			return false
		}
	}
	return true
}
