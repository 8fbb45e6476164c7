package encoding

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLacksOwners: no owner is overlooked, in stored values and in damaged ones.
func TestLacksOwners(t *testing.T) {
	random, owned, without := rand.New(rand.NewPCG(3, 4)), 0, 0
	check := func(data []byte) {
		meta, err := ReadMeta(data)
		has := err == nil && len(meta.OwnerReferences) > 0
		if lacksOwners(data) {
			require.False(t, has, "%q", data)
			without++
		} else if has {
			owned++
		}
	}
	require.NoError(t, filepath.WalkDir("testdata", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		check(data)
		for range 200 {
			if len(data) == 0 || len(data) > 64<<10 {
				break
			}
			damaged := append([]byte{}, data...)
			damaged[random.IntN(min(len(data), 400))] = byte(random.IntN(256))
			check(damaged)
		}
		return err
	}))
	require.Positive(t, without)
	owner := true
	value, err := Set([]byte(`{"apiVersion":"v1","kind":"X","metadata":{"name":"a"}}`), []any{
		map[string]any{"apiVersion": "v1", "kind": "A", "name": "a", "uid": "u"},
		map[string]any{"apiVersion": "b/v1", "kind": "B", "name": "b", "uid": "v", "controller": owner},
	}, "metadata", "ownerReferences")
	require.NoError(t, err)
	check(value)
	require.Positive(t, owned)
	apiVersion, kind := ControllerKind(value)
	require.Equal(t, []string{"b/v1", "B"}, []string{apiVersion, kind})
}
