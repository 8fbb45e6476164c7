package encoding

import (
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFields checks that Fields returns the same fields as the decoded object, in JSON and in CBOR,
// and that no error quotes the value.
func TestFields(t *testing.T) {
	type fields struct {
		Kind     string `json:"kind"`
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
		Spec struct {
			Size int64    `json:"size"`
			URL  string   `json:"URL"`
			List []string `json:"list"`
		} `json:"spec"`
	}
	const text = `{"kind":"Thing","Kind":"Other","metadata":{"name":"n","annotations":{"a":"b"}},` +
		`"spec":{"size":9007199254740993,"url":"no","URL":"yes","list":["x","y"],"rest":{"size":1}}}`
	obj, _, err := DecodeObject([]byte(text))
	require.NoError(t, err)
	cbor, err := EncodeObject(obj, FormatCBOR)
	require.NoError(t, err)
	for name, value := range map[string][]byte{"JSON": []byte(text), "CBOR": cbor} {
		got, err := FieldsOf[fields]("a").Decode(value)
		require.NoError(t, err, name)
		require.Equal(t, "Thing", got.Kind)
		require.Equal(t, map[string]string{"a": "b"}, got.Metadata.Annotations)
		require.Equal(t, int64(9007199254740993), got.Spec.Size)
		require.Equal(t, "yes", got.Spec.URL)
		require.Equal(t, []string{"x", "y"}, got.Spec.List)
	}
	for _, wrong := range []string{`{"spec":{"size":"s3cret"}}`, `{"spec":{"list":"s3cret"}}`, `{"metadata":"s3cret"}`,
		`{"kind":["s3cret"]}`, `["s3cret"]`, `{"kind":"s3cret"`,
		`{"spec":{"size":50733725077337250773372507733725}}`, "k8s:enc:aescbc:v1:key:s3cret", "s3cret"} {
		_, err := FieldsOf[fields]("a").Decode([]byte(wrong))
		require.Error(t, err, wrong)
		require.NotContains(t, err.Error(), "s3cret", wrong)
		require.NotContains(t, err.Error(), "5073372507733", wrong)
	}
}

// header is the part of shaped without a field name.
type header struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name        string            `json:"name"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
}

// shaped has a field of each kind that Fields reads in one pass.
type shaped struct {
	header `json:",inline"`
	Spec   *struct {
		Owner string `json:"owner"`
	} `json:"spec"`
	Status struct {
		Types []struct {
			Name     string   `json:"name"`
			Versions []string `json:"versions"`
		} `json:"types"`
	} `json:"status"`
}

const shapedText = `{"kind":"Thing","metadata":{"annotations":{"a":"b\u003cé","c":""},"name":"n","uid":"1"},` +
	`"spec":{"owner":"o","x":[null,1.5e3,{"owner":2}]},` +
	`"status":{"types":[{"name":"t","versions":["v1","v2"]},{"name":"\"u\"","versions":[]},null,{"versions":null}],` +
	`"phase":true}}` + "\n"

// TestFieldsAreThoseOfTheDecoder compares Fields with the decoder of an API server on many damaged
// values.
func TestFieldsAreThoseOfTheDecoder(t *testing.T) {
	fields, random, read := FieldsOf[shaped]("a", "c"), rand.New(rand.NewPCG(3, 4)), 0
	for i := range 100_000 {
		value := []byte(shapedText)
		if i > 0 {
			value = damaged(random, value)
		}
		var want shaped
		wrong := unmarshal(value, &want)
		got, err := fields.Decode(value)
		if Detect(value) != FormatJSON {
			continue
		}
		require.Equal(t, wrong == nil, err == nil, "%q: %v", value, wrong)
		if err == nil {
			for _, annotations := range []map[string]string{want.Metadata.Annotations, got.Metadata.Annotations} {
				maps.DeleteFunc(annotations, func(name, _ string) bool { return name != "a" && name != "c" })
			}
			require.Equal(t, &want, got, "%q", value)
			read++
		}
	}
	require.Greater(t, read, 10_000)
}

// BenchmarkFields reads a few fields of an object.
func BenchmarkFields(b *testing.B) {
	fields := FieldsOf[shaped]("a", "c")
	b.SetBytes(int64(len(shapedText)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := fields.Decode([]byte(shapedText)); err != nil {
			b.Fatal(err)
		}
	}
}
