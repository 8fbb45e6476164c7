package encoding_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/encoding"
)

// seeds adds the stored values, some cut and some with a byte changed, and small values for each
// branch.
func seeds(f *testing.F) {
	f.Helper()
	for _, pattern := range []string{"testdata/k8s/core.v1.*", "testdata/k8s/net*.pb", "testdata/cr/*.after",
		"testdata/*.cbor", "testdata/k8s/apps.v1.D*.pb"} {
		names, err := filepath.Glob(pattern)
		require.NoError(f, err)
		require.NotEmpty(f, names)
		for _, name := range names {
			data, err := os.ReadFile(name)
			require.NoError(f, err)
			f.Add(data)
			f.Add(data[:len(data)/2])
			f.Add(append(append([]byte{}, data[:9]...), append([]byte{data[9] ^ 1}, data[10:]...)...))
		}
	}
	for _, text := range []string{
		`{"metadata":{"ownerReferences":[{"uid":"a","x":1},{"uid":"b"}],"managedFields":[{"fieldsV1":` + managedBefore +
			`}]}}`,
		`{"metadata":{"metadata":1},"metadata":{"ownerReferences":[{"uid":"\u00e9\ud83d\ude00"}]}}`,
		`{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{},` +
			`"spec":{"template":{"spec":{"containers":[{"name":"a","env":[{"name":"A","valueFrom":{}}]}]}}}}`,
		"k8s\x00\x0a\x14\x0a\x07apps/v1\x12\x09DaemonSet\x12\x0b\x0a\x00\x12\x07\x12\x05\x12\x03\x12\x01c",
		"k8s\x00\x12\x06\x0b\x0b\x0c\x0c\x0a\x00", "k8s:enc:aescbc:v1:key1:x", "\xd9\xd9\xf7\xa1\x48metadata\xa0", "",
		" {}",
	} {
		f.Add([]byte(text))
	}
}

// FuzzParse checks that no bytes cause a panic, and that every error is short.
func FuzzParse(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		for call, err := range everyFunction(data) {
			if err != nil && len(err.Error()) > 300+6*len(data) {
				require.Fail(t, "error grows", "%s: %d bytes", call, len(err.Error()))
			}
		}
		if v, err := encoding.Parse(data); err == nil {
			require.Equal(t, encoding.Detect(data), v.Format)
		}
	})
}

// FuzzDecodeObject checks that a second decode and encode changes nothing.
func FuzzDecodeObject(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		obj, format, err := encoding.DecodeObject(data)
		if err != nil {
			return
		}
		once, err := encoding.EncodeObject(obj, format)
		require.NoError(t, err)
		obj, again, err := encoding.DecodeObject(once)
		require.NoError(t, err)
		require.Equal(t, format, again)
		twice, err := encoding.EncodeObject(obj, format)
		require.NoError(t, err)
		require.Equal(t, string(once), string(twice))
	})
}

// FuzzEditOwnerReferences checks that an edit changes only the references, and that an edit without
// a change returns its input.
func FuzzEditOwnerReferences(f *testing.F) {
	seeds(f)
	mark := func(o encoding.OwnerReference) (encoding.OwnerReference, bool) {
		o.UID = "new-" + strings.TrimPrefix(o.UID, "new-")
		return o, true
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		same, changed, err := encoding.EditOwnerReferences(data, keepOwner)
		if err != nil {
			return
		}
		require.Zero(t, changed)
		require.Same(t, &data[0], &same[0])
		out, changed, err := encoding.EditOwnerReferences(data, mark)
		require.NoError(t, err)
		again, none, err := encoding.EditOwnerReferences(out, mark)
		require.NoError(t, err)
		require.Zero(t, none)
		require.Same(t, &out[0], &again[0])
		requireOthersKept(t, data, out, "ownerReferences", "managedFields")

		before, err := encoding.ReadMeta(data)
		if err != nil {
			return
		}
		after, err := encoding.ReadMeta(out)
		require.NoError(t, err)
		require.LessOrEqual(t, changed, len(before.OwnerReferences))
		for i, o := range before.OwnerReferences {
			before.OwnerReferences[i], _ = mark(o)
		}
		require.Equal(t, before, after)
	})
}

