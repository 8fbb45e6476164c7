package schema

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPlainMetadata: in metadata that is plain, a server's rules find nothing.
func TestPlainMetadata(t *testing.T) {
	long := strings.Repeat("x", 64)
	words := []any{"a", "a-b", "a.b", "A", "a_b", "", ".", "..", "-a", "a-", "a/b", "a.b/c", "a..b/c", "a.-b/c", "A.b/c", "a_b/c", "/a", "a/", "a/b/c", "a%", "a b", "é", long, long[:63],
		long + "/a", strings.Repeat("x.", 130) + "x/a", int64(1), nil}
	plain := 0
	for name, scope := range map[string]string{"Namespaced": `"scope":"Namespaced"`, "Cluster": `"scope":"Cluster"`} {
		v := version(t, parseCRD(t, strings.Replace(thingCRD(`{"type":"object"}`), `"scope":"Cluster"`, scope, 1)), "v1")
		g := generator{rand.New(rand.NewPCG(uint64(len(name)), 29))}
		texts := func() map[string]any {
			out := map[string]any{}
			for range g.IntN(3) {
				key, _ := g.one(words...).(string)
				out[key] = g.one(words...)
			}
			if g.IntN(50) == 0 {
				out["large"] = strings.Repeat("x", 100<<10*(1+g.IntN(3)))
			}
			return out
		}
		for range 20_000 {
			metadata := map[string]any{"name": g.one("x", "x", g.one(words...))}
			for field, value := range map[string]any{
				"namespace": g.one("ns", "ns", g.one(words...)), "generation": g.one(int64(1), int64(0), int64(-1), "1"), "labels": texts(), "annotations": texts(),
				"uid": g.one(words...), "creationTimestamp": g.one("2026-01-02T03:04:05Z", nil, "x"), "generateName": g.one(words...), "finalizers": []any{"a b"},
				"ownerReferences": []any{map[string]any{}}, "deletionTimestamp": "2026-01-02T03:04:05Z", "managedFields": []any{"x"},
			} {
				if often := strings.Contains("namespace generation labels annotations", field); often && g.IntN(2) == 0 || g.IntN(30) == 0 {
					metadata[field] = value
				}
			}
			if plainMetadata(metadata, name == "Namespaced") {
				plain++
				require.Empty(t, v.validateMeta(map[string]any{"metadata": metadata}), metadata)
			}
		}
	}
	require.Greater(t, plain, 1_000)
}
