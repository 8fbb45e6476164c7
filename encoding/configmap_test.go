package encoding_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/etcdshift/etcdshift/encoding"
)

func marshalJSON(t testing.TB, obj any) []byte {
	t.Helper()
	out, err := json.Marshal(obj)
	require.NoError(t, err)
	return append(out, '\n')
}

func TestGetConfigMapData(t *testing.T) {
	for _, name := range []string{"k8s/core.v1.ConfigMap.pb", "k8s/core.v1.ConfigMap.json"} {
		data, err := encoding.Get(stored(t, name), "data")
		require.NoError(t, err)
		require.Equal(t, map[string]any{"dataKey": "dataValue"}, data, name)
	}
	data, err := encoding.Get(wrap(t, "v1", "ConfigMap", &corev1.ConfigMap{}), "data")
	require.NoError(t, err)
	require.Nil(t, data)
}

// The edited bytes equal the output of k8s.io/api after the same edit of the typed object; in JSON,
// the encoding of a server.
func TestSetConfigMapDataEqualsTypedEdit(t *testing.T) {
	for _, have := range []map[string]string{nil, {"m": ""}, {"a": "1", "m": "old <&>", "z": "3"}, {"a": "1", "z": "3"},
		{"z": "3"}, {"a": "1"}} {
		pb := stored(t, "k8s/core.v1.ConfigMap.pb")
		obj := decode(t, pb, natives()["core.v1.ConfigMap"]()).(*corev1.ConfigMap)
		obj.APIVersion, obj.Kind = "v1", "ConfigMap"
		obj.Data = have
		beforeProtobuf, beforeJSON := rewrap(t, pb, obj), compact(t, marshalJSON(t, obj))
		obj.Data = map[string]string{"m": "new <&>\n"}
		for key, value := range have {
			if key != "m" {
				obj.Data[key] = value
			}
		}
		set := func(data []byte) []byte {
			out, err := encoding.Set(data, "new <&>\n", "data", "m")
			require.NoError(t, err)
			again, err := encoding.Set(out, "new <&>\n", "data", "m")
			require.NoError(t, err)
			require.Same(t, &out[0], &again[0])
			return out
		}
		requireSame(t, rewrap(t, pb, obj), set(beforeProtobuf), "protobuf")
		require.Equal(t, string(compact(t, marshalJSON(t, obj))), string(set(beforeJSON)), have)
		all := metaLevels()
		all[2][2] = levels{}
		if len(have) > 0 {
			requireUnknownFieldsSurvive(t, beforeProtobuf, all, set)
		}
	}
}

func TestConfigMapErrors(t *testing.T) {
	const head = "k8s\x00\x0a\x0f\x0a\x02v1\x12\x09ConfigMap"
	for data, want := range map[string]string{
		`{"apiVersion":"v1","kind":"ConfigMap","data":[]}`: "JSON value: data: not an object",
		head + "\x12\x04\x12\x02\x0a\x05": "protobuf value: data: field 1 at byte 0: the field ends " +
			"beyond its message",
	} {
		_, err := encoding.Get([]byte(data), "data", "a")
		require.EqualError(t, err, want)
		_, err = encoding.Set([]byte(data), "b", "data", "a")
		require.EqualError(t, err, want)
	}
}
