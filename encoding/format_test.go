package encoding_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
)

func stored(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return data
}

func TestDetect(t *testing.T) {
	for _, tc := range []struct {
		data   string
		format encoding.Format
		name   string
	}{
		{"", encoding.FormatUnknown, "unknown"},
		{"12345", encoding.FormatUnknown, "unknown"}, // compact_rev_key
		{"k8s", encoding.FormatUnknown, "unknown"},
		{"k8s\x00", encoding.FormatProtobuf, "protobuf"},
		{base64.StdEncoding.EncodeToString([]byte("k8s\x00\x0a\x00")), encoding.FormatUnknown, "unknown"},
		{`{"kind":"A"}`, encoding.FormatJSON, "JSON"},
		{" \r\n\t{}", encoding.FormatJSON, "JSON"},
		{"[1]", encoding.FormatUnknown, "unknown"},
		{"\xd9\xd9\xf7\xa0", encoding.FormatCBOR, "CBOR"},
		{"k8s:enc:aescbc:v1:key1:x", encoding.FormatEncrypted, "encrypted"},
	} {
		got := encoding.Detect([]byte(tc.data))
		require.Equal(t, tc.format, got, "%q", tc.data)
		require.Equal(t, tc.name, got.String())
	}
}

// Every function rejects an encrypted value with the provider and the key name, and without a byte
// of the value.
func TestEncryptedIsRefusedByName(t *testing.T) {
	const secret = "SECRETBYTES"
	for value, name := range map[string]string{
		"k8s:enc:aescbc:v1:key1:" + secret:           "aescbc:v1:key1",
		"k8s:enc:secretbox:v1:k.2_a:" + secret + ":": "secretbox:v1:k.2_a",
		"k8s:enc:kms:v2:my-plugin:" + secret:         "kms:v2:my-plugin",
		"k8s:enc:kms:v1:my-plugin:" + secret: "kms:v1:my-plugin: KMS v1 is not read: rewrap its " +
			"values to KMS v2 on a live cluster",
		"k8s:enc:kms:v1:" + secret: "kms:v1: KMS v1 is not read: rewrap its values to KMS " +
			"v2 on a live cluster",
		"k8s:enc:aesgcm:v1:" + secret:                         "aesgcm:v1",
		"k8s:enc:" + secret:                                   "an unnamed provider",
		"k8s:enc:\x00" + secret + ":v1:k:":                    "an unnamed provider",
		"k8s:enc:aescbc:v1:" + strings.Repeat("k", 600) + ":": "aescbc:v1",
	} {
		data := []byte(value)
		for call, err := range everyFunction(data) {
			require.ErrorIs(t, err, encoding.ErrEncrypted, "%s %q", call, value)
			require.EqualError(t, err, "value is encrypted by "+name, "%s %q", call, value)
		}
	}
}

func TestUnknownFormatIsRefused(t *testing.T) {
	for value, reason := range map[string]string{
		"":      "unsupported value format: empty",
		"12345": "unsupported value format: 5 bytes, neither a JSON object nor protobuf, CBOR or encrypted",
		base64.StdEncoding.EncodeToString(stored(t, "k8s/core.v1.ConfigMap.pb")): "unsupported value format: " +
			"protobuf wrapped in base64",
	} {
		for call, err := range everyFunction([]byte(value)) {
			require.ErrorIs(t, err, encoding.ErrUnknownFormat, call)
			require.EqualError(t, err, reason, call)
		}
	}
}

// everyFunction calls each exported function with the same bytes.
func everyFunction(data []byte) map[string]error {
	errs := make(map[string]error)
	_, errs["Parse"] = encoding.Parse(data)
	_, _, errs["DecodeObject"] = encoding.DecodeObject(data)
	_, errs["ReadMeta"] = encoding.ReadMeta(data)
	_, _, errs["EditOwnerReferences"] = encoding.EditOwnerReferences(data, keepOwner)
	_, errs["Get"] = encoding.Get(data, "metadata", "name")
	_, errs["Get of data"] = encoding.Get(data, "data", "a")
	_, errs["Get of a pod"] = encoding.Get(data, "spec", "template", "spec")
	_, errs["Set"] = encoding.Set(data, "b", "metadata", "annotations", "A")
	return errs
}

func keepOwner(o encoding.OwnerReference) (encoding.OwnerReference, bool) { return o, true }

func TestParse(t *testing.T) {
	for _, tc := range []struct {
		name   string
		format encoding.Format
		gvk    schema.GroupVersionKind
	}{
		{"k8s/apps.v1.DaemonSet.pb", encoding.FormatProtobuf,
			schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DaemonSet"}},
		{"k8s/core.v1.Secret.pb", encoding.FormatProtobuf, schema.GroupVersionKind{Version: "v1", Kind: "Secret"}},
		{"k8s/apps.v1.DaemonSet.json", encoding.FormatJSON, schema.GroupVersionKind{Group: "apps", Version: "v1",
			Kind: "DaemonSet"}},
		{"crd.etcd", encoding.FormatJSON, schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1beta1",
			Kind: "CustomResourceDefinition"}},
		{"c1.cbor", encoding.FormatCBOR, schema.GroupVersionKind{Group: "demo.example.com", Version: "v1alpha1",
			Kind: "Widget"}},
	} {
		data := stored(t, tc.name)
		v, err := encoding.Parse(data)
		require.NoError(t, err, tc.name)
		require.Equal(t, tc.format, v.Format)
		require.Equal(t, tc.gvk, v.GVK)
		if v.Format != encoding.FormatProtobuf {
			require.Equal(t, data, v.Raw)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for data, want := range map[string]string{
		`{"kind":5}`:             "JSON value: kind: not a string",
		`{"apiVersion":"a/b/c"}`: "JSON value: apiVersion is not GROUP/VERSION",
		`{"kind":"A"`:            "JSON value: unexpected end of JSON input",
		"k8s\x00\x0a\x05":        "protobuf value: envelope: field 1 at byte 0: the field ends beyond its message",
		"k8s\x00\x0a\x02\x0a\x05": "protobuf value: envelope.typeMeta: field 1 at byte 0: the field ends beyond " +
			"its message",
		"k8s\x00\x0a\x02\x10\x05": "protobuf value: envelope.typeMeta: field 2 at byte 0: wire type 0, want " +
			"length-delimited",
		"k8s\x00\x07":      "protobuf value: envelope: tag at byte 0: malformed field",
		"\xd9\xd9\xf7\xf6": "CBOR value: not an object",
	} {
		_, err := encoding.Parse([]byte(data))
		require.EqualError(t, err, want, "%q", data)
	}
}
