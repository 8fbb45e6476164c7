package native_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/internal/native"
)

func stored(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../encoding/testdata", name))
	require.NoError(t, err)
	return data
}

// wrap returns obj in protobuf as stored by a server.
func wrap(t testing.TB, gvk schema.GroupVersionKind, obj runtime.Object) []byte {
	t.Helper()
	obj.GetObjectKind().SetGroupVersionKind(gvk)
	data, err := runtime.Encode(protobuf.NewSerializer(nil, nil), obj)
	require.NoError(t, err)
	return data
}

// TestDecodeEqualsTyped checks that the content equals the typed object in JSON.
func TestDecodeEqualsTyped(t *testing.T) {
	files, err := filepath.Glob("../../encoding/testdata/k8s/*.pb")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		data := stored(t, "k8s/"+filepath.Base(file))
		got, err := native.Decode(data)
		require.NoError(t, err, file)
		typed, gvk, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
		require.NoError(t, err, file)
		typed.GetObjectKind().SetGroupVersionKind(*gvk)
		want, err := json.Marshal(typed)
		require.NoError(t, err)
		have, err := json.Marshal(got)
		require.NoError(t, err)
		require.JSONEq(t, string(want), string(have), file)
	}
}

// TestDecodeKnowsEveryKind checks every kind of the scheme that a server stores as protobuf.
func TestDecodeKnowsEveryKind(t *testing.T) {
	decoded := 0
	for gvk := range scheme.Scheme.AllKnownTypes() {
		obj, err := scheme.Scheme.New(gvk)
		require.NoError(t, err)
		_, isObject := obj.(metav1.Object)
		if !isObject || gvk.Version == runtime.APIVersionInternal {
			continue
		}
		obj.(metav1.Object).SetName("n")
		content, err := native.Decode(wrap(t, gvk, obj))
		require.NoError(t, err, gvk)
		apiVersion, kind := gvk.ToAPIVersionAndKind()
		require.Equal(t, apiVersion, content["apiVersion"])
		require.Equal(t, kind, content["kind"])
		require.Equal(t, "n", content["metadata"].(map[string]any)["name"])
		require.True(t, native.Known(gvk))
		decoded++
	}
	require.Greater(t, decoded, 100)
}

func TestDecodeJSONAndCBOR(t *testing.T) {
	for _, name := range []string{"cr/put-beta.after", "c1.cbor", "crd.etcd"} {
		want, _, err := encoding.DecodeObject(stored(t, name))
		require.NoError(t, err)
		got, err := native.Decode(stored(t, name))
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.NotEmpty(t, got["kind"])
	}
}

func TestUnknownKind(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "a", Namespace: "b", UID: "c", Generation: 7, Labels: map[string]string{"l": "1"},
		Annotations: map[string]string{"a": "2"},
		Finalizers:  []string{"f"}, OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node",
			Name: "n", UID: "u"}},
	}}
	data := wrap(t, schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, pod)
	_, err := native.Decode(data)
	require.ErrorIs(t, err, native.ErrUnknownKind)
	require.EqualError(t, err, "example.com/v1 Widget: kind is not known to this build")
	err = native.CheckServed(schema.GroupVersionKind{Group: "autoscaling", Version: "v2beta2",
		Kind: "HorizontalPodAutoscaler"})
	require.ErrorIs(t, err, native.ErrUnknownKind)
	require.EqualError(t, err,
		"autoscaling/v2beta2 HorizontalPodAutoscaler: Kubernetes 1.35 is the last that decodes this version")
	got, err := native.Metadata(data)
	require.NoError(t, err)
	text, err := json.Marshal(got)
	require.NoError(t, err)
	require.JSONEq(
		t, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","namespace":"b","uid":"c","generation":7,
		"labels":{"l":"1"},"annotations":{"a":"2"},"finalizers":["f"],"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n","uid":"u"}]}}`, string(text))
}

func TestDecodeErrors(t *testing.T) {
	_, err := native.Decode([]byte("k8s:enc:aescbc:v1:key1:x"))
	require.ErrorIs(t, err, encoding.ErrEncrypted)
	_, err = native.Decode([]byte("12345"))
	require.ErrorIs(t, err, encoding.ErrUnknownFormat)
	_, err = native.Metadata([]byte("12345"))
	require.ErrorIs(t, err, encoding.ErrUnknownFormat)
	whole := stored(t, "k8s/core.v1.Secret.pb")
	_, err = native.Decode(whole[:len(whole)-20])
	require.Error(t, err)
}

func FuzzDecode(f *testing.F) {
	files, err := filepath.Glob("../../encoding/testdata/k8s/*")
	require.NoError(f, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		content, err := native.Decode(data)
		if err == nil {
			_, _ = json.Marshal(content)
		}
		_, _ = native.Metadata(data)
	})
}
