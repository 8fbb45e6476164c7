package columns_test

import (
	"math/rand"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/columns"
	"github.com/etcdshift/etcdshift/internal/native"
)

// stored returns a random object of a kind as a server stores it.
func stored(t testing.TB, gvk gvr.GroupVersionKind, seed int64) encoding.Value {
	t.Helper()
	obj, err := scheme.Scheme.New(gvk)
	require.NoError(t, err)
	fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(seed), scheme.Codecs).Fill(obj)
	raw, err := obj.(interface{ Marshal() ([]byte, error) }).Marshal()
	require.NoError(t, err)
	return encoding.Value{Format: encoding.FormatProtobuf, GVK: gvk, Raw: raw}
}

// sameRow checks that a sure StoredRow equals the Row of the content.
func sameRow(t *testing.T, table columns.Table, v encoding.Value) (sure bool) {
	t.Helper()
	row, sure := table.StoredRow(v, now())
	if sure {
		content, err := native.DecodeParsed(v)
		require.NoError(t, err, "%s %x", v.GVK, v.Raw)
		require.Equal(t, table.Row(content, now()), row, "%s %x", v.GVK, v.Raw)
	}
	return sure
}

// TestStoredRowIsNeverWrong checks random objects of every built-in type, sound and damaged.
func TestStoredRowIsNeverWrong(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	whole, sure, damaged := 0, 0, 0
	for _, kind := range inspect.Builtins() {
		table := columns.For(kind)
		for _, version := range []string{"v1", "v2"} {
			gvk := gvr.GroupVersionKind{Group: kind.Resource.Group, Version: version, Kind: kind.Kind}
			if _, err := scheme.Scheme.New(gvk); table.StoredRow == nil || err != nil {
				continue
			}
			for seed := range int64(30) {
				v := stored(t, gvk, seed)
				whole++
				if sameRow(t, table, v) {
					sure++
				}
				raw := v.Raw
				for range 20 {
					v.Raw = append([]byte(nil), raw...)
					if at := rng.Intn(len(raw) + 1); at < len(raw) {
						v.Raw[at] = byte(rng.Intn(256))
					}
					if sameRow(t, table, v) {
						damaged++
					}
				}
			}
		}
	}
	require.Greater(t, sure, whole/2, "of %d", whole)
	require.Positive(t, damaged)
}

func BenchmarkPodRow(b *testing.B) {
	data, err := os.ReadFile("../../encoding/testdata/k8s/core.v1.Pod.pb")
	require.NoError(b, err)
	v, err := encoding.Parse(data)
	require.NoError(b, err)
	types := inspect.Builtins()
	table := columns.For(types[slices.IndexFunc(types, func(t *inspect.Type) bool { return t.Name() == "pods" })])
	b.Run("stored", func(b *testing.B) {
		for b.Loop() {
			_, sure := table.StoredRow(v, now())
			require.True(b, sure)
		}
	})
	b.Run("content", func(b *testing.B) {
		for b.Loop() {
			content, err := native.DecodeParsed(v)
			require.NoError(b, err)
			table.Row(content, now())
		}
	})
}
