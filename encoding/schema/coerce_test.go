package schema

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

const widgetMeta = `"apiVersion":"demo.example.com/v1alpha1","kind":"Widget","metadata":{"generation":1,"name":"x",` +
	`"namespace":"default"}`

func TestPrune(t *testing.T) {
	crd := readCRD(t, "crd.etcd")
	for _, c := range []struct {
		name, before, after string
		dropped             []string
	}{
		{"nothing to do", `{` + widgetMeta + `,"spec":{"size":3}}`, `{` + widgetMeta + `,"spec":{"size":3}}`, nil},
		{
			"unknown fields", `{` + widgetMeta +
				`,"spec":{"unknown":{"a":1},"list":[{"name":"a"},{"name":"b","z":1}]},"top":[]}`,
			`{` + widgetMeta + `,"spec":{"list":[{"name":"a"},{"name":"b"}]}}`,
			[]string{"spec.list[1].z", "spec.unknown", "top"},
		},
		{
			"nulls", `{` + widgetMeta +
				`,"spec":{"nul":null,"nonnull":null,"alphaDefault":null,"unknown":null,"free":{"x":null}}}`,
			`{` + widgetMeta + `,"spec":{"alphaDefault":null,"free":{"x":null},"nul":null}}`,
			[]string{"spec.nonnull=null", "spec.unknown=null"},
		},
		{
			"kept below preserve-unknown-fields", `{` + widgetMeta + `,"spec":{"free":{"a":[{"b":1}]}}}`,
			`{` + widgetMeta + `,"spec":{"free":{"a":[{"b":1}]}}}`, nil,
		},
		{
			"metadata of embedded resources",
			`{` + widgetMeta +
				`,"spec":{"tmpl":{"apiVersion":"v1","kind":7,"metadata":{"name":"p","bogus":1,` +
				`"creationTimestamp":null,"labels":{"a":5}},"spec":{"q":1}}}}`,
			`{` + widgetMeta + `,"spec":{"tmpl":{"apiVersion":"v1","metadata":{"name":"p"},"spec":{"q":1}}}}`,
			[]string{"spec.tmpl.kind", "spec.tmpl.metadata.bogus", "spec.tmpl.metadata.labels"},
		},
		{
			"malformed and unknown metadata",
			`{"apiVersion":"demo.example.com/v1alpha1","kind":"Widget","metadata":{"name":"x","clusterName":"c",` +
				`"labels":{},"annotations":{"bad":5},` +
				`"ownerReferences":[{"apiVersion":"v1","kind":"K","name":"n","uid":"u","extra":1}],` +
				`"creationTimestamp":null}}`,
			`{"apiVersion":"demo.example.com/v1alpha1","kind":"Widget","metadata":{"generation":1,"name":"x",` +
				`"ownerReferences":[{"apiVersion":"v1","kind":"K","name":"n","uid":"u"}]}}`,
			[]string{"metadata.annotations", "metadata.clusterName", "metadata.ownerReferences[0].extra"},
		},
		{
			"numbers", `{` + widgetMeta + `,"spec":{"big":9007199254740993,"ratio":1.50,"size":3.0,"free":{"e":1e3}}}`,
			`{` + widgetMeta + `,"spec":{"big":9007199254740993,"free":{"e":1000},"ratio":1.5,"size":3}}`, nil,
		},
		{
			"another kind is skipped",
			`{"apiVersion":"demo.example.com/v1alpha1","kind":"Gadget","metadata":{"name":"x"},"spec":{"unknown":1}}`,
			`{"apiVersion":"demo.example.com/v1alpha1","kind":"Gadget","metadata":{"name":"x"},"spec":{"unknown":1}}`,
			nil,
		},
		{
			"another group is skipped",
			`{"apiVersion":"v1alpha1","kind":"Widget","metadata":{"name":"x"},"spec":{"unknown":1}}`,
			`{"apiVersion":"v1alpha1","kind":"Widget","metadata":{"name":"x"},"spec":{"unknown":1}}`, nil,
		},
		{"no metadata", `{"apiVersion":"demo.example.com/v1alpha1","kind":"Widget"}`,
			`{"apiVersion":"demo.example.com/v1alpha1","kind":"Widget"}`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := version(t, crd, "v1alpha1")
			obj := object(t, c.before)
			dropped := v.Prune(obj)
			require.Equal(t, c.after+"\n", text(t, obj))
			require.Equal(t, c.dropped, dropped)
			require.Empty(t, v.Prune(obj), "twice drops nothing more")
			require.Equal(t, c.after+"\n", text(t, obj))
		})
	}
}

