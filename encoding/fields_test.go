package encoding

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDecodeFields: what a struct asks for is what the whole object has, in JSON and in CBOR, and
// no error holds a part of the value.
func TestDecodeFields(t *testing.T) {
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
	const text = `{"kind":"Thing","Kind":"Other","metadata":{"name":"n","annotations":{"a":"b"}},"spec":{"size":9007199254740993,"url":"no","URL":"yes","list":["x","y"],"rest":{"size":1}}}`
	obj, _, err := DecodeObject([]byte(text))
	require.NoError(t, err)
	cbor, err := EncodeObject(obj, FormatCBOR)
	require.NoError(t, err)
	for name, value := range map[string][]byte{"JSON": []byte(text), "CBOR": cbor} {
		var got fields
		require.NoError(t, DecodeFields(value, &got), name)
		require.Equal(t, "Thing", got.Kind)
		require.Equal(t, map[string]string{"a": "b"}, got.Metadata.Annotations)
		require.Equal(t, int64(9007199254740993), got.Spec.Size)
		require.Equal(t, "yes", got.Spec.URL)
		require.Equal(t, []string{"x", "y"}, got.Spec.List)
	}
	for _, wrong := range []string{`{"spec":{"size":"s3cret"}}`, `{"spec":{"list":"s3cret"}}`, `{"metadata":"s3cret"}`, `{"kind":["s3cret"]}`, `["s3cret"]`, `{"kind":"s3cret"`,
		`{"spec":{"size":50733725077337250773372507733725}}`, "k8s:enc:aescbc:v1:key:s3cret", "s3cret"} {
		err := DecodeFields([]byte(wrong), &fields{})
		require.Error(t, err, wrong)
		require.NotContains(t, err.Error(), "s3cret", wrong)
		require.NotContains(t, err.Error(), "5073372507733", wrong)
	}
}
