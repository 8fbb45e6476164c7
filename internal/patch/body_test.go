package patch

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// pod returns an object with lists of each merge strategy.
func pod() map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "p", "finalizers": []any{"a/b", "c/d"}},
		"spec": map[string]any{
			"containers": []any{
				map[string]any{"name": "c", "image": "i:1",
					"ports": []any{map[string]any{"containerPort": int64(80), "protocol": "TCP"}}},
				map[string]any{"name": "d", "env": []any{map[string]any{"name": "e", "value": "hidden"}}},
			},
			"tolerations": []any{map[string]any{"key": "k"}}, "priority": int64(9007199254740993),
		},
	}
}

// FuzzApply checks that a patch never panics, changes its input object, or quotes a value in an
// error.
func FuzzApply(f *testing.F) {
	for _, text := range []string{
		`[{"op": "copy", "from": "/spec/containers", "path": "/spec/containers/-"}]`,
		`[{"op": "move", "from": "/spec", "path": "/spec/a"}]`,
		`[{"op": "replace", "path": "", "value": null}]`, `[{"op": "add", "path": "/spec/containers/-1", "value": 1}]`,
		`[{"op": "test", "path": "/spec/containers/1/env/0/value", "value": "x"}]`,
		`{"spec": {"containers": [{"name": "c", "$patch": "delete"}], "$setElementOrder/containers": [{"name": "d"}]}}`,
		`{"metadata": {"$deleteFromPrimitiveList/finalizers": ["a/b"]}}`, `{"$patch": "replace"}`,
		`{"spec": {"$retainKeys": ["priority"]}}`,
		`{"spec": {"containers": [{"image": "x"}]}}`, `{"spec": null}`, `{"spec": {"containers": {"name": 1}}}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, kind := range []string{typeJSON, typeMerge, typeStrategic} {
			b, err := readBody(kind, []byte(text))
			if err != nil {
				continue
			}
			content := pod()
			patched, err := b.apply(content, &corev1.Pod{})
			require.Equal(t, pod(), content)
			if err != nil {
				require.NotContains(t, err.Error(), "hidden")
				continue
			}
			require.True(t, reflect.DeepEqual(patched, runtime.DeepCopyJSON(patched)), "JSON content")
		}
	})
}
