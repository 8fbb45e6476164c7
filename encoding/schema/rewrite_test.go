package schema

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Begin is a server's read and Finish its write; together they equal Rewrite.
func TestBeginFinish(t *testing.T) {
	crd := readCRD(t, "crd.etcd")
	for _, name := range append(crNames(t), "elide", "untouched") {
		for mode, suffix := range map[Mode]string{Pure: ".pure", Settled: ".settled"} {
			if mode == Pure && (name == "elide" || name == "untouched") {
				continue // recorded as .settled only
			}
			t.Run(name+suffix, func(t *testing.T) {
				obj := object(t, string(readFile(t, "cr/"+name+".before")))
				pruned, err := crd.Begin(obj)
				require.NoError(t, err)
				require.False(t, crd.NeedsWebhook(obj))
				crd.Relabel(obj)
				lost, err := crd.Finish(obj, mode)
				require.NoError(t, err)
				require.Equal(t, string(readFile(t, "cr/"+name+suffix)), text(t, obj))

				dropped, err := crd.Rewrite(object(t, string(readFile(t, "cr/"+name+".before"))))
				require.NoError(t, err)
				require.Equal(t, dropped, append(pruned, lost...))
			})
		}
	}
}

func TestFinishRefuses(t *testing.T) {
	crd := readCRD(t, "crd.etcd")
	for _, apiVersion := range []any{"demo.example.com/v1alpha1", "demo.example.com/v9", "v1beta1", "", nil, 5} {
		obj := map[string]any{"apiVersion": apiVersion, "kind": "Widget"}
		_, err := crd.Finish(obj, Pure)
		require.ErrorIs(t, err, errNotStorageVersion)
	}
	_, err := crd.Finish(object(t,
		`{"apiVersion":"demo.example.com/v1beta1","kind":"Widget","metadata":{"labels":{"a":5}}}`), Settled)
	require.Error(t, err, "malformed metadata, as after a webhook")
	none := parseCRD(t, crdOf(`{"name":"v1","served":true,"storage":false}`, ""))
	_, err = none.Finish(map[string]any{"apiVersion": "example.com/v1", "kind": "Thing"}, Pure)
	require.ErrorIs(t, err, ErrNoVersion, "no storage version")
	_, err = crd.Begin(object(t, `{"apiVersion":"demo.example.com/v9","kind":"Widget"}`))
	require.ErrorIs(t, err, ErrNoVersion)
	_, err = crd.Begin(object(t, `{"apiVersion":"demo.example.com/v1alpha1","kind":[]}`))
	require.Error(t, err)
}

func TestNeedsWebhook(t *testing.T) {
	const versions = `{"name":"v1","served":true,"storage":true},{"name":"v2","served":true,"storage":false}`
	webhook := parseCRD(t, crdOf(versions,
		`,"conversion":{"strategy":"Webhook","webhookClientConfig":{"url":"https://localhost/convert"},`+
			`"conversionReviewVersions":["v1"]}`))
	none := parseCRD(t, crdOf(versions, ""))
	for _, c := range []struct {
		apiVersion string
		webhook    bool
	}{{"example.com/v1", false}, {"example.com/v2", true}, {"example.com/v9", true}} {
		obj := map[string]any{"apiVersion": c.apiVersion, "kind": "Thing"}
		require.Equal(t, c.webhook, webhook.NeedsWebhook(obj))
		require.False(t, none.NeedsWebhook(obj))
		webhook.Relabel(obj)
		require.Equal(t, c.apiVersion, obj["apiVersion"], "only the webhook may")
		none.Relabel(obj)
		require.Equal(t, "example.com/v1", obj["apiVersion"])
	}
	stored := object(t,
		`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"x","resourceVersion":"5","selfLink":"/x"},`+
			`"spec":{"a":1}}`)
	_, err := webhook.Rewrite(stored)
	require.NoError(t, err, "at the storage version")
	require.Equal(t, map[string]any{"name": "x", "generation": int64(1)}, stored["metadata"])
}

func TestServed(t *testing.T) {
	for versions, preferred := range map[string]string{
		`{"name":"v1beta1","served":true,"storage":true},{"name":"v1alpha2",` +
			`"served":true}`: "v1beta1",
		`{"name":"v1","served":true},{"name":"v10","served":true},{"name":"v2","served":true},{"name":"v11",` +
			`"served":false,"storage":true}`: "v10",
		`{"name":"v1beta2","served":true},{"name":"v1beta10","served":true},{"name":"v2alpha1","served":true,` +
			`"storage":true}`: "v1beta10",
		`{"name":"zeta","served":true,"storage":true},{"name":"alpha",` +
			`"served":true}`: "alpha",
		`{"name":"v1","served":false,` +
			`"storage":true}`: "",
	} {
		require.Equal(t, preferred, parseCRD(t, crdOf(versions, "")).PreferredVersion(), versions)
	}
	crd := parseCRD(t, crdOf(`{"name":"v1","served":true},{"name":"v2","served":false,"storage":true}`, ""))
	require.True(t, crd.Served("v1"))
	require.False(t, crd.Served("v2"))
	require.False(t, crd.Served("v3"))
}

