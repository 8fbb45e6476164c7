package schema

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// strictSchema has fields with special checks by a server: maps and sets in lists, required fields,
// rules, embedded resources.
const strictSchema = `{"type":"object","required":["spec"],%s"properties":{%s"spec":{"type":"object","required":["must"],"properties":{
"must":{"type":"string","maxLength":5},"touch":{"type":"string"},"n":{"type":"integer","minimum":1},"maybe":{"type":"string","nullable":true},"kind":{"type":"string","enum":["a","b"]},
"map":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"port":{"type":"integer"},"deep":{"type":"object","required":["x"],"properties":{"x":{"type":"string"}}}}}},
"two":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name","proto"],"items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"proto":{"type":"string","default":"TCP"},"port":{"type":"integer","maximum":9}}}},
"set":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string","maxLength":5}},
"plain":{"type":"array","maxItems":2,"items":{"type":"object","required":["x"],"properties":{"x":{"type":"string"}}}},
"atomic":{"type":"object","x-kubernetes-map-type":"atomic","required":["x"],"properties":{"x":{"type":"string"}}},
"labels":{"type":"object","additionalProperties":{"type":"string","maxLength":5}},
"free":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"required":["x"],"properties":{"x":{"type":"string"}}},
"pod":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true},
"any":{"x-kubernetes-int-or-string":true},
"ruled":{"type":"object","properties":{"lo":{"type":"integer"},"hi":{"type":"integer"}},"x-kubernetes-validations":[{"rule":"!has(self.lo) || !has(self.hi) || self.lo <= self.hi"}]}
}},"status":{"type":"object","properties":{"replicas":{"type":"integer"},"domains":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"up":{"type":"boolean"}}}}}}}}`

