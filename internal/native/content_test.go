package native

import (
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// TestVisit checks that the visited content of random objects equals their decoded content, without
// managedFields and with a resourceVersion, and that names come in order.
func TestVisit(t *testing.T) {
	visited := 0
	for gvk := range scheme.Scheme.AllKnownTypes() {
		obj, err := scheme.Scheme.New(gvk)
		require.NoError(t, err)
		if _, stored := obj.(interface{ Unmarshal([]byte) error }); !stored {
			continue
		}
		for seed := range int64(3) {
			v := random(t, gvk, seed)
			var m ordered
			if !Visit(v, "7", &m) {
				continue
			}
			visited++
			want, err := DecodeUnmanaged(v)
			require.NoError(t, err)
			unstructured.RemoveNestedField(want, "metadata", "managedFields")
			require.NoError(t, unstructured.SetNestedField(want, "7", "metadata", "resourceVersion"))
			require.Equal(t, want, m.made, gvk)
			require.False(t, m.disordered, gvk)
		}
	}
	require.Greater(t, visited, 100)
	v := random(t, corev1.SchemeGroupVersion.WithKind("Pod"), 1)
	v.Raw = v.Raw[:len(v.Raw)-1]
	require.False(t, Visit(v, "", new(maker)))
}

// ordered checks the order of names.
type ordered struct {
	maker
	disordered bool
}

func (o *ordered) Name(name string, field int) {
	in := o.open[len(o.open)-1]
	o.disordered = o.disordered || len(in.fields) > 0 && in.name >= name
	o.maker.Name(name, field)
}

// TestContent compares the content of random objects of all types with the content that the
// converter of apimachinery makes.
func TestContent(t *testing.T) {
	same := func(obj runtime.Object) {
		want, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		got, gotErr := Content(obj)
		require.Equal(t, err == nil, gotErr == nil, "%T: %v", obj, err)
		require.Equal(t, want, got, "%T", obj)
	}
	for gvk := range scheme.Scheme.AllKnownTypes() {
		for seed := range int64(6) {
			obj, err := scheme.Scheme.New(gvk)
			require.NoError(t, err)
			if _, stored := obj.(interface{ Unmarshal([]byte) error }); !stored {
				continue
			}
			if seed > 0 {
				fill := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(seed), scheme.Codecs)
				fill.NilChance(float64(seed%5) / 5).Fill(obj)
			}
			same(obj)
		}
	}
}
