package encoding

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/snapshot"
)

// What Get and Set make of a value is what each function they take the place of makes of it.

func differSeeds(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*")
	require.NoError(f, err)
	more, _ := filepath.Glob("testdata/*.*")
	for _, name := range append(files, more...) {
		if data, err := os.ReadFile(name); err == nil {
			f.Add(data)
		}
	}
	for _, text := range []string{
		`{"metadata":{"ownerReferences":[{"uid":"a","x":1},{"uid":"b"}],"managedFields":[{"fieldsV1":{"f:metadata":{"f:ownerReferences":{".":{},"k:{\"uid\":\"a\"}":{},"k:{\"uid\":\"b\"}":{"f:name":{}}}}}}]}}`,
		`{"metadata":{"annotations":{"a":"1","kcp.io/shard":"root"}},"spec":{"versions":[{"storage":true}]}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{},"data":{"a":"x","c":"y"}}`,
	} {
		f.Add([]byte(text))
	}
}

// hostile says whether a value is one that no server stores and that the old functions treat in another way.
func hostile(data []byte) bool {
	switch Detect(data) {
	case FormatJSON:
		var v any
		if unmarshal(data, &v) != nil {
			return true // numbers out of range
		}
		again, err := json.Marshal(v)
		if err != nil {
			return true
		}
		// duplicate keys, null elements
		return bytes.Contains(data, []byte("null")) || countColons(data) != countColons(again)
	case FormatProtobuf:
		return false
	}
	return false
}

func countColons(data []byte) int {
	var n int
	dec := json.NewDecoder(bytes.NewReader(data))
	for {
		_, err := dec.Token()
		if err != nil {
			return n
		}
		n++
	}
}

func FuzzDiffer(f *testing.F) {
	differSeeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		differOwners(t, data)
		differJSON(t, data)
		differAnnotation(t, data)
		differConfigMap(t, data)
	})
}

func same(t *testing.T, what string, data, old, now []byte, oldErr, nowErr error) {
	t.Helper()
	if oldErr != nil || nowErr != nil {
		if nowErr != nil && Detect(data) == FormatProtobuf && strings.Contains(nowErr.Error(), "metadata.managedFields") {
			return // what no decoder takes, it is read whole now
		}
		if (oldErr == nil) != (nowErr == nil) && !hostile(data) {
			require.Fail(t, "errors differ", "%s of %q: %v, now %v", what, data, oldErr, nowErr)
		}
		return
	}
	if strings.HasPrefix(what, "owners") && strings.HasPrefix(t.Name(), "Fuzz") {
		old, now = sorted(old), sorted(now) // the place of a renamed path among unsorted ones
	}
	if !bytes.Equal(old, now) && !hostile(data) {
		require.Fail(t, "results differ", "%s of %q:\n old %q\n now %q", what, data, old, now)
	}
}

func differOwners(t *testing.T, data []byte) {
	yes := true
	for name, edit := range map[string]func(OwnerReference) (OwnerReference, bool){
		"keep": func(o OwnerReference) (OwnerReference, bool) { return o, true },
		"uid":  func(o OwnerReference) (OwnerReference, bool) { o.UID = "new-" + o.UID; return o, true },
		"one":  func(o OwnerReference) (OwnerReference, bool) { o.UID = "b"; return o, o.UID != "b" },
		"all": func(o OwnerReference) (OwnerReference, bool) {
			o.APIVersion, o.Kind, o.Name = o.APIVersion+"<", o.Kind+"2", ""
			o.Controller = nil
			if o.BlockOwnerDeletion == nil {
				o.BlockOwnerDeletion = &yes
			} else {
				o.BlockOwnerDeletion = nil
			}
			return o, true
		},
	} {
		old, n, oldErr := EditOwnerReferences(data, edit)
		now, m, nowErr := NewEditOwnerReferences(data, edit)
		same(t, "owners "+name, data, old, now, oldErr, nowErr)
		if oldErr == nil && nowErr == nil {
			require.Equal(t, n, m)
			if n == 0 {
				require.Same(t, &data[0], &now[0])
			}
		}
	}
}

func differJSON(t *testing.T, data []byte) {
	if Detect(data) != FormatJSON {
		return
	}
	for _, path := range [][]string{{"a"}, {"metadata", "annotations", "kcp.io/shard"}, {"metadata", "name"}, {"spec", "versions"}, {"status", "storedVersions"}, {"spec", "x"}} {
		for _, value := range []any{"<text>", []any{"v1", "v2"}, int64(7), true} {
			text, err := json.Marshal(value)
			require.NoError(t, err)
			was, err := Get(data, path...)
			old, oldErr := EditJSON(data, path, func(text2 []byte) ([]byte, error) {
				if is, isText := was.(string); isText && is == value {
					return text2, nil
				}
				return text, nil
			})
			if _, isList := was.([]any); isList || err != nil {
				continue // is merged
			}
			now, nowErr := Set(data, value, path...)
			same(t, "set", data, old, now, oldErr, nowErr)
		}
		old, oldErr := DropJSON(data, path)
		now, nowErr := Set(data, nil, path...)
		same(t, "drop", data, old, now, oldErr, nowErr)
	}
}

func differAnnotation(t *testing.T, data []byte) {
	for _, name := range []string{"kcp.io/shard", "annotationsKey", "a"} {
		if _, err := ReadMeta(data); err != nil {
			continue
		}
		old, oldErr := ReplaceAnnotation(data, name, "shard <1>")
		now, nowErr := func() ([]byte, error) {
			is, err := Get(data, "metadata", "annotations", name)
			if err != nil || is == nil {
				return data, err
			}
			return Set(data, "shard <1>", "metadata", "annotations", name)
		}()
		same(t, "annotation", data, old, now, oldErr, nowErr)
	}
}

func differConfigMap(t *testing.T, data []byte) {
	for _, key := range []string{"", "b", "dataKey", "x"} {
		was, oldErr := ReadConfigMap(data)
		is, nowErr := Get(data, "data")
		if oldErr != nil {
			return
		}
		require.NoError(t, nowErr)
		if !hostile(data) {
			entries, _ := is.(map[string]any)
			require.Len(t, entries, len(was))
			for k, v := range was {
				require.Equal(t, v, entries[k])
			}
		}
		old, oldErr := SetConfigMapData(data, key, "new <&>")
		now, nowErr := Set(data, "new <&>", "data", key)
		same(t, "configmap", data, old, now, oldErr, nowErr)
	}
}

// TestDifferRecorded: also for every object of the recorded snapshots.
func TestDifferRecorded(t *testing.T) {
	files, err := filepath.Glob("../testdata/*/*.db*")
	require.NoError(t, err)
	n := 0
	for _, file := range files {
		s, err := snapshot.Open(t.Context(), file, snapshot.Config{})
		if err != nil {
			continue
		}
		for r, err := range s.Live(t.Context(), nil) {
			if err != nil {
				break
			}
			n++
			data := bytes.Clone(r.Value)
			if len(data) == 0 {
				continue
			}
			differOwners(t, data)
			differJSON(t, data)
			differAnnotation(t, data)
			differConfigMap(t, data)
		}
		s.Close()
	}
	t.Log(n)
}

func sorted(data []byte) []byte {
	obj, f, err := DecodeObject(data)
	if err != nil {
		return data
	}
	out, err := EncodeObject(obj, f)
	if err != nil {
		return data
	}
	return out
}
