package schema

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/encoding"
)

// slowAccepts is Accepts by decoding.
func slowAccepts(t testing.TB, crd *CRD, value []byte) bool {
	obj, format, err := encoding.DecodeObject(value)
	if err != nil || format != encoding.FormatJSON || obj["kind"] != crd.GroupKind().Kind {
		return false
	}
	if metadata, _ := obj["metadata"].(map[string]any); metadata["name"] != "x" || metadata["namespace"] != nil {
		return false
	}
	rewritten := cloneJSON(obj).(map[string]any)
	if _, err := crd.Rewrite(rewritten); err != nil {
		return false
	}
	storage, err := crd.Version(crd.StorageVersion())
	require.NoError(t, err)
	if len(storage.Validate(context.Background(), rewritten)) > 0 || len(storage.Refused(context.Background(), rewritten)) > 0 || crd.CheckApply(rewritten) != nil {
		return false
	}
	obj["apiVersion"] = rewritten["apiVersion"]
	before, err := encoding.EncodeObject(obj, format)
	require.NoError(t, err)
	after, err := encoding.EncodeObject(rewritten, format)
	require.NoError(t, err)
	return string(before) == string(after)
}

// restricted adds what values must meet to random places of a schema.
func (g generator) restricted(s map[string]any) {
	for name, element := range s {
		switch element := element.(type) {
		case map[string]any:
			if name != "default" {
				g.restricted(element)
			}
		case []any:
			for _, one := range element {
				if one, ok := one.(map[string]any); ok && name == "versions" {
					g.restricted(one)
				}
			}
		}
	}
	add := func(in int, name string, value any) {
		if g.IntN(in) == 0 {
			s[name] = value
		}
	}
	switch s["type"] {
	case "string":
		add(6, "enum", []any{"x", "y", ""})
		add(6, "pattern", "^[a-z<]*$")
		add(6, "maxLength", 1)
		add(6, "minLength", 1)
		add(9, "format", "date-time")
	case "integer", "number":
		add(5, "minimum", 1)
		add(5, "maximum", 100)
		add(9, "multipleOf", 3)
		add(9, "format", "int32")
	case "object":
		add(6, "required", []any{"a"})
		add(12, "maxProperties", 1)
		add(12, "x-kubernetes-validations", []any{map[string]any{"rule": "!has(self.a)"}})
	case "array":
		add(9, "maxItems", 1)
		add(9, "x-kubernetes-list-type", "set")
	}
}

// typedValue is a value that fits the type of a schema, more often than not.
func (g generator) typedValue(s map[string]any) any {
	if g.IntN(25) == 0 {
		return g.value(1)
	}
	switch s["type"] {
	case "string":
		return g.one("x", "y", "", "<a>", "7", "X", "zz")
	case "integer":
		return g.one(int64(0), int64(7), int64(-3), int64(500), int64(9007199254740993))
	case "number":
		return g.one(int64(3), 1.5, 1e30)
	case "boolean":
		return g.IntN(2) == 0
	case "array":
		list := []any{}
		for range g.IntN(3) {
			list = append(list, g.typedValue(s["items"].(map[string]any)))
		}
		return list
	case "object":
		out := map[string]any{}
		properties, _ := s["properties"].(map[string]any)
		for name, property := range properties {
			if g.IntN(4) > 0 {
				out[name] = g.typedValue(property.(map[string]any))
			}
		}
		if additional, ok := s["additionalProperties"].(map[string]any); ok {
			out["z"] = g.typedValue(additional)
		}
		return out
	}
	return g.value(1)
}

// TestAcceptsIsNeverWrong: what bytes tell, decoding confirms, at random schemas.
func TestAcceptsIsNeverWrong(t *testing.T) {
	accepted, told := 0, 0
	for seed := range uint64(400) {
		g := generator{rand.New(rand.NewPCG(seed, 12))}
		var definition map[string]any
		require.NoError(t, json.Unmarshal(g.crd(), &definition))
		g.restricted(definition)
		versions := definition["spec"].(map[string]any)["versions"].([]any)
		if g.IntN(2) == 0 {
			versions[0].(map[string]any)["schema"] = versions[1].(map[string]any)["schema"]
		}
		data, err := json.Marshal(definition)
		require.NoError(t, err)
		crd, err := ParseCRD(data)
		require.NoError(t, err)
		if _, err := crd.Version("v2"); err != nil {
			continue // a default that can't be pruned
		}
		root := versions[1].(map[string]any)["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
		for range 30 {
			for _, value := range g.acceptable(t, crd, root) {
				slow, fast := slowAccepts(t, crd, value), crd.Accepts(value, "", "x")
				require.False(t, fast && !slow, "%s\n%s", value, data)
				if slow {
					accepted++
				}
				if fast {
					told++
				}
			}
		}
	}
	require.Greater(t, told, 300, "of %d", accepted)
}

// acceptable is a value that most servers would write, and some with damage.
func (g generator) acceptable(t *testing.T, crd *CRD, root map[string]any) [][]byte {
	obj := g.typedValue(root)
	object, _ := obj.(map[string]any)
	if object == nil {
		return nil
	}
	object["apiVersion"], object["kind"], object["metadata"] = g.one("example.com/v1", "example.com/v2"), "Thing", g.metadata()
	metadata, _ := object["metadata"].(map[string]any)
	if metadata != nil && g.IntN(2) == 0 {
		fields := g.one(map[string]any{"f:spec": map[string]any{".": map[string]any{}, "f:a": map[string]any{}}}, map[string]any{`k:{"a":1}`: map[string]any{}},
			map[string]any{"x": map[string]any{}}, map[string]any{})
		metadata["managedFields"] = []any{map[string]any{
			"apiVersion": g.one("example.com/v1", "example.com/v2", "example.com/v3", "v1"), "manager": "m", "operation": g.one("Update", "Apply", "Other"),
			"fieldsType": g.one("FieldsV1", "FieldsV1", "V2"), "fieldsV1": fields,
		}}
		metadata["labels"] = map[string]any{g.one("a", "a.b/c", "A/b", "a_", "/x", "x/").(string): g.one("", "b", "-", "A.b", "é")}
	}
	if _, err := crd.Rewrite(object); err != nil {
		return nil
	}
	if g.IntN(2) == 0 && slices.Contains([]any{"example.com/v2"}, object["apiVersion"]) {
		object["apiVersion"] = "example.com/v1"
	}
	value, err := encoding.EncodeObject(object, encoding.FormatJSON)
	require.NoError(t, err)
	return [][]byte{value, g.mutated(value), g.mutated(value)}
}

// TestAcceptsLongNames: the handles of Calico's IPAM have names longer than a label.
func TestAcceptsLongNames(t *testing.T) {
	crd, err := ParseCRD([]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things.example.com"},"spec":{` +
		`"group":"example.com","names":{"kind":"Thing","plural":"things"},"scope":"Cluster","versions":[{"name":"v1","served":true,"storage":true,` +
		`"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`))
	require.NoError(t, err)
	for name, want := range map[string]bool{
		"k8s-pod-network." + strings.Repeat("1b", 32): true, strings.Repeat("a", 253): true, strings.Repeat("a", 254): false,
	} {
		value := `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"generation":1,"name":"` + name + `"}}` + "\n"
		require.Equal(t, want, crd.Accepts([]byte(value), "", name), name)
	}
}