// requireOthersKept compares JSON and CBOR values without the given fields of the metadata.
func requireOthersKept(t *testing.T, before, after []byte, names ...string) {
	t.Helper()
	var kept []string
	for _, data := range [][]byte{before, after} {
		obj, format, err := encoding.DecodeObject(data)
		if err != nil {
			return // protobuf, or a number out of range
		}
		if metadata, ok := obj["metadata"].(map[string]any); ok {
			for _, name := range names {
				delete(metadata, name)
			}
			if len(metadata) == 0 { // the edit may have created metadata
				delete(obj, "metadata")
			}
		}
		out, err := encoding.EncodeObject(obj, format)
		require.NoError(t, err)
		kept = append(kept, string(out))
	}
	require.Equal(t, kept[0], kept[1])
}

// FuzzSet checks that the new value is set, that the rest stays, and that a second Set changes
// nothing.
func FuzzSet(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, path := range [][]string{{"metadata", "annotations", "a"}, {"metadata", "name"}, {"data", "k"}} {
			for _, value := range []any{"new <&>", nil} {
				before, err := encoding.Get(data, path...)
				if err != nil {
					break
				}
				out, err := encoding.Set(data, value, path...)
				require.NoError(t, err)
				if before == value {
					require.Same(t, &data[0], &out[0])
				}
				is, err := encoding.Get(out, path...)
				require.NoError(t, err)
				require.Equal(t, value, is)
				again, err := encoding.Set(out, value, path...)
				require.NoError(t, err)
				require.Same(t, &out[0], &again[0])
				if path[0] == "metadata" {
					requireOthersKept(t, data, out, path[1])
				}
			}
		}
	})
}

// FuzzPath checks Set at any path: the new value is set, a second Set changes nothing, and without
// the field both values are equal.
func FuzzPath(f *testing.F) {
	for _, text := range []string{
		`{"kind":"X","metadata":{"name":"a","labels":{"b":"c"}},"spec":{"a":[{"b":1}],"c":{"d":"e"}}}`,
		"{ \"z\" : {\"y\":1e3 , \"x\":null}, \"a\":\"\\u00e9\" }\n", `{"a":{"a":{"a":{}}}}`,
	} {
		for _, path := range []string{"spec.c.d", "metadata.labels", "z.x", "a.a.b", "new.field", "spec.a", "a"} {
			f.Add([]byte(text), path, "v")
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, path, text string) {
		if !utf8.ValidString(path) || !utf8.ValidString(text) {
			return // encoders replace such bytes
		}
		names, value := strings.Split(path, "."), any(text)
		before, err := encoding.Get(data, names...)
		if err != nil {
			return
		}
		out, err := encoding.Set(data, value, names...)
		if err != nil {
			require.Less(t, len(err.Error()), 300+6*len(data)+6*len(path))
			return
		}
		if before == value {
			require.Same(t, &data[0], &out[0])
		}
		is, err := encoding.Get(out, names...)
		require.NoError(t, err)
		require.Equal(t, value, is)
		again, err := encoding.Set(out, value, names...)
		require.NoError(t, err)
		require.Same(t, &out[0], &again[0])
		require.Equal(t, without(t, data, names), without(t, out, names))
	})
}

// without returns the content of a JSON or CBOR value without the field at path and the emptied
// objects on path.
func without(t *testing.T, data []byte, path []string) any {
	t.Helper()
	obj, _, err := encoding.DecodeObject(data)
	if err != nil {
		return nil // protobuf, or a number out of range
	}
	removeField(obj, path)
	return obj
}

func removeField(obj map[string]any, path []string) {
	if below, ok := obj[path[0]].(map[string]any); ok && len(path) > 1 {
		if removeField(below, path[1:]); len(below) > 0 {
			return
		}
	}
	delete(obj, path[0])
}
