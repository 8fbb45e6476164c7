package encoding_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/etcdshift/etcdshift/encoding"
)

const annotated = "kcp.io/shard"

// The edit of the bytes equals what k8s.io/api marshals after the same edit of the typed object.
func TestReplaceAnnotationEqualsTypedEdit(t *testing.T) {
	for name, empty := range natives() {
		data := stored(t, "k8s/"+name+".pb")
		obj := decode(t, data, empty())
		set := func(value string) []byte {
			obj.(metav1.Object).SetAnnotations(map[string]string{"a": "root", annotated: value, "z": "3"})
			return rewrap(t, data, obj)
		}
		before, after := set("root"), set("a longer <name>")
		out, err := encoding.ReplaceAnnotation(before, annotated, "a longer <name>")
		require.NoError(t, err, name)
		require.Equal(t, after, out, name)
		same, err := encoding.ReplaceAnnotation(before, annotated, "root")
		require.NoError(t, err)
		require.Same(t, &before[0], &same[0], name)
		same, err = encoding.ReplaceAnnotation(data, annotated, "root")
		require.NoError(t, err)
		require.Same(t, &data[0], &same[0], "%s has none", name)
	}
}

// In JSON one text is another, and all around it stays: the order of fields, spaces, what is escaped in which way.
func TestReplaceAnnotationJSON(t *testing.T) {
	for before, after := range map[string]string{
		`{"z":1,"metadata":{"name":"\u0061","annotations":{"b":"<","kcp.io/shard":"root","a":"\u003c"}},"a":[1 ,2]}` + "\n": "",
		` {"metadata":{"annotations":{"kcp.io\/shard":"root"}}}`:                                                            ` {"metadata":{"annotations":{"kcp.io\/shard":"shard-1"}}}`,
		`{"metadata":{"annotations":{"kcp.io/shard":null}}}`:                                                                `{"metadata":{"annotations":{"kcp.io/shard":"shard-1"}}}`,
	} {
		if after == "" {
			after = strings.Replace(before, `"root"`, `"shard-1"`, 1)
		}
		out, err := encoding.ReplaceAnnotation([]byte(before), annotated, "shard-1")
		require.NoError(t, err)
		require.Equal(t, after, string(out))
	}
	for _, same := range []string{
		`{}`, `{"metadata":null}`, `{"metadata":{}}`, `{"metadata":{"annotations":null}}`, `{"metadata":{"annotations": {"a":"b"}}}`,
		`{"metadata":{"annotations":{"kcp.io/shard": "shard-1"}}}`, `{"kcp.io/shard":"root"}`,
	} {
		out, err := encoding.ReplaceAnnotation([]byte(same), annotated, "shard-1")
		require.NoError(t, err, same)
		require.Equal(t, same, string(out))
	}
	for _, wrong := range []string{`{"metadata":1}`, `{"metadata":{"annotations":[]}}`, `{"metadata":{"annotations":{"kcp.io/shard":1}}}`, `{"metadata":`} {
		_, err := encoding.ReplaceAnnotation([]byte(wrong), annotated, "shard-1")
		require.Error(t, err, wrong)
	}
}

// In CBOR the object is what an API server encodes of the changed one.
func TestReplaceAnnotationCBOR(t *testing.T) {
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
	out, err := encoding.ReplaceAnnotation(before, annotated, "shard-1")
	require.NoError(t, err)
	require.Equal(t, after, out)
	same, err := encoding.ReplaceAnnotation(after, annotated, "shard-1")
	require.NoError(t, err)
	require.Same(t, &after[0], &same[0])
}
