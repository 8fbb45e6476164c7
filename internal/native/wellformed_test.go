package native

import (
	"math/rand"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/etcdshift/etcdshift/encoding"
)

// encoded returns a random object of the kind as a server encodes it.
func encoded(t testing.TB, gvk schema.GroupVersionKind, seed int64) []byte {
	t.Helper()
	obj, err := scheme.Scheme.New(gvk)
	require.NoError(t, err)
	fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(seed), scheme.Codecs).Fill(obj)
	raw, err := obj.(interface{ Marshal() ([]byte, error) }).Marshal()
	require.NoError(t, err)
	return raw
}

func decodes(t testing.TB, gvk schema.GroupVersionKind, raw []byte) bool {
	t.Helper()
	obj, err := scheme.Scheme.New(gvk)
	require.NoError(t, err)
	return obj.(interface{ Unmarshal([]byte) error }).Unmarshal(raw) == nil
}

// TestWellFormedIsNeverWrong checks that accepted messages decode, and convert to content if
// Decodes says so: random objects of every kind, sound and damaged.
func TestWellFormedIsNeverWrong(t *testing.T) {
	whole, accepted, damaged, refused, converted := 0, 0, 0, 0, 0
	rng := rand.New(rand.NewSource(1))
	for gvk := range messages() {
		obj, _ := scheme.Scheme.New(gvk)
		if _, ok := obj.(interface{ Marshal() ([]byte, error) }); !ok || gvk.Version == runtime.APIVersionInternal {
			continue
		}
		for seed := range int64(4) {
			raw := encoded(t, gvk, seed)
			whole++
			if wellFormed(gvk, raw) {
				accepted++
				require.True(t, decodes(t, gvk, raw), "%s %x", gvk, raw)
			}
			for range 40 {
				bad := append([]byte(nil), raw...)
				for range 1 + rng.Intn(2) {
					if at := rng.Intn(len(bad) + 1); at < len(bad) {
						bad[at] = byte(rng.Intn(256))
					} else {
						bad = bad[:rng.Intn(len(bad)+1)]
					}
				}
				damaged++
				if v := (encoding.Value{Format: encoding.FormatProtobuf, GVK: gvk, Raw: bad}); Decodes(v) {
					_, err := DecodeParsed(v)
					require.NoError(t, err, "%s %x", gvk, bad)
					converted++
				}
				if !wellFormed(gvk, bad) {
					refused++
				} else {
					require.True(t, decodes(t, gvk, bad), "%s %x", gvk, bad)
				}
			}
		}
	}
	require.Greater(t, whole, 500)
	require.Greater(t, accepted, whole*9/10, "of %d", whole)
	require.Greater(t, refused, damaged/10, "of %d", damaged)
	require.Greater(t, converted, damaged/50, "of %d", damaged)
}

func FuzzWellFormed(f *testing.F) {
	kinds := []schema.GroupVersionKind{
		{Version: "v1", Kind: "Pod"}, {Version: "v1", Kind: "Node"}, {Version: "v1", Kind: "ResourceQuota"},
		{Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
		{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"},
	}
	for i, gvk := range kinds {
		f.Add(byte(i), encoded(f, gvk, 1))
	}
	f.Fuzz(func(t *testing.T, kind byte, raw []byte) {
		gvk := kinds[int(kind)%len(kinds)]
		if wellFormed(gvk, raw) && !decodes(t, gvk, raw) {
			t.Fatalf("%s %x", gvk, raw)
		}
	})
}

func BenchmarkCheckPod(b *testing.B) {
	data, err := os.ReadFile("../../encoding/testdata/k8s/core.v1.Pod.pb")
	require.NoError(b, err)
	v, err := encoding.Parse(data)
	require.NoError(b, err)
	gvk, raw := v.GVK, v.Raw
	b.Run("bytes", func(b *testing.B) {
		b.SetBytes(int64(len(raw)))
		for b.Loop() {
			require.True(b, wellFormed(gvk, raw))
		}
	})
	b.Run("decoded", func(b *testing.B) {
		b.SetBytes(int64(len(raw)))
		for b.Loop() {
			require.True(b, decodes(b, gvk, raw))
		}
	})
}