const twice = `{"name":"v2","served":true,"storage":true},{"name":"v1","served":true,"storage":false}`

// Rewrite of objects at v1 with CRDs of all ages and forms.
func TestRewriteShapes(t *testing.T) {
	const schema = `{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"n":{"type":"string","nullable":true},
"d":{"type":"string","default":"<&>"},"free":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
"tmpl":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}}}}}}`
	hoisted := parseCRD(t, crdOf(twice, notPreserving+`,"validation":`+schema))
	keeping := parseCRD(t, crdOf(twice, `,"validation":`+schema)) // absent: true
	bare := parseCRD(t, crdOf(twice, notPreserving))
	for _, c := range []struct {
		name          string
		crd           *CRD
		before, after string // the fields after kind
		dropped       []string
	}{
		{"hoisted schema", hoisted, `"metadata":{"generation":1,"name":"x"},"spec":{"a":1,"d":null,"n":null}`,
			`"metadata":{"generation":1,"name":"x"},"spec":{"d":"\u003c\u0026\u003e","n":null}`, []string{"spec.a"}},
		{"big ints and floats", hoisted,
			`"metadata":{"generation":1},"spec":{"free":{"big":9007199254740993,"e":1e3,"f":3.0,"r":1.50}}`,
			`"metadata":{"generation":1},"spec":{"d":"\u003c\u0026\u003e","free":{"big":9007199254740993,"e":1000,` +
				`"f":3,"r":1.5}}`, nil},
		{"HTML and line separators", hoisted,
			`"metadata":{"annotations":{"a":"<b> \u2028"},"generation":1},"spec":{"d":"\u2029é"}`,
			`"metadata":{"annotations":{"a":"\u003cb\u003e \u2028"},"generation":1},"spec":{"d":"\u2029é"}`, nil},
		{"malformed metadata", hoisted,
			`"metadata":{"finalizers":"none","generation":"1","labels":{"a":1},"name":"x","resourceVersion":"5",` +
				`"selfLink":"/x"},"spec":{"d":""}`,
			`"metadata":{"generation":1,"name":"x"},"spec":{"d":""}`,
			[]string{"metadata.finalizers", "metadata.labels"}},
		{"embedded resource", hoisted,
			`"metadata":{"generation":1},"spec":{"d":"","tmpl":{"apiVersion":"v1","kind":"Pod",` +
				`"metadata":{"creationTimestamp":null,"junk":1,"name":"p"},"x":null}}`,
			`"metadata":{"generation":1},"spec":{"d":"","tmpl":{"apiVersion":"v1","kind":"Pod",` +
				`"metadata":{"name":"p"},"x":null}}`, []string{"spec.tmpl.metadata.junk"}},
		{"unknown fields kept, defaults made", keeping, `"metadata":{"generation":1},"other":{"x":null},"spec":{"a":1}`,
			`"metadata":{"generation":1},"other":{"x":null},"spec":{"a":1,"d":"\u003c\u0026\u003e"}`, nil},
		{"unknown fields kept, embedded metadata not", keeping,
			`"metadata":{"generation":1},"spec":{"d":"","tmpl":{"metadata":{"junk":1}}}`,
			`"metadata":{"generation":1},"spec":{"d":"","tmpl":{"metadata":{}}}`, []string{"spec.tmpl.metadata.junk"}},
		{"no schema", bare, `"metadata":{"generation":1},"spec":{"a":1},"status":{}`, `"metadata":{"generation":1}`,
			[]string{"spec", "status"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			obj := object(t, `{"apiVersion":"example.com/v1","kind":"Thing",`+c.before+`}`)
			requireSame(t, c.crd, obj)
			dropped, err := c.crd.Rewrite(obj)
			require.NoError(t, err)
			require.Equal(t, c.dropped, dropped)
			require.Equal(t, `{"apiVersion":"example.com/v2","kind":"Thing",`+c.after+"}\n", text(t, obj))
			again, err := c.crd.Rewrite(obj)
			require.NoError(t, err)
			require.Empty(t, again)
			require.Equal(t, `{"apiVersion":"example.com/v2","kind":"Thing",`+c.after+"}\n", text(t, obj))
		})
	}
}
