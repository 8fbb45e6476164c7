package encoding

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Set keeps the text around the changed field, and the equal parts of the field.
func TestSetJSON(t *testing.T) {
	for _, c := range []struct {
		before, after string
		value         any
	}{
		{`{"z":1,"a":{"y":[ 1, 2],"b":{"c":"old" , "unknown":1e3}}}` + "\n",
			`{"z":1,"a":{"y":[ 1, 2],"b":{"c":[7],"unknown":1e3}}}` + "\n", []any{int64(7)}},
		{`{"z":1,"a":{"b":{}}}`, `{"z":1,"a":{"b":{"c":[7]}}}`, []any{int64(7)}},
		{`{"z":1,"a":null}`, `{"z":1,"a":{"b":{"c":[7]}}}`, []any{int64(7)}},
		{`{"z":1,"y":"<&>"}`, `{"z":1,"y":"<&>","a":{"b":{"c":[7]}}}`, []any{int64(7)}},
		{`{"y":1,"z":2}`, `{"a":{"b":{"c":[7]}},"y":1,"z":2}`, []any{int64(7)}},
		{` {"a":{"b":{"c":1,"c":2}}} `, ` {"a":{"b":{"c":1,"c":[7]}}} `, []any{int64(7)}},
		{`{"a":{"b":{"c":"x"}}}`, `{"a":{"b":{"c":"\u003c\u0026\u003e"}}}`, "<&>"},
		{`{"a":{"b":{"c":[{"x": 1e3,"w":"\u0061" },[ ],2.0]}}}`, `{"a":{"b":{"c":[{"x":1e3,"w":"b"},[ ],2.0,true]}}}`,
			[]any{map[string]any{"x": 1e3, "w": "b"}, []any{}, 2.0, true}},
		{`{"a":{"b":{"c":[ 1 , 2 ]}}}`, `{"a":{"b":{"c":[1]}}}`, []any{int64(1)}},
		{`{"a":{"b":{"c":{"z":{"x" :1},"y":2,"b":3}}}}`, `{"a":{"b":{"c":{"z":{"x" :1},"b":4,"a":5}}}}`,
			map[string]any{"z": map[string]any{"x": int64(1)}, "b": int64(4), "a": int64(5)}},
		{`{"z":1,"a":{"y":[ 1, 2],"b":{"c":"old" , "d":1e3}}}` + "\n", `{"z":1,"a":{"y":[ 1, 2],"b":{"d":1e3}}}` + "\n",
			nil},
		{`{"a":{"b":{"c":1}},"<":"<&>"}`, `{"a":{"b":{}},"<":"<&>"}`, nil},
		{` {"a":{"b":{"c":1,"d":0,"c":2}}} `, ` {"a":{"b":{"d":0}}} `, nil},
		{`{"a":{"b":{"\u0063":1}}}`, `{"a":{"b":{}}}`, nil},
	} {
		got, err := Set([]byte(c.before), c.value, "a", "b", "c")
		require.NoError(t, err)
		require.Equal(t, c.after, string(got))
		again, err := Set(got, c.value, "a", "b", "c")
		require.NoError(t, err)
		require.Same(t, &got[0], &again[0], "nothing to do: the very bytes")
		is, err := Get(got, "a", "b", "c")
		require.NoError(t, err)
		require.Equal(t, c.value, is)
	}
}

// Removing a missing field returns the same bytes.
func TestSetNothing(t *testing.T) {
	for _, text := range []string{`{}`, `{"a":null}`, `{"a": {"b":null} }`, `{"a":{"b":{"d":0}}}`, `{"b":{"c":1}}`,
		"\xd9\xd9\xf7\xa0"} {
		data := []byte(text)
		got, err := Set(data, nil, "a", "b", "c")
		require.NoError(t, err)
		require.Same(t, &data[0], &got[0], text)
	}
}

func TestSetErrors(t *testing.T) {
	for data, want := range map[string]error{
		"":                          ErrUnknownFormat,
		"k8s\x00\x12\x00":           ErrUnknownFormat,
		"k8s:enc:aescbc:v1:k1:x":    ErrEncrypted,
		`{"a":5}`:                   errNotObject,
		`{"a":[{"b":{"c":1}}]}`:     errNotObject,
		"\xd9\xd9\xf7\xa1\x41a\x05": errNotObject,
	} {
		for _, value := range []any{"x", nil} {
			_, err := Set([]byte(data), value, "a", "b")
			require.ErrorIs(t, err, want, "%q", data)
		}
	}
	for _, data := range []string{`{"a":`, "k8s\x00", "k8s\x00\x12\x05"} {
		_, err := Set([]byte(data), "x", "metadata", "name")
		require.Error(t, err, data)
	}
	_, err := Set([]byte(`{"a":{"b":1}}`), func() {}, "a", "b")
	require.ErrorContains(t, err, "JSON value: a")
}

// A protobuf field accepts only values of its type. A field unknown to Get is not treated as
// missing.
func TestSetProtobufErrors(t *testing.T) {
	object := []byte("k8s\x00\x12\x05\x0a\x03\x0a\x01n")
	for _, c := range []struct {
		value any
		path  []string
	}{
		{int64(1), []string{"metadata", "name"}}, {"1", []string{"metadata", "generation"}},
		{"a", []string{"metadata", "labels"}},
		{map[string]any{"a": int64(1)}, []string{"metadata", "labels"}}, {"a", []string{"metadata", "finalizers"}},
		{[]any{"a"}, []string{"metadata", "name"}}, {[]any{"a"}, []string{"metadata", "ownerReferences"}},
		{[]any{map[string]any{"controller": "true"}}, []string{"metadata", "ownerReferences"}},
		{[]any{map[string]any{"other": "true"}}, []string{"metadata", "ownerReferences"}},
	} {
		_, err := Set(object, c.value, c.path...)
		require.ErrorIs(t, err, errWrongType, "%v", c)
	}
	for _, path := range [][]string{{"metadata", "other"}, {"spec"}, {"data"}, nil} {
		_, err := Get(object, path...)
		if path != nil {
			require.ErrorIs(t, err, ErrUnknownFormat, "%v", path)
		}
	}
}

// No name in a path selects the elements of a list.
func TestNoNameIsEachElement(t *testing.T) {
	_, err := Get([]byte(`{"list":[{"a":1}]}`), "list", "\xff", "a")
	require.EqualError(t, err, "JSON value: list: not an object")
	_, err = Set([]byte(`{"list":[{"a":1}]}`), "x", "list", "\xff", "a")
	require.EqualError(t, err, "JSON value: list: not an object")
}

// Set removes many fields in one pass.
func TestSetJSONRemovesMany(t *testing.T) {
	var names strings.Builder
	for i := range 5_000 {
		fmt.Fprintf(&names, `"n%d":1,`, i)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	out, err := Set([]byte(`{`+names.String()+`"b":[ 1 ],"a":{}}`), map[string]any{"b": []any{int64(1)}, "a": true, "c": nil})
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.Equal(t, `{"b":[ 1 ],"a":true,"c":null}`, string(out))
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(32<<20))
}
