package native

import (
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

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
