package encoding_test

import (
	"bytes"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"sigs.k8s.io/yaml"

	"github.com/etcdshift/etcdshift/encoding"
)

// EncodeObject(DecodeObject(v)) == v for values stored by a server. raw1.before was written by
// hand; its bytes become the result of the server's own decode and encode.
func TestStoredObjectsRoundTrip(t *testing.T) {
	names := []string{"c1.cbor"}
	entries, err := os.ReadDir("testdata/cr")
	require.NoError(t, err)
	for _, entry := range entries {
		names = append(names, "cr/"+entry.Name())
	}
	require.Len(t, names, 19)
	for _, name := range names {
		data := stored(t, name)
		obj, format, err := encoding.DecodeObject(data)
		require.NoError(t, err, name)
		out, err := encoding.EncodeObject(obj, format)
		require.NoError(t, err, name)
		if name == "cr/raw1.before" {
			require.NotEqual(t, string(data), string(out))
			require.Equal(t, serverJSON(t, obj), string(out))
			continue
		}
		require.Equal(t, string(data), string(out), name)
	}
}

func serverJSON(t testing.TB, obj map[string]any) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, unstructured.UnstructuredJSONScheme.Encode(&unstructured.Unstructured{Object: obj}, &out))
	return out.String()
}

// A CRD is stored through its Go type, with the field order of the type; as a plain object the
// content is the same.
func TestCRDHasTheSameContentAsAnObject(t *testing.T) {
	data := stored(t, "crd.etcd")
	obj, format, err := encoding.DecodeObject(data)
	require.NoError(t, err)
	out, err := encoding.EncodeObject(obj, format)
	require.NoError(t, err)
	require.JSONEq(t, string(data), string(out))
	require.Len(t, out, len(data))
}

func TestNumbersSurvive(t *testing.T) {
	const in = `{"apiVersion":"v1","big":9007199254740993,"float":1.5,"kind":"A","max":9223372036854775807,` +
		`"min":-9223372036854775808,"zero":0}` + "\n"
	obj, format, err := encoding.DecodeObject([]byte(in))
	require.NoError(t, err)
	require.Equal(t, int64(9007199254740993), obj["big"])
	require.Equal(t, int64(math.MaxInt64), obj["max"])
	require.Equal(t, 1.5, obj["float"])
	out, err := encoding.EncodeObject(obj, format)
	require.NoError(t, err)
	require.Equal(t, in, string(out))

	obj, _, err = encoding.DecodeObject([]byte(`{"a":3.0,"b":1e3,"c":18446744073709551615}`))
	require.NoError(t, err)
	out, err = encoding.EncodeObject(obj, encoding.FormatJSON)
	require.NoError(t, err)
	require.Equal(t, `{"a":3,"b":1000,"c":18446744073709552000}`+"\n", string(out)) // the server's form
}

func TestEncodeIsTheServersEncoding(t *testing.T) {
	obj := map[string]any{
		"kind": "A", "apiVersion": "v1", "items": []any{map[string]any{"b": int64(1), "a": nil}},
		"text": "<a href=\"x\">&\u2028é😀\x01\t", "float": 0.1, "huge": 1e21, "empty": map[string]any{}, "none": []any{},
	}
	out, err := encoding.EncodeObject(obj, encoding.FormatJSON)
	require.NoError(t, err)
	require.Equal(t, serverJSON(t, obj), string(out))
	require.True(t, strings.HasPrefix(string(out), `{"apiVersion":"v1","empty":{},"float":0.1,`))

	var want bytes.Buffer
	serializer := cbor.NewSerializer(runtime.NewScheme(), runtime.NewScheme())
	require.NoError(t, serializer.Encode(&unstructured.Unstructured{Object: obj}, &want))
	out, err = encoding.EncodeObject(obj, encoding.FormatCBOR)
	require.NoError(t, err)
	require.Equal(t, want.Bytes(), out)

	for _, f := range []encoding.Format{encoding.FormatUnknown, encoding.FormatProtobuf, encoding.FormatEncrypted} {
		_, err = encoding.EncodeObject(obj, f)
		require.ErrorIs(t, err, encoding.ErrUnknownFormat)
	}
	_, err = encoding.EncodeObject(map[string]any{"a": math.NaN()}, encoding.FormatJSON)
	require.ErrorContains(t, err, "encode JSON")
}

func TestItemsDoNotMakeAList(t *testing.T) {
	const in = `{"apiVersion":"v1","items":[{"a":1},7],"kind":"ThingList"}` + "\n"
	obj, format, err := encoding.DecodeObject([]byte(in))
	require.NoError(t, err)
	require.Equal(t, []any{map[string]any{"a": int64(1)}, int64(7)}, obj["items"])
	out, err := encoding.EncodeObject(obj, format)
	require.NoError(t, err)
	require.Equal(t, in, string(out))
}

