package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// slowRewrite takes every step of the given number of no-op writes by a server, with the library's
// defaults.
func slowRewrite(c *CRD, obj map[string]any, writes int) (dropped []string, err error) {
	for range writes {
		stored, err := c.versionOf(obj)
		if err != nil {
			return nil, err
		}
		pruned, err := stored.coerce(obj, false)
		if err != nil {
			return nil, err
		}
		if structural, _ := stored.structural(); stored.governs(obj) {
			defaulting.Default(obj, structural)
		}
		obj["apiVersion"] = c.storageAPIVersion()
		storage, err := c.Version(c.StorageVersion())
		if err != nil {
			return nil, err
		}
		lost, err := storage.coerce(obj, true)
		if err != nil {
			return nil, err
		}
		dropped = append(append(dropped, pruned...), lost...)
	}
	if meta, ok := obj["metadata"].(map[string]any); ok {
		delete(meta, "resourceVersion")
		delete(meta, "selfLink")
	}
	return dropped, nil
}

// requireSame compares both ways on copies of obj.
func requireSame(t *testing.T, crd *CRD, obj map[string]any) {
	t.Helper()
	before := text(t, obj)
	for mode, writes := range map[Mode]int{Pure: 1, Settled: 2} {
		slow, fast := cloneJSON(obj).(map[string]any), cloneJSON(obj).(map[string]any)
		want, wantErr := slowRewrite(crd, slow, writes)
		got, err := crd.Begin(fast)
		if err == nil {
			crd.Relabel(fast)
			var lost []string
			lost, err = crd.Finish(fast, mode)
			got = append(got, lost...)
		}
		// Of several errors objectmeta.Coerce returns a random one: it iterates over a map.
		for range 100 {
			if wantErr == nil || err == nil || wantErr.Error() == err.Error() {
				break
			}
			_, wantErr = slowRewrite(crd, cloneJSON(obj).(map[string]any), writes)
		}
		require.Equal(t, fmt.Sprint(wantErr), fmt.Sprint(err), before)
		if err == nil {
			require.Equal(t, slow, fast, before)
			require.Equal(t, text(t, slow), text(t, fast), before)
			require.Equal(t, fmt.Sprint(want), fmt.Sprint(got), before)
		}
	}
}

// TestRewriteAsTheLibrary checks that Rewrite and as many writes with the library's own defaults
// give the same objects, for random objects and schemas.
func TestRewriteAsTheLibrary(t *testing.T) {
	for seed := range uint64(150) {
		g := generator{rand.New(rand.NewPCG(seed, 7))}
		crd, err := ParseCRD(g.crd())
		require.NoError(t, err)
		if _, err := crd.Version("v1"); err != nil {
			continue // a default that cannot be pruned
		}
		if _, err := crd.Version("v2"); err != nil {
			continue
		}
		for range 40 {
			obj := g.object()
			requireSame(t, crd, obj)
		}
	}
}

func TestRewriteRecordingsAsTheLibrary(t *testing.T) {
	crd := readCRD(t, "crd.etcd")
	for _, name := range append(crNames(t), "elide", "untouched") {
		requireSame(t, crd, object(t, string(readFile(t, "cr/"+name+".before"))))
		requireSame(t, crd, object(t, string(readFile(t, "cr/"+name+".settled"))))
	}
}

// FuzzRewriteAsTheLibrary also covers unusual metadata.
func FuzzRewriteAsTheLibrary(f *testing.F) {
	for _, name := range crNames(f) {
		f.Add(readFile(f, "cr/"+name+".before"))
	}
	for _, metadata := range []string{
		`{"creationTimestamp":"2020-01-01T00:00:00.5Z"}`, `{"creationTimestamp":"2020-01-01T01:00:00+01:00"}`,
		`{"deletionTimestamp":"0001-01-01T00:00:00Z"}`,
		`{"managedFields":[{}]}`, `{"managedFields":[{"fieldsV1":{}}]}`, `{"managedFields":[{"fieldsV1":{"f:a":3.0}}]}`,
		`{"generation":1.0,"labels":{"a":""}}`,
		`{"ownerReferences":[{"apiVersion":"","kind":"","name":"","uid":""}]}`,
		`{"ownerReferences":[{"uid":"u","controller":false}]}`, `{"Name":"x","name":"\ufffd"}`,
		`{"deletionGracePeriodSeconds":0,"generation":-1}`, `{"name":"a","generateName":"","finalizers":[]}`,
		`null`, `{}`, `[]`,
	} {
		f.Add([]byte(`{"apiVersion":"demo.example.com/v1alpha1","kind":"Widget","metadata":` + metadata +
			`,"spec":{"tmpl":{"apiVersion":"v1","kind":"Pod","metadata":` + metadata + `}}}`))
	}
	crd := readCRD(f, "crd.etcd")
	f.Fuzz(func(t *testing.T, data []byte) {
		obj, err := tryObject(data)
		if err != nil {
			t.Skip()
		}
		requireSame(t, crd, obj)
	})
}

