package encoding

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEditJSON(t *testing.T) {
	set := func(text string) func([]byte) ([]byte, error) {
		return func([]byte) ([]byte, error) { return []byte(text), nil }
	}
	for _, c := range []struct{ before, after string }{
		{`{"z":1,"a":{"y":[ 1, 2],"b":{"c":"old" , "unknown":1e3}}}` + "\n", `{"z":1,"a":{"y":[ 1, 2],"b":{"c":[7],"unknown":1e3}}}` + "\n"},
		{`{"z":1,"a":{"b":{}}}`, `{"z":1,"a":{"b":{"c":[7]}}}`},
		{`{"z":1,"a":null}`, `{"z":1,"a":{"b":{"c":[7]}}}`},
		{`{"z":1,"y":"<&>"}`, `{"z":1,"y":"<&>","a":{"b":{"c":[7]}}}`},
		{`{"y":1,"z":2}`, `{"a":{"b":{"c":[7]}},"y":1,"z":2}`},
		{` {"a":{"b":{"c":1,"c":2}}} `, ` {"a":{"b":{"c":1,"c":[7]}}} `},
	} {
		got, err := EditJSON([]byte(c.before), []string{"a", "b", "c"}, set("[7]"))
		require.NoError(t, err)
		require.Equal(t, c.after, string(got))
		again, err := EditJSON(got, []string{"a", "b", "c"}, set("[7]"))
		require.NoError(t, err)
		require.Same(t, &got[0], &again[0], "nothing to do: the very bytes")
	}
}

func TestEditJSONErrors(t *testing.T) {
	keep := func(text []byte) ([]byte, error) { return text, nil }
	for data, want := range map[string]error{
		"":                       ErrUnknownFormat,
		"\xd9\xd9\xf7\xa0":       ErrUnknownFormat,
		"k8s\x00":                ErrUnknownFormat,
		"k8s:enc:aescbc:v1:k1:x": ErrEncrypted,
		`{"a":5}`:                errNotObject,
	} {
		_, err := EditJSON([]byte(data), []string{"a", "b"}, keep)
		require.ErrorIs(t, err, want, "%q", data)
	}
	_, err := EditJSON([]byte(`{"a":`), []string{"a"}, keep)
	require.Error(t, err)
	wrong := errors.New("wrong")
	_, err = EditJSON([]byte(`{"a":{}}`), []string{"a", "b"}, func([]byte) ([]byte, error) { return nil, wrong })
	require.ErrorIs(t, err, wrong)
	require.ErrorContains(t, err, "a.b: wrong")
}