// Of two equal keys the last one wins in a decode and in an edit, and nothing of the first remains.
func TestDuplicateKeys(t *testing.T) {
	const in = `{"metadata":{"name":"a","labels":{"x":"1"}},"Metadata":5,"metadata":{"name":"b"}}`
	obj, _, err := encoding.DecodeObject([]byte(in))
	require.NoError(t, err)
	require.Equal(t, map[string]any{"metadata": map[string]any{"name": "b"}, "Metadata": int64(5)}, obj)
	m, err := encoding.ReadMeta([]byte(in))
	require.NoError(t, err)
	require.Equal(t, encoding.Meta{Name: "b"}, m)

	_, _, err = encoding.DecodeObject([]byte("\xd9\xd9\xf7\xa2\x41a\x01\x41a\x02"))
	require.ErrorContains(t, err, "CBOR value: cbor: found duplicate map key")
}

func TestDecodeErrors(t *testing.T) {
	deep := strings.Repeat("[", 1_000_000)
	for name, data := range map[string]string{
		"trailing data":  `{"a":1} {"b":2}`,
		"trailing brace": `{"a":1}}`,
		"cut off":        `{"a":`,
		"deep":           `{"a":` + deep + strings.Repeat("]", 1_000_000) + `}`,
		"deep, cut off":  `{"a":` + deep,
		"big number":     `{"a":1e999}`,
		"cbor list":      "\xd9\xd9\xf7\x80",
		"cbor null":      "\xd9\xd9\xf7\xf6",
		"cbor empty":     "\xd9\xd9\xf7",
		"cbor trailing":  "\xd9\xd9\xf7\xa0\xa0",
		"cbor deep":      "\xd9\xd9\xf7\xa1\x41a" + strings.Repeat("\x81", 1_000_000) + "\x01",
		"cbor claims":    "\xd9\xd9\xf7\xa1\x41a\x9b\x00\x00\x00\x00\x7f\xff\xff\xff\x01",
		"cbor not UTF-8": "\xd9\xd9\xf7\xa1\x61\xff\x01",
	} {
		_, _, err := encoding.DecodeObject([]byte(data))
		require.Error(t, err, name)
		require.Less(t, len(err.Error()), 200, name)
		_, err = encoding.ReadMeta([]byte(data))
		if name != "big number" { // numbers outside the metadata are not read
			require.Error(t, err, name)
		}
	}
	_, format, err := encoding.DecodeObject(stored(t, "k8s/core.v1.Pod.pb"))
	require.ErrorIs(t, err, encoding.ErrUnknownFormat)
	require.Equal(t, encoding.FormatProtobuf, format)
	require.EqualError(t, err, "unsupported value format: protobuf")
}

// An error gives positions, not values.
func TestErrorsHoldNoValues(t *testing.T) {
	const secret = "7777777777"
	long := strings.Repeat(secret, 40)
	const workload = `{"apiVersion":"apps/v1","kind":"DaemonSet",`
	for _, data := range []string{
		`{"a":` + long + `}`, `{"a":"` + secret, `{"a":"` + secret + `" "`, `{"a":` + secret + `x}`,
		`{"metadata":{"name":` + secret + `}}`,
		`{"metadata":{"x":` + long + `}}`, `{"metadata":{"creationTimestamp":"` + secret + `"}}`,
		`{"kind":` + secret + `}`,
		workload + `"spec":{"template":{"spec":{"containers":[{"env":[{"name":"A","value":` + long + `}]}]}}}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","data":` + secret + `}`,
		"\xd9\xd9\xf7\xa1\x41a\x6a" + secret + secret, "\xd9\xd9\xf7\x6a" + secret, secret,
		"k8s\x00\x12\x0c\x0a\x0a" + secret,
	} {
		failed := 0
		for call, err := range everyFunction([]byte(data)) {
			if err != nil {
				failed++
				require.NotContains(t, err.Error(), secret, "%s %q", call, data)
			}
		}
		require.Positive(t, failed, "%q", data)
	}
}

// compact converts a formatted JSON file to the stored bytes of a custom resource.
func compact(t testing.TB, data []byte) []byte {
	t.Helper()
	var obj map[string]any
	require.NoError(t, yaml.Unmarshal(data, &obj))
	out, err := encoding.EncodeObject(obj, encoding.FormatJSON)
	require.NoError(t, err)
	return out
}