// generator returns schemas and objects that often fit each other.
type generator struct{ *rand.Rand }

func (g generator) one(of ...any) any { return of[g.IntN(len(of))] }

func (g generator) crd() []byte {
	versions := []any{
		map[string]any{"name": "v1", "served": true, "storage": false,
			"schema": map[string]any{"openAPIV3Schema": g.root()}},
		map[string]any{"name": "v2", "served": true, "storage": true,
			"schema": map[string]any{"openAPIV3Schema": g.root()}},
	}
	spec := map[string]any{
		"group": "example.com", "scope": "Cluster", "names": map[string]any{"plural": "things", "kind": "Thing"},
		"versions": versions, "preserveUnknownFields": g.IntN(6) == 0,
	}
	data, err := json.Marshal(map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1beta1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "things.example.com"}, "spec": spec,
	})
	if err != nil {
		panic(err)
	}
	return data
}

func (g generator) root() map[string]any {
	properties := map[string]any{"spec": g.schema(3), "status": g.schema(2)}
	if g.IntN(3) == 0 {
		properties["metadata"] = map[string]any{"type": "object"}
	}
	return map[string]any{"type": "object", "properties": properties}
}

func (g generator) schema(depth int) map[string]any {
	kind := g.IntN(8)
	s := map[string]any{}
	switch {
	case depth == 0 || kind == 0:
		s["type"] = g.one("string", "integer", "boolean", "number")
	case kind == 1:
		s["x-kubernetes-int-or-string"] = true
	case kind == 2:
		s["type"], s["items"] = "array", g.schema(depth-1)
	case kind == 3:
		s["type"], s["additionalProperties"] = "object", g.one(true, g.schema(depth-1))
	default:
		properties := map[string]any{}
		for range g.IntN(4) {
			properties[g.one("a", "b", "c", "d").(string)] = g.schema(depth - 1)
		}
		s["type"], s["properties"] = "object", properties
		if embedded := g.IntN(6) == 0; embedded || g.IntN(6) == 0 {
			s["x-kubernetes-preserve-unknown-fields"], s["x-kubernetes-embedded-resource"] = true, embedded
		}
	}
	if g.IntN(4) == 0 {
		s["nullable"] = true
	}
	if g.IntN(5) == 0 {
		s["default"] = g.one("x", 7, map[string]any{}, map[string]any{"a": nil, "b": "y"},
			[]any{map[string]any{"c": 1}}, nil)
	}
	return s
}

func (g generator) object() map[string]any {
	obj := map[string]any{
		"apiVersion": g.one("example.com/v1", "example.com/v1", "example.com/v1", "example.com/v2", "example.com/v3"),
		"kind":       g.one("Thing", "Thing", "Thing", "Thing", "Other"),
		"metadata":   g.metadata(),
	}
	for _, name := range []string{"spec", "status", "extra"} {
		if name == "extra" && g.IntN(8) > 0 || g.IntN(4) == 0 {
			continue
		}
		obj[name] = g.value(3)
	}
	return obj
}