// Objects that no server can decode are reported by Coerce and Validate.
func TestUndecodable(t *testing.T) {
	v := version(t, readCRD(t, "crd.etcd"), "v1alpha1")
	for _, before := range []string{
		`{"apiVersion":"demo.example.com/v1alpha1","kind":["Widget"],"spec":{"unknown":1}}`,
		`{"apiVersion":{},"kind":"Widget","spec":{"unknown":1}}`,
		`{"apiVersion":"a/b/c","kind":"Widget","spec":{"unknown":1}}`,
		`{"apiVersion":"demo.example.com/v1alpha1","kind":"Widget","metadata":[],"spec":{"unknown":1}}`,
	} {
		obj := object(t, before)
		_, err := v.Coerce(obj)
		require.Error(t, err, before)
		require.Empty(t, v.Prune(obj))
		require.Equal(t, before+"\n", text(t, obj))
		require.NotEmpty(t, v.Validate(t.Context(), obj))
	}
}

func TestDefault(t *testing.T) {
	crd := readCRD(t, "crd.etcd")
	obj := object(t, `{`+widgetMeta+`,"spec":{"list":[{"name":"a"},{"v":1}]}}`)
	require.NoError(t, version(t, crd, "v1alpha1").Default(obj))
	require.Equal(t, `{`+widgetMeta+`,"spec":{"alphaDefault":"from-alpha","list":[{"name":"a","v":7},{"v":1}]}}`+"\n",
		text(t, obj))

	noSpec := object(t, `{`+widgetMeta+`}`)
	require.NoError(t, version(t, crd, "v1alpha1").Default(noSpec))
	require.NotContains(t, noSpec, "spec", "a default needs its parent")

	other := object(t, `{"apiVersion":"v1","kind":"Other","spec":{}}`)
	require.NoError(t, version(t, crd, "v1alpha1").Default(other))
	require.Empty(t, other["spec"])
}

// A default that is a map is copied for each object.
func TestDefaultsAreNotShared(t *testing.T) {
	v := thing(t,
		`{"type":"object","properties":{"spec":{"type":"object","default":{"a":"1"},`+
			`"properties":{"a":{"type":"string"}}}}}`)
	one := object(t, `{"apiVersion":"example.com/v1","kind":"Thing"}`)
	require.NoError(t, v.Default(one))
	one["spec"].(map[string]any)["a"] = "changed"
	two := object(t, `{"apiVersion":"example.com/v1","kind":"Thing"}`)
	require.NoError(t, v.Default(two))
	require.Equal(t, map[string]any{"a": "1"}, two["spec"])
}

// FuzzPruneTwice checks that a second prune drops nothing.
func FuzzPruneTwice(f *testing.F) {
	for _, name := range crNames(f) {
		f.Add(readFile(f, "cr/"+name+".before"))
	}
	crd := readCRD(f, "crd.etcd")
	f.Fuzz(func(t *testing.T, data []byte) {
		obj, err := tryObject(data)
		if err != nil {
			t.Skip()
		}
		for _, name := range []string{"v1alpha1", "v1beta1"} {
			v := version(t, crd, name)
			if _, err := v.Coerce(obj); err != nil {
				continue
			}
			once := text(t, obj)
			require.Empty(t, v.Prune(obj))
			require.Equal(t, once, text(t, obj))
			require.NoError(t, v.Default(obj))
			defaulted := text(t, obj)
			require.NoError(t, v.Default(obj))
			require.Equal(t, defaulted, text(t, obj))
			require.True(t, slices.IsSorted(v.Prune(obj)))
			_ = v.Validate(t.Context(), obj)
		}
	})
}
