package schema

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/encoding"
)

// mutated changes one position of a value.
func (g generator) mutated(value []byte) []byte {
	text := string(value)
	at, n := g.IntN(len(text)), g.IntN(3)
	insert := g.one("", " ", "0", "-0", "1e3", "1.0", `\u0041`, `\/`, `"`, `,"z":1`, "null", "\xff", "\u2028", "<",
		"{}", "[]", "12345678901234567890").(string)
	return []byte(text[:at] + insert + text[min(len(text), at+n):])
}

// restrictedCRD returns a definition with many rules, and the schema of its storage version v2.
func (g generator) restrictedCRD(t *testing.T) (*CRD, map[string]any) {
	var definition map[string]any
	require.NoError(t, json.Unmarshal(g.crd(), &definition))
	g.restricted(definition)
	versions := definition["spec"].(map[string]any)["versions"].([]any)
	if g.IntN(2) == 0 {
		versions[0].(map[string]any)["schema"] = versions[1].(map[string]any)["schema"]
	}
	if storage := versions[1].(map[string]any); g.IntN(8) == 0 {
		scale := map[string]any{"specReplicasPath": g.one(".spec.a", ".spec.b"),
			"statusReplicasPath": g.one(".status.a", ".status.b")}
		storage["subresources"] = map[string]any{"scale": scale}
	}
	data, err := json.Marshal(definition)
	require.NoError(t, err)
	crd, err := ParseCRD(data)
	require.NoError(t, err)
	return crd, versions[1].(map[string]any)["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
}

// restricted adds constraints to random positions of a schema.
func (g generator) restricted(s map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(s)) {
		switch element := s[name].(type) {
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
	if s["x-kubernetes-int-or-string"] == true {
		add(4, "pattern", "^[0-9a-z]+$")
		add(4, "anyOf", []any{map[string]any{"type": "integer"}, map[string]any{"type": "string"}})
		add(9, "format", "int-or-string")
	}
	switch s["type"] {
	case "string":
		add(6, "enum", []any{"x", "y", ""})
		add(6, "pattern", "^[a-z<]*$")
		add(6, "maxLength", 1)
		add(6, "minLength", 1)
		add(4, "format", g.one("date-time", "duration", "k8s-short-name", "unknown"))
	case "integer", "number":
		add(5, "minimum", g.one(1, -3, 0.5))
		add(5, "maximum", g.one(100, 7, 7.5, 4294967295))
		add(9, "exclusiveMinimum", true)
		add(9, "exclusiveMaximum", true)
		add(9, "multipleOf", 3)
		add(4, "format", g.one("int32", "int64", "float", "double"))
	case "object":
		add(6, "required", []any{"a"})
		add(12, "maxProperties", 1)
		add(12, "minProperties", 1)
		add(9, "x-kubernetes-map-type", "atomic")
		add(12, "x-kubernetes-validations",
			[]any{map[string]any{"rule": g.one("!has(self.a)", "!has(self.a) || self == oldSelf", "has(self.b)",
				"!has(self.a) || !has(self.b) || self.a == self.b", "!has(self.a) || !has(self.a.b)",
				"!has(self.b) || size(self.b) < 2", "self == self")}})
	case "array":
		add(9, "maxItems", 1)
		add(9, "minItems", 1)
		add(5, "x-kubernetes-list-type", "set")
		if items := s["items"].(map[string]any); items["type"] == "object" && g.IntN(2) == 0 {
			s["x-kubernetes-list-type"], s["x-kubernetes-list-map-keys"], items["required"] = "map",
				g.one([]any{"a"}, []any{"b", "a"}), []any{"a"}
		}
	}
}

// typedValue returns a value that fits the type of a schema more often than not.
func (g generator) typedValue(s map[string]any) any {
	if g.IntN(25) == 0 {
		return g.value(1)
	}
	switch s["type"] {
	case "string":
		return g.one("x", "x", "y", "", "<a>", "7", "X", "zz", "2026-01-02T03:04:05Z", "5s")
	case "integer":
		return g.one(int64(0), int64(7), int64(8), int64(1), int64(-3), int64(100), int64(500), int64(2147483648),
			int64(9007199254740993), int64(1795202897324037875), 2.5)
	case "number":
		return g.one(int64(3), int64(7), 7.0, 7.2, 1.5, 1e30)
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
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			if g.IntN(4) > 0 {
				out[name] = g.typedValue(properties[name].(map[string]any))
			}
		}
		if additional, ok := s["additionalProperties"].(map[string]any); ok {
			out["z"] = g.typedValue(additional)
		}
		return out
	}
	return g.value(1)
}

// acceptable returns values that most servers would write, and some damaged values.
func (g generator) acceptable(t *testing.T, crd *CRD, root map[string]any) [][]byte {
	obj := g.typedValue(root)
	object, _ := obj.(map[string]any)
	if object == nil {
		return nil
	}
	object["apiVersion"], object["kind"], object["metadata"] = g.one("example.com/v1", "example.com/v2"),
		"Thing", g.metadata()
	metadata, _ := object["metadata"].(map[string]any)
	if metadata != nil && g.IntN(2) == 0 {
		fields := g.one(map[string]any{"f:spec": map[string]any{".": map[string]any{}, "f:a": map[string]any{}}},
			map[string]any{`k:{"a":1}`: map[string]any{}}, map[string]any{"x": map[string]any{}}, map[string]any{})
		metadata["managedFields"] = []any{map[string]any{
			"apiVersion": g.one("example.com/v1", "example.com/v2", "example.com/v3", "v1"), "manager": "m",
			"operation":  g.one("Update", "Apply", "Other"),
			"fieldsType": g.one("FieldsV1", "FieldsV1", "V2"), "fieldsV1": fields,
		}}
		metadata["labels"] = map[string]any{g.one("a", "a.b/c", "A/b", "a_", "/x", "x/").(string): g.one("", "b",
			"-", "A.b", "é")}
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