func (g generator) value(depth int) any {
	switch kind := g.IntN(9); {
	case depth == 0 || kind < 2:
		return g.one("<&>\u2028", "", int64(9007199254740993), 1.5, true, nil, "x", int64(0))
	case kind == 2:
		list := []any{}
		for range g.IntN(3) {
			list = append(list, g.value(depth-1))
		}
		return list
	case kind == 3:
		return map[string]any{"apiVersion": g.one("v1", int64(1)), "kind": "Pod", "metadata": g.metadata(),
			"a": g.value(depth - 1)}
	default:
		out := map[string]any{}
		for range g.IntN(4) {
			out[g.one("a", "b", "c", "d", "d", "metadata").(string)] = g.value(depth - 1)
		}
		return out
	}
}

func (g generator) metadata() any {
	if g.IntN(12) == 0 {
		return g.one(nil, map[string]any{}, map[string]any{"labels": nil}, map[string]any{"name": int64(5)},
			map[string]any{"junk": "x", "generation": int64(2)})
	}
	out := map[string]any{"name": "x", "generation": int64(1 + g.IntN(2)), "creationTimestamp": "2026-01-02T03:04:05Z"}
	for name, value := range map[string]any{
		"labels": g.one(map[string]any{"a": "b"}, map[string]any{"a": ""}, map[string]any{},
			map[string]any{"a": int64(1)}, nil),
		"creationTimestamp": g.one(nil, "2026-01-02T03:04:05+01:00", "2026-01-02T03:04:05.1Z", "yesterday",
			"0001-01-01T00:00:00Z"),
		"generation": g.one(int64(0), 1.5, nil, "1"),
		"finalizers": g.one([]any{"a"}, []any{}, []any{""}, []any{int64(1)}),
		"ownerReferences": g.one([]any{map[string]any{"apiVersion": "v1", "kind": "K", "name": "n", "uid": "u",
			"controller": g.one(true, false, nil)}},
			[]any{map[string]any{"uid": "u"}}, []any{map[string]any{"apiVersion": "", "kind": "", "name": "", "uid": "",
				"more": "x"}}, []any{nil}),
		"managedFields": g.one([]any{map[string]any{"manager": "m", "operation": "Update", "fieldsType": "FieldsV1",
			"fieldsV1": map[string]any{"f:spec": map[string]any{}}}},
			[]any{map[string]any{"manager": "", "time": "2026-01-02T03:04:05Z"}},
			[]any{map[string]any{"fieldsV1": map[string]any{"f:a": 3.0}}}, []any{map[string]any{}}),
		"resourceVersion": g.one("5", "", int64(5)),
		"selfLink":        "/x",
		"clusterName":     "c",
		"namespace":       g.one("n", ""),
	} {
		if g.IntN(24) == 0 {
			out[name] = value
		}
	}
	return out
}

// TestMetadataOfUpdate checks that a server's rules for updates forbid no more fields of unchanged
// metadata than its rules for objects.
func TestMetadataOfUpdate(t *testing.T) {
	v := version(t, readCRD(t, "crd.etcd"), "v1alpha1")
	found := 0
	for _, part := range []string{
		`"name":""`, `"name":"a/b"`, `"generateName":"a/b"`, `"namespace":""`, `"namespace":"A B"`, `"uid":""`,
		`"generation":-1`, `"labels":{"a b":"c"}`,
		`"labels":{"a":"not allowed"}`, `"annotations":{"a b":"c"}`, `"finalizers":["a b"]`,
		`"finalizers":["orphan","foregroundDeletion"]`,
		`"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":""}]`, `"creationTimestamp":"never"`,
		`"managedFields":[{"operation":"Odd"}]`,
		`"deletionTimestamp":"2026-01-02T03:04:05Z","finalizers":["a.example/b"]`, `"deletionGracePeriodSeconds":-1`,
		`"labels":{}`,
	} {
		obj := object(t, `{"metadata":{"name":"a","namespace":"ns","uid":"u",`+part+`}}`)
		is := v.validateMeta(obj)
		meta := maps.Clone(obj["metadata"].(map[string]any))
		delete(meta, "managedFields")
		meta["resourceVersion"] = "1" // set by the store
		same := &unstructured.Unstructured{Object: map[string]any{"metadata": meta}}
		all := append(slices.Clone(is), metavalidation.ValidateObjectMetaAccessorUpdate(same, same,
			field.NewPath("metadata"))...)
		require.Equal(t, Fields(is), Fields(all), part)
		found += min(len(is), 1)
	}
	require.Greater(t, found, 9)
}
