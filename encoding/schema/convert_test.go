package schema

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/encoding"
)

// crNames returns the recorded objects rewritten by a server.
func crNames(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/cr/*.after")
	require.NoError(t, err)
	require.Len(t, files, 8)
	for i, file := range files {
		files[i] = strings.TrimSuffix(filepath.Base(file), ".after")
	}
	return files
}

func tryObject(data []byte) (map[string]any, error) {
	obj, _, err := encoding.DecodeObject(data)
	return obj, err
}

// reencode makes one no-op write like a server: decode, default, convert, encode.
func reencode(t *testing.T, crd *CRD, obj map[string]any, from, to string) {
	t.Helper()
	v := version(t, crd, from)
	_, err := v.Coerce(obj)
	require.NoError(t, err)
	require.NoError(t, v.Default(obj))
	_, err = crd.Convert(obj, to)
	require.NoError(t, err)
	meta := obj["metadata"].(map[string]any)
	delete(meta, "resourceVersion")
	delete(meta, "selfLink")
}

// A real server's rewrites of objects stored at v1alpha1 equal ours, byte for byte. The name of a
// request tells the kind of rewrite: without the new version's defaults (an apply without a change,
// a status write, a PUT at the old version) or with them.
func TestRecordedRewrites(t *testing.T) {
	crd := readCRD(t, "crd.etcd")
	withoutDefaults := map[string]bool{"ssa-empty": true, "status-put": true, "put-alpha": true}
	for _, name := range crNames(t) {
		t.Run(name, func(t *testing.T) {
			obj := object(t, string(readFile(t, "cr/"+name+".before")))
			reencode(t, crd, obj, "v1alpha1", "v1beta1")
			require.Equal(t, string(readFile(t, "cr/"+name+".pure")), text(t, obj))

			if !withoutDefaults[name] {
				require.NoError(t, version(t, crd, "v1beta1").Default(obj))
				meta := obj["metadata"].(map[string]any)
				meta["generation"] = meta["generation"].(int64) + 1
				require.Equal(t, string(readFile(t, "cr/"+name+".put")), text(t, obj))
			}
			require.Equal(t, string(readFile(t, "cr/"+name+".after")), text(t, obj), "what the server stored")
		})
	}
}

func TestRewrite(t *testing.T) {
	crd := readCRD(t, "crd.etcd")
	for _, name := range append(crNames(t), "elide", "untouched") {
		t.Run(name, func(t *testing.T) {
			obj := object(t, string(readFile(t, "cr/"+name+".before")))
			_, err := crd.Rewrite(obj)
			require.NoError(t, err)
			settled := text(t, obj)
			require.Equal(t, string(readFile(t, "cr/"+name+".settled")), settled)

			dropped, err := crd.Rewrite(obj)
			require.NoError(t, err)
			require.Empty(t, dropped)
			require.Equal(t, settled, text(t, obj), "settled is a fixpoint")
		})
	}
}

func TestRewriteNamesDroppedFields(t *testing.T) {
	crd := readCRD(t, "crd.etcd")
	dropped, err := crd.Rewrite(object(t, string(readFile(t, "cr/raw1.before"))))
	require.NoError(t, err)
	require.Equal(t, []string{
		"metadata.annotations", "metadata.clusterName", "metadata.deletionGracePeriodSeconds", "metadata.junk",
		"spec.unknownField",
	}, dropped)

	dropped, err = crd.Rewrite(object(t, string(readFile(t, "cr/untouched.before"))))
	require.NoError(t, err)
	require.Equal(t, []string{"spec.oldOnly"}, dropped, "a field that only the old version has")
}

func TestConvert(t *testing.T) {
	crd := readCRD(t, "crd.etcd")
	obj := object(t, `{`+widgetMeta+`,"spec":{"oldOnly":"bye","size":3}}`)
	dropped, err := crd.Convert(obj, "v1beta1")
	require.NoError(t, err)
	require.Equal(t, []string{"spec.oldOnly"}, dropped)
	require.Equal(t, "demo.example.com/v1beta1", obj["apiVersion"])
	require.Equal(t, map[string]any{"size": int64(3)}, obj["spec"], "no defaults")

	for _, apiVersion := range []string{"demo.example.com/v9", "v1alpha1", "example.com/v1alpha1", ""} {
		_, err := crd.Convert(map[string]any{"apiVersion": apiVersion, "kind": "Widget"}, "v1beta1")
		require.ErrorIs(t, err, ErrNoVersion, apiVersion)
		_, err = crd.Rewrite(map[string]any{"apiVersion": apiVersion, "kind": "Widget"})
		require.ErrorIs(t, err, ErrNoVersion, apiVersion)
	}
	_, err = crd.Convert(obj, "v9")
	require.ErrorIs(t, err, ErrNoVersion)

	bad := object(t, `{"apiVersion":"demo.example.com/v1alpha1","kind":"Widget","metadata":{"labels":{"a":5}}}`)
	_, err = crd.Convert(bad, "v1beta1")
	require.Error(t, err, "malformed metadata, as after a webhook")
}

func TestConvertNeedsWebhook(t *testing.T) {
	crd := parseCRD(t, crdOf(`{"name":"v1","served":true,"storage":true},{"name":"v2","served":true,"storage":false}`,
		`,"conversion":{"strategy":"Webhook","webhookClientConfig":{"url":"https://localhost/convert"},`+
			`"conversionReviewVersions":["v1"]}`))
	obj := object(t, `{"apiVersion":"example.com/v2","kind":"Thing","metadata":{"name":"x","generation":1}}`)
	_, err := crd.Convert(obj, "v1")
	require.ErrorIs(t, err, ErrNeedsWebhook)
	require.Equal(t, "example.com/v2", obj["apiVersion"])
	_, err = crd.Convert(obj, "v2")
	require.NoError(t, err, "no conversion, no webhook")
	_, err = crd.Rewrite(obj)
	require.ErrorIs(t, err, ErrNeedsWebhook)
}

// FuzzRewriteTwice checks that a second Rewrite changes nothing.
func FuzzRewriteTwice(f *testing.F) {
	for _, name := range crNames(f) {
		f.Add(readFile(f, "cr/"+name+".before"))
	}
	crd := readCRD(f, "crd.etcd")
	f.Fuzz(func(t *testing.T, data []byte) {
		obj, err := tryObject(data)
		if err != nil {
			t.Skip()
		}
		if _, err := crd.Rewrite(obj); err != nil {
			return
		}
		once := text(t, obj)
		dropped, err := crd.Rewrite(obj)
		require.NoError(t, err)
		require.Empty(t, dropped)
		require.Equal(t, once, text(t, obj))
	})
}
