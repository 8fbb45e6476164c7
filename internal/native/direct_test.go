package native

import (
	"math/rand"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/equality"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/etcdshift/etcdshift/encoding"
)

// direct reports whether Direct decodes a Pod with a field set, and checks that Decode accepts the
// Pod too, and that DecodeUnmanaged leaves out nothing but managedFields.
func direct(t *testing.T, fields string) bool {
	t.Helper()
	pod := &corev1.Pod{}
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "a", FieldsV1: metav1.NewFieldsV1(fields)}}
	raw, err := pod.Marshal()
	require.NoError(t, err)
	v := encoding.Value{Format: encoding.FormatProtobuf, GVK: corev1.SchemeGroupVersion.WithKind("Pod"), Raw: raw}
	sure := NewDirect(pod, nil).Decode(v, &corev1.Pod{})
	whole, err := DecodeParsed(v)
	if sure {
		require.NoError(t, err, "%q", fields)
	}
	bare, bareErr := DecodeUnmanaged(v)
	require.Equal(t, err, bareErr, "%q", fields)
	if sure {
		require.NotEqual(t, whole, bare)
	}
	unstructured.RemoveNestedField(whole, "metadata", "managedFields")
	unstructured.RemoveNestedField(bare, "metadata", "managedFields")
	require.Equal(t, whole, bare)
	return sure
}

func TestDirectFieldSets(t *testing.T) {
	const deep = 100
	for text, sure := range map[string]bool{
		`{}`: true, `{"f:a":{".":{},"k:{\"b\":\"c\"}":{}}}`: true, `{"f:a":"words","f:b":[1,true,null]}`: true,
		" {}": false, `{} `: true, `{}{}`: false, `{"f:a"}`: false, `"words"`: false, `[]`: false, `null`: false,
		``: false, `{"f:a":1e999}`: false, `{"f:a":` + strings.Repeat("1", 400) + `}`: false, "{\"\x00\":{}}": false,
		strings.Repeat(`{"a":`, deep-1) + "{}" + strings.Repeat("}", deep-1): true,
		strings.Repeat(`{"a":`, deep) + "{}" + strings.Repeat("}", deep):     false,
	} {
		require.Equal(t, sure, direct(t, text), "%q", text)
	}
}

func FuzzDirectFieldSets(f *testing.F) {
	for _, text := range []string{`{"f:a":"words","f:b":[1.5,true,null]}`, `{"k:{\"b\":\"c\"}":{}} `} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { direct(t, text) })
}

// random returns a random object of a kind as a server stores it.
func random(t *testing.T, gvk schema.GroupVersionKind, seed int64) encoding.Value {
	obj, err := scheme.Scheme.New(gvk)
	require.NoError(t, err)
	fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(seed), scheme.Codecs).Fill(obj)
	raw, err := obj.(interface{ Marshal() ([]byte, error) }).Marshal()
	require.NoError(t, err)
	return encoding.Value{Format: encoding.FormatProtobuf, GVK: gvk, Raw: raw}
}

// testAs checks that As of random stored objects equals the result by way of their content.
func testAs[T any](t *testing.T, gvk schema.GroupVersionKind) {
	direct := 0
	for seed := range int64(100) {
		v := random(t, gvk, seed)
		got, err := As[T](v, nil)
		content, wantErr := DecodeParsed(v)
		require.Equal(t, wantErr, err)
		if err != nil {
			continue
		}
		want := *new(T)
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(content, &want))
		require.True(t, equality.Semantic.DeepEqual(want, got), "%s, seed %d", gvk, seed)
		if Decodes(v) {
			direct++
		}
	}
	require.Positive(t, direct, gvk)
}

func TestAs(t *testing.T) {
	core := corev1.SchemeGroupVersion
	testAs[corev1.Pod](t, core.WithKind("Pod"))
	testAs[corev1.Secret](t, core.WithKind("Secret"))
	testAs[corev1.ConfigMap](t, core.WithKind("ConfigMap"))
	testAs[corev1.Service](t, core.WithKind("Service"))
	testAs[corev1.PersistentVolumeClaim](t, core.WithKind("PersistentVolumeClaim"))
	testAs[coordinationv1.Lease](t, coordinationv1.SchemeGroupVersion.WithKind("Lease"))
	testAs[corev1.Pod](t, core.WithKind("PodTemplate")) // fields of another kind
}
