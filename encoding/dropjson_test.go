package encoding

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDropJSON(t *testing.T) {
	for before, after := range map[string]string{
		`{"z":1,"a":{"y":[ 1, 2],"b":{"c":"old" , "d":1e3}}}` + "\n": `{"z":1,"a":{"y":[ 1, 2],"b":{"d":1e3}}}` + "\n",
		`{"a":{"b":{"c":1}},"<":"<&>"}`:                              `{"a":{"b":{}},"<":"<&>"}`,
		` {"a":{"b":{"c":1,"d":0,"c":2}}} `:                          ` {"a":{"b":{"d":0}}} `,
		`{"a":{"b":{"\u0063":1}}}`:                                   `{"a":{"b":{}}}`,
	} {
		got, err := DropJSON([]byte(before), []string{"a", "b", "c"})
		require.NoError(t, err)
		require.Equal(t, after, string(got))
	}
}

// TestDropJSONNothing: where the field is not there, it is the very bytes that come back.
func TestDropJSONNothing(t *testing.T) {
	for _, text := range []string{`{}`, `{"a":null}`, `{"a": {"b":null} }`, `{"a":{"b":{"d":0}}}`, `{"b":{"c":1}}`} {
		data := []byte(text)
		got, err := DropJSON(data, []string{"a", "b", "c"})
		require.NoError(t, err)
		require.Same(t, &data[0], &got[0], text)
	}
}

func TestDropJSONErrors(t *testing.T) {
	for data, want := range map[string]error{
		"":                       ErrUnknownFormat,
		"k8s\x00":                ErrUnknownFormat,
		"k8s:enc:aescbc:v1:k1:x": ErrEncrypted,
		`{"a":5}`:                errNotObject,
		`{"a":[{"b":{"c":1}}]}`:  errNotObject,
	} {
		_, err := DropJSON([]byte(data), []string{"a", "b", "c"})
		require.ErrorIs(t, err, want, "%q", data)
	}
	_, err := DropJSON([]byte(`{"a":`), []string{"a"})
	require.Error(t, err)
}