// writableCRD returns a CRD of kind Thing; all its objects are at v2, the storage version.
func writableCRD(root, declared, subresources string) string {
	schema := fmt.Sprintf(strings.ReplaceAll(strictSchema, "\n", ""), root, declared)
	return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things.example.com"},
"spec":{"group":"example.com","scope":"Cluster","names":{"plural":"things","singular":"thing","kind":"Thing","listKind":"ThingList"},"versions":[
{"name":"v1","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}},
{"name":"v2","served":true,"storage":true` + subresources + `,"schema":{"openAPIV3Schema":` + schema + `}}]}}`
}

// invalidGenerator returns objects that often break a rule.
type invalidGenerator struct{ generator }

func (g invalidGenerator) some(of ...string) any { return g.one(toAny(of)...) }

func toAny(of []string) (out []any) {
	for _, s := range of {
		out = append(out, s)
	}
	return out
}

func (g invalidGenerator) items(item func() map[string]any) any {
	if g.IntN(25) == 0 {
		return g.one("x", nil, map[string]any{})
	}
	list := []any{}
	for range g.IntN(4) {
		if g.IntN(25) == 0 {
			list = append(list, g.one(nil, "x", []any{}))
			continue
		}
		list = append(list, item())
	}
	return list
}

func (g invalidGenerator) keyed(keys ...string) func() map[string]any {
	return func() map[string]any {
		out := map[string]any{}
		for _, key := range keys {
			switch g.IntN(12) {
			case 0:
			case 1:
				out[key] = g.one(nil, int64(7), "")
			default:
				out[key] = g.some("a", "b", "c", "d", "e", "f")
			}
		}
		if g.IntN(2) == 0 {
			out["port"] = g.one(int64(1), int64(8), int64(80), "x")
		}
		if g.IntN(3) == 0 {
			out["deep"] = g.one(map[string]any{"x": "y"}, map[string]any{"x": "y"}, map[string]any{})
		}
		return out
	}
}

// field returns a value of a field of spec that the schema mostly allows.
func (g invalidGenerator) field(name string) any {
	good := map[string][]any{
		"must": {"x"}, "touch": {"x"}, "n": {int64(1)}, "maybe": {nil, "x"}, "kind": {"a"},
		"labels": {map[string]any{"a": "b"}}, "any": {int64(1), "1"},
		"set": {[]any{"a", "b"}}, "plain": {[]any{map[string]any{"x": "y"}}}, "atomic": {map[string]any{"x": "y"}},
		"free":  {map[string]any{"x": "y"}, map[string]any{"x": "y", "more": []any{nil}}},
		"pod":   {map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "p"}}},
		"ruled": {map[string]any{"lo": int64(1), "hi": int64(2)}},
	}
	bad := map[string][]any{
		"must": {"longer than that", int64(5)}, "n": {int64(0), "x", 1.5}, "kind": {"c"},
		"labels": {map[string]any{"a": "longer than that"}, map[string]any{"a": int64(1)}}, "any": {true},
		"set": {[]any{"a", "a"}, []any{"longer than that"}, []any{nil}}, "plain": {[]any{map[string]any{}},
			[]any{map[string]any{"x": "y"}, map[string]any{"x": "y"}, map[string]any{"x": "y"}}},
		"atomic": {map[string]any{}, map[string]any{"x": int64(1)}},
		"free":   {map[string]any{}, map[string]any{"more": "x"}},
		"pod": {map[string]any{}, map[string]any{"apiVersion": "v1", "kind": "Pod",
			"metadata": map[string]any{"labels": map[string]any{"a b": "c"}}}},
		"ruled": {map[string]any{"lo": int64(3), "hi": int64(2)}},
	}
	switch name {
	case "map":
		return g.items(g.keyed("name"))
	case "two":
		return g.items(g.keyed("name", "proto"))
	}
	if len(bad[name]) > 0 && g.IntN(14) == 0 {
		return g.one(bad[name]...)
	}
	return g.one(good[name]...)
}

func (g invalidGenerator) thing(name string) map[string]any {
	spec := map[string]any{}
	for _, field := range []string{"must", "touch", "n", "maybe", "kind", "map", "two", "set", "plain", "atomic",
		"labels", "free", "pod", "any", "ruled"} {
		if g.IntN(3) == 0 || field == "must" && g.IntN(12) > 0 {
			spec[field] = g.field(field)
		}
	}
	meta := map[string]any{"creationTimestamp": "2026-01-02T03:04:05Z", "generation": int64(1), "name": name,
		"uid": "11111111-2222-3333-4444-" + fmt.Sprintf("%012s", name[1:])}
	if g.IntN(30) == 0 {
		meta["labels"] = map[string]any{"a": g.one("b", "not allowed")}
	}
	entry := func(version string) map[string]any {
		return map[string]any{"apiVersion": version, "fieldsType": "FieldsV1",
			"fieldsV1": map[string]any{"f:spec": map[string]any{".": map[string]any{}, "f:must": map[string]any{}}},
			"manager":  "m", "operation": "Update", "time": "2026-01-02T03:04:05Z"}
	}
	switch g.IntN(5) {
	case 0, 1:
		meta["managedFields"] = []any{entry("example.com/v2")}
	case 2:
		one := entry("example.com/v2")
		switch g.IntN(7) {
		case 0:
			one["fieldsType"] = "Other"
		case 1:
			one["operation"] = "Replace"
		case 2:
			one["fieldsV1"] = map[string]any{"x:odd": map[string]any{}}
		case 3:
			one["fieldsV1"] = map[string]any{}
		case 4:
			delete(one, "fieldsV1")
		case 5:
			one["fieldsV1"] = map[string]any{"f:metadata": map[string]any{"f:name": map[string]any{}},
				"f:gone": map[string]any{}}
		case 6:
			one["apiVersion"] = ""
		}
		meta["managedFields"] = []any{one}
	case 3:
		meta["managedFields"] = []any{entry("example.com/v1")}
	case 4:
		list := []any{}
		for range g.IntN(14) {
			one := entry(g.some("example.com/v2", "example.com/v2", "example.com/v1", "example.com/v0").(string))
			one["manager"], one["operation"], one["time"] = g.some("m", "n", "o", "p", ""), g.some("Apply", "Update"),
				g.some("2026-01-02T03:04:05Z", "2026-01-01T03:04:05Z", "2025-01-01T03:04:05Z")
			one["fieldsV1"] = g.one(map[string]any{"f:spec": map[string]any{"f:must": map[string]any{}}},
				map[string]any{"f:spec": map[string]any{"f:atomic": map[string]any{"f:x": map[string]any{}}}},
				map[string]any{"f:spec": map[string]any{"f:map": map[string]any{`k:{"name":"a"}`: map[string]any{
					".": map[string]any{}}}}}, map[string]any{"f:gone": map[string]any{}}, map[string]any{})
			if g.IntN(4) == 0 {
				one["subresource"] = "status"
			}
			list = append(list, one)
		}
		meta["managedFields"] = list
	}
	obj := map[string]any{"apiVersion": g.some("example.com/v2", "example.com/v1"), "kind": "Thing",
		"metadata": meta, "spec": spec}
	if g.IntN(20) == 0 {
		delete(obj, "spec")
	}
	if g.IntN(3) == 0 {
		obj["status"] = map[string]any{"domains": g.items(g.keyed("name")),
			"replicas": g.one(int64(1), int64(1), int64(-1))}
	}
	return obj
}

// verdictOf returns the kind of a server's error, or "" for success.
func verdictOf(err error) string {
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return ""
	case apierrors.IsInvalid(err):
		return "invalid"
	case slices.Contains([]bool{apierrors.IsNotFound(err), apierrors.IsConflict(err)}, true):
		return "unexpected: " + err.Error()
	}
	_ = status
	return "failed: " + err.Error()
}

// TestWritableAsAServer puts settled objects into etcd and compares the server's refusals of writes
// with ours, for each object and each write.
func TestWritableAsAServer(t *testing.T) {
	const declared = `"apiVersion":{"type":"string"},"kind":{"type":"string"},"metadata":{"type":"object"},`
	for name, crd := range map[string]string{
		"declared": writableCRD("", declared, ""),
		"undeclared": writableCRD("", "",
			`,"subresources":{"status":{},"scale":{"specReplicasPath":".spec.n",`+
				`"statusReplicasPath":".status.replicas"}}`),
		"ruled": writableCRD(
			`"x-kubernetes-validations":[{"rule":"!has(self.spec) || !has(self.spec.n) || self.spec.n > 0"}],`,
			declared, ""),
		"compared": writableCRD(
			`"x-kubernetes-validations":[{"rule":"!has(self.spec) || !has(self.spec.n) || !has(oldSelf.spec) || `+
				`!has(oldSelf.spec.n) || self.spec.n > oldSelf.spec.n"}],`, declared, ""),
		"preserved": writableCRD(`"x-kubernetes-preserve-unknown-fields":true,`, declared,
			`,"subresources":{"status":{}}`),
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, parseCRD(t, crd))
			g := invalidGenerator{generator{rand.New(rand.NewPCG(uint64(len(name)), 9))}}
			counts := map[string]int{}
			for i := range 120 {
				obj := g.thing(fmt.Sprintf("o%d", i))
				if _, err := l.crd.Rewrite(obj); err != nil {
					continue
				}
				_, _, err := l.crd.RelabelManagedFields(obj, false)
				require.NoError(t, err)
				_, err = l.crd.RewriteManagedFields(obj)
				require.NoError(t, err)
				l.requireSameWrites(obj, counts)
			}
			t.Log(counts)
			require.Equal(t, name == "compared", counts["valid, and refused"] > 0)
		})
	}
}

