package schema

import (
	"context"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
)

// ruleCheck checks CEL rules for an object that is created. At each step of a rule the library
// copies the schemas of all fields of the object that the step starts from. So each node is checked
// by itself, and is shown only the fields that its value has: to a rule, others are not there
// either way.
type ruleCheck struct {
	ctx    context.Context
	root   *cel.Validator
	budget int64 // what the rules may still cost
}

// meets reports that a value meets the rules of a node and of those below.
func (c *ruleCheck) meets(node *cel.Validator, value any) bool {
	if node == nil || value == nil {
		return true
	}
	if len(node.Schema.XValidations)+len(node.AllOfValidators) > 0 {
		alone := *node
		alone.Items, alone.Properties, alone.AdditionalProperties = nil, nil, nil
		if node != c.root { // to the fields of a resource the library adds some
			alone.Schema = presentFields(node.Schema, value)
		}
		broken, left := alone.Validate(c.ctx, nil, nil, value, nil, c.budget)
		if c.budget = left; len(broken) > 0 || left < 0 {
			return false
		}
	}
	switch value := value.(type) {
	case map[string]any:
		for name, element := range value {
			below, found := node.Properties[name]
			if found && !c.meets(&below, element) || !c.meets(node.AdditionalProperties, element) {
				return false
			}
		}
	case []any:
		for _, element := range value {
			if !c.meets(node.Items, element) {
				return false
			}
		}
	}
	return true
}

// presentFields is the schema without the fields that an object does not have, unless that is a
// resource.
func presentFields(s *structuralschema.Structural, value any) *structuralschema.Structural {
	object, isObject := value.(map[string]any)
	if !isObject || s.Properties == nil || s.XEmbeddedResource {
		return s
	}
	out := *s
	out.Properties = make(map[string]structuralschema.Structural, len(object))
	for name, value := range object {
		if property, declared := s.Properties[name]; declared {
			out.Properties[name] = *presentFields(&property, value)
		}
	}
	return &out
}
