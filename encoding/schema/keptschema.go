package schema

import (
	"sync"

	"k8s.io/apiserver/pkg/cel/common"
)

// keptSchema is a schema that creates each schema below only once.
type keptSchema struct {
	common.Schema
	items      func() common.Schema
	properties func() map[string]common.Schema
	additional func() common.SchemaOrBool
}

type keptSchemaOrBool struct {
	common.SchemaOrBool
	schema common.Schema
}

// keep returns s as a keptSchema, including the schemas below.
func keep(s common.Schema) common.Schema {
	if s == nil {
		return nil
	}
	properties := func() map[string]common.Schema {
		all := s.Properties()
		for name, property := range all {
			all[name] = keep(property)
		}
		return all
	}
	additional := func() common.SchemaOrBool {
		if a := s.AdditionalProperties(); a != nil {
			return keptSchemaOrBool{a, keep(a.Schema())}
		}
		return nil
	}
	items := func() common.Schema { return keep(s.Items()) }
	return &keptSchema{s, sync.OnceValue(items), sync.OnceValue(properties), sync.OnceValue(additional)}
}

func (k *keptSchema) Items() common.Schema                      { return k.items() }
func (k *keptSchema) Properties() map[string]common.Schema      { return k.properties() }
func (k *keptSchema) AdditionalProperties() common.SchemaOrBool { return k.additional() }

func (k keptSchemaOrBool) Schema() common.Schema { return k.schema }
