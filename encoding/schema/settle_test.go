package schema

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Each half is what a server's read and write do; together they are Settle.
func TestBeginFinish(t *testing.T) {
	crd := readCRD(t, "crd.etcd")
	for _, name := range append(crNames(t), "elide", "untouched") {
		for mode, suffix := range map[Mode]string{Pure: ".pure", Settled: ".settled"} {
			if mode == Pure && (name == "elide" || name == "untouched") {
				continue // were recorded settled only
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

				dropped, err := crd.Settle(object(t, string(readFile(t, "cr/"+name+".before"))))
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
		require.ErrorIs(t, err, ErrNotStorageVersion)
	}
	_, err := crd.Finish(object(t, `{"apiVersion":"demo.example.com/v1beta1","kind":"Widget","metadata":{"labels":{"a":5}}}`), Settled)
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
		`,"conversion":{"strategy":"Webhook","webhookClientConfig":{"url":"https://localhost/convert"},"conversionReviewVersions":["v1"]}`))
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
	stored := object(t, `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"x","resourceVersion":"5","selfLink":"/x"},"spec":{"a":1}}`)
	_, err := webhook.Settle(stored)
	require.NoError(t, err, "already there")
	require.Equal(t, map[string]any{"name": "x", "generation": int64(1)}, stored["metadata"])
}

func TestServed(t *testing.T) {
	for versions, preferred := range map[string]string{
		`{"name":"v1beta1","served":true,"storage":true},{"name":"v1alpha2","served":true}`:                                                 "v1beta1",
		`{"name":"v1","served":true},{"name":"v10","served":true},{"name":"v2","served":true},{"name":"v11","served":false,"storage":true}`: "v10",
		`{"name":"v1beta2","served":true},{"name":"v1beta10","served":true},{"name":"v2alpha1","served":true,"storage":true}`:               "v1beta10",
		`{"name":"zeta","served":true,"storage":true},{"name":"alpha","served":true}`:                                                       "alpha",
		`{"name":"v1","served":false,"storage":true}`:                                                                                       "",
	} {
		require.Equal(t, preferred, parseCRD(t, crdOf(versions, "")).PreferredVersion(), versions)
	}
	crd := parseCRD(t, crdOf(`{"name":"v1","served":true},{"name":"v2","served":false,"storage":true}`, ""))
	require.True(t, crd.Served("v1"))
	require.False(t, crd.Served("v2"))
	require.False(t, crd.Served("v3"))
}