// requireSameWrites tries writes on one object.
func (l *lab) requireSameWrites(obj map[string]any, counts map[string]int) {
	t, ctx := l.t, l.t.Context()
	v := version(t, l.crd, "v2")
	name := (&unstructured.Unstructured{Object: obj}).GetName()
	l.store(obj)
	before := text(t, obj)
	live, err := l.things().Get(ctx, name, metav1.GetOptions{})
	require.NoError(t, err, before)
	read := live.DeepCopy().Object
	dry := metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: "idle"}

	update := func(change func(u *unstructured.Unstructured)) (server string, ours string) {
		changed := live.DeepCopy()
		change(changed)
		mine := changed.DeepCopy().Object
		v.Prune(mine)
		v.Default(mine)
		if errs := v.validateUpdate(ctx, mine, read); len(errs) > 0 {
			ours = "invalid"
		}
		_, err := l.things().Update(ctx, changed, dry)
		return verdictOf(err), ours
	}
	server, ours := update(func(*unstructured.Unstructured) {})
	counts["no-op "+server]++
	assert.Equal(t, server, ours, "no-op of %s", before)

	server, ours = update(func(u *unstructured.Unstructured) { u.SetAnnotations(map[string]string{"a": "b"}) })
	counts["annotate "+server]++
	assert.Equal(t, server, ours, "annotation of %s", before)
	refused := v.Refused(ctx, obj)
	assert.Equal(t, server == "invalid", len(refused) > 0, "annotation of %s: %v", before, refused)
	if valid := len(v.Validate(ctx, obj)) == 0; valid {
		assert.Equal(t, Fields(refused), Fields(v.RefusedValid(ctx, obj)), before)
		if len(refused) > 0 && len(v.validateMeta(obj)) == 0 {
			counts["valid, and refused"]++
		}
	}

	server, ours = update(func(u *unstructured.Unstructured) {
		if spec, ok := u.Object["spec"].(map[string]any); ok {
			spec["touch"] = "touched"
		}
	})
	counts["touch "+server]++
	assert.Equal(t, server, ours, "field of %s", before)

	patch := []byte(`{"apiVersion":"example.com/v2","kind":"Thing","metadata":{"name":"` + name + `"}}`)
	_, err = l.things().Patch(ctx, name, types.ApplyPatchType, patch,
		metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: "prober"})
	server = verdictOf(err)
	counts["apply "+strings.SplitN(server, ":", 2)[0]]++
	applyErr := l.crd.CheckApply(obj)
	assert.Equal(t, strings.HasPrefix(server, "failed"), applyErr != nil, "apply of %s: server %s, ours %v", before,
		server, applyErr)
	_, err = l.things().Update(ctx, live, metav1.UpdateOptions{FieldManager: "idle"})
	kept, getErr := l.etcd.Client.Get(ctx, l.key(name))
	require.NoError(t, getErr)
	after := string(kept.Kvs[0].Value)
	if err == nil {
		counts["settled"]++
		assert.Equal(t, before, after)
	}
}
