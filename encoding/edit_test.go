package encoding_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/etcdshift/etcdshift/encoding"
)

const annotated = "kcp.io/shard"

// The bytes after Set equal the output of k8s.io/api after the same edit of the typed object.
func TestSetMetadataEqualsTypedEdit(t *testing.T) {
	for name, empty := range natives() {
		data := stored(t, "k8s/"+name+".pb")
		for _, c := range []struct {
			path  string
			value any
			typed func(metav1.Object)
		}{
			{"annotations", map[string]any{"a": "1", "b": "<&>", "z": "3"},
				func(o metav1.Object) { o.SetAnnotations(map[string]string{"a": "1", "b": "<&>", "z": "3"}) }},
			{"annotations", nil, func(o metav1.Object) { o.SetAnnotations(nil) }},
			{"labels", map[string]any{"labelsKey": "x"},
				func(o metav1.Object) { o.SetLabels(map[string]string{"labelsKey": "x"}) }},
			{"finalizers", []any{"a", "finalizersValue", "b"},
				func(o metav1.Object) { o.SetFinalizers([]string{"a", "finalizersValue", "b"}) }},
			{"finalizers", nil, func(o metav1.Object) { o.SetFinalizers(nil) }},
			{"name", "other", func(o metav1.Object) { o.SetName("other") }},
			{"generation", int64(8), func(o metav1.Object) { o.SetGeneration(8) }},
			{"ownerReferences", nil, func(o metav1.Object) { o.SetOwnerReferences(nil) }},
			{"managedFields", nil, func(o metav1.Object) { o.SetManagedFields(nil) }},
		} {
			set := func(data []byte) []byte {
				out, err := encoding.Set(data, c.value, "metadata", c.path)
				require.NoError(t, err, name)
				again, err := encoding.Set(out, c.value, "metadata", c.path)
				require.NoError(t, err)
				require.Same(t, &out[0], &again[0])
				is, err := encoding.Get(out, "metadata", c.path)
				require.NoError(t, err)
				require.Equal(t, c.value, is)
				return out
			}
			obj := decode(t, data, empty())
			c.typed(obj)
			after := set(data)
			requireSame(t, rewrap(t, data, obj), after, name+" "+c.path)
			back, err := encoding.Get(data, "metadata", c.path)
			require.NoError(t, err)
			// Get does not return the times of managedFields
			if restored, err := encoding.Set(after, back, "metadata", c.path); c.path != "managedFields" {
				require.NoError(t, err)
				requireSame(t, data, restored, name+" "+c.path)
			}
		}
	}
}

// Set edits one annotation among several or none.
func TestSetAnnotationEqualsTypedEdit(t *testing.T) {
	for name, empty := range natives() {
		data := stored(t, "k8s/"+name+".pb")
		obj := decode(t, data, empty())
		for _, others := range []map[string]string{nil, {"a": "root"}, {"a": "root", "z": "3"}, {"z": "3"},
			{"a": "1", annotated: "root", "z": "3"}} {
			obj.SetAnnotations(others)
			before := rewrap(t, data, obj)
			obj.SetAnnotations(map[string]string{annotated: "a longer <name>"})
			for key, value := range others {
				if key != annotated {
					obj.GetAnnotations()[key] = value
				}
			}
			set := func(data []byte) []byte {
				out, err := encoding.Set(data, "a longer <name>", "metadata", "annotations", annotated)
				require.NoError(t, err, name)
				return out
			}
			requireSame(t, rewrap(t, data, obj), set(before), name)
			if len(others) > 0 {
				requireUnknownFieldsSurvive(t, before, metaLevels(), set)
			}
		}
	}
}

// The edited CBOR equals an API server's encoding of the changed object.
func TestSetCBOR(t *testing.T) {
	obj, format, err := encoding.DecodeObject(stored(t, "c1.cbor"))
	require.NoError(t, err)
	set := func(value string) []byte {
		u := unstructured.Unstructured{Object: obj}
		u.SetAnnotations(map[string]string{annotated: value})
		out, err := encoding.EncodeObject(u.Object, format)
		require.NoError(t, err)
		return out
	}
	before, after := set("root"), set("shard-1")
	out, err := encoding.Set(before, "shard-1", "metadata", "annotations", annotated)
	require.NoError(t, err)
	require.Equal(t, after, out)
	same, err := encoding.Set(after, "shard-1", "metadata", "annotations", annotated)
	require.NoError(t, err)
	require.Same(t, &after[0], &same[0])
	whole, err := encoding.Set(before, obj)
	require.NoError(t, err)
	require.Equal(t, after, whole)
}

func TestGetInEveryFormat(t *testing.T) {
	pb := stored(t, "k8s/apps.v1.DaemonSet.pb")
	asJSON := stored(t, "k8s/apps.v1.DaemonSet.json")
	obj, _, err := encoding.DecodeObject(asJSON)
	require.NoError(t, err)
	asCBOR, err := encoding.EncodeObject(obj, encoding.FormatCBOR)
	require.NoError(t, err)
	for _, path := range [][]string{{"metadata", "name"}, {"metadata", "generation"}, {"metadata", "labels"},
		{"metadata", "labels", "labelsKey"},
		{"metadata", "labels", "none"}, {"metadata", "ownerReferences"}, {"metadata", "finalizers"},
		{"spec", "template", "spec", "serviceAccountName"}} {
		want, err := encoding.Get(pb, path...)
		require.NoError(t, err)
		for _, data := range [][]byte{asJSON, asCBOR} {
			got, err := encoding.Get(data, path...)
			require.NoError(t, err)
			require.Equal(t, want, got, "%v", path)
		}
	}
	for _, data := range [][]byte{asJSON, asCBOR} {
		whole, err := encoding.Get(data)
		require.NoError(t, err)
		require.Equal(t, obj, whole)
	}
}
