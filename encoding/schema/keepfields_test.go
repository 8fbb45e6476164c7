package schema

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// typesOfLists is a schema with each kind of list and map known to a field manager.
const typesOfLists = `{"type":"object","properties":{"spec":{"type":"object","properties":{
	"a":{"type":"object","additionalProperties":{"type":"string"}},
	"b":{"type":"object","x-kubernetes-map-type":"atomic","properties":{"a":{"type":"string"}}},
	"c":{"type":"array","items":{"type":"object","properties":{"a":{"type":"string"}}}},
	"d":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
	"e":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{"type":"object","required":["name"],
		"properties":{"name":{"type":"string"},"a":{"type":"object","properties":{"a":{"type":"string"}}},"c":{"type":"array","items":{"type":"string"}}}}},
	"f":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
	"g":{"x-kubernetes-int-or-string":true},
	"h":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"a":{"type":"array","items":{"type":"string"}}}}}}}}`

// fieldsV1 returns random fields that may be in an object of typesOfLists.
func (g generator) fieldsV1(depth int) map[string]any {
	out := map[string]any{}
	for range g.IntN(4) {
		element := g.one("f:a", "f:b", "f:c", "f:d", "f:e", "f:f", "f:g", "f:h", "f:spec", "f:name", ".",
			`k:{"name":"x"}`, `v:"x"`, "f:a").(string)
		if g.IntN(40) == 0 {
			element = g.one("i:0", "i:00", "v:1", "v:1.0", "v:-1", `v: 1`, `k:{"a":1,"name":"x"}`,
				`k:{"name":"x","a":1}`, `k:{"name":"<"}`, `v:"\u003c"`, "x:a", "f:", "fa",
				"f:<", "f:ü", "k:{}", "k:", `k:{"a":true}`, "v:null", "v:12345678901234567", "i:-1", "", `f:"`).(string)
		}
		out[element] = map[string]any{}
		if depth > 0 && element != "." && g.IntN(3) > 0 {
			out[element] = g.fieldsV1(depth - 1)
		}
	}
	if g.IntN(100) == 0 {
		out["f:odd"] = g.one(nil, "x", []any{}, int64(1))
	}
	return out
}

func (g generator) managedFields() (list []any) {
	for i := range 1 + g.IntN(4)*g.IntN(5) {
		entry := map[string]any{
			"manager": fmt.Sprintf("m%d", i), "operation": g.one("Update", "Update", "Update", "Apply"),
			"apiVersion": "example.com/" + g.one("v1", "v2", "v2", "v2").(string),
			"fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:spec": g.fieldsV1(3)},
			"time": fmt.Sprintf("2026-01-02T03:04:%02dZ", 2*i+g.IntN(3)),
		}
		for name, value := range map[string]any{
			"manager": g.one("m0", "", "<", "ü"), "operation": g.one("Apply", "Odd", nil),
			"apiVersion": g.one("example.com/v9", "v1", "", "example.org/v2"),
			"fieldsType": g.one("", "FieldsV2"), "fieldsV1": g.one(nil, map[string]any{}, g.fieldsV1(2), "x"),
			"subresource": g.one("status", ""), "more": "x",
			"time": g.one("1960-01-01T00:00:00Z", "2026-01-02T03:04:05+01:00", nil, "yesterday",
				"2026-01-02T03:04:00Z"),
		} {
			if g.IntN(60) == 0 {
				entry[name] = value
			}
			if g.IntN(120) == 0 {
				delete(entry, name)
			}
		}
		list = append(list, entry)
	}
	if g.IntN(40) == 0 {
		list = append(list, g.one(nil, "x", map[string]any{}))
	}
	return list
}

// TestKeepsManagedFields checks that a server's field manager keeps every list accepted by
// keepsManagedFields, at random schemas.
func TestKeepsManagedFields(t *testing.T) {
	changed, kept, told := 0, 0, 0
	for seed := range uint64(150) {
		g := generator{rand.New(rand.NewPCG(seed, 13))}
		data := g.crd()
		if seed%2 == 0 {
			data =
				[]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things.example.com"},"spec":{"group":"example.com","scope":"Cluster",
				"names":{"plural":"things","kind":"Thing"},"versions":[{"name":"v1","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}},
				{"name":"v2","served":true,"storage":true,"schema":{"openAPIV3Schema":` + typesOfLists + `}}]}}`)
		}
		crd, err := ParseCRD(data)
		require.NoError(t, err)
		storage, err := crd.Version("v2")
		if err != nil {
			continue
		}
		for range 60 {
			obj, list := g.object(), g.managedFields()
			obj["apiVersion"] = "example.com/v2"
			if seed%2 == 0 {
				obj = map[string]any{"apiVersion": "example.com/v2", "kind": "Thing"}
				obj["spec"] = g.one(map[string]any{"a": map[string]any{"a": "x"}, "d": []any{"x", "x"},
					"e": []any{map[string]any{"name": "x"}, map[string]any{"name": "x"}}}, map[string]any{}, nil)
			}
			settled, err := updateManagedFields(storage, obj, list)
			require.NoError(t, err)
			same := assert.ObjectsAreEqual(list, settled)
			if same {
				kept++
			} else {
				changed++
			}
			if keepsManagedFields(crd, list) {
				told++
				require.True(t, same, "%s\n%v\n%v", text(t, obj), list, settled)
				for _, entry := range list {
					require.True(t, isReadable(entry.(map[string]any)))
				}
			}
		}
	}
	require.Greater(t, changed, 1_000)
	require.Greater(t, told, 1_000, "of %d", kept)
}
