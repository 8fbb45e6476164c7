package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// TestOthers checks that an object is redacted alike whether secrets of other objects are searched
// in one pass with its own, or in a second pass. The secrets are pieces of the object's texts.
func TestOthers(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	met := 0
	for name, obj := range objectsOf(t, "testdata/hidden.txtar", "testdata/shown.txtar") {
		text, err := json.Marshal(obj)
		require.NoError(t, err)
		for range 4 {
			s := NewShared()
			for range random.IntN(3) {
				s.Add(Secret{pieceOf(random, string(text)), true})
			}
			s.Settle(nil)
			hide(obj, random, s)
			once, twice := runtime.DeepCopyJSON(obj), runtime.DeepCopyJSON(obj)
			changed := s.Object([]byte("/registry/a/b/c"), once)

			w, own := newWalker(nil), known{}
			w.note = noter(own.add)
			is := w.redactOwn([]byte("/registry/a/b/c"), twice)
			w.note = nil
			if len(own)+len(s.index) > 0 && w.redactKnown(twice, both{own, s}) {
				met++
				is = true
			}
			require.Equal(t, twice, once, name)
			require.Equal(t, is, changed, name)
		}
	}
	require.Greater(t, met, 100)
}

// objectsOf returns the texts of archives, each in a ConfigMap and a Pod, or as an object.
func objectsOf(t *testing.T, archives ...string) map[string]map[string]any {
	objects := map[string]map[string]any{}
	for _, path := range archives {
		archive, err := txtar.ParseFile(path)
		require.NoError(t, err)
		for _, file := range archive.Files {
			text := string(file.Data)
			obj := map[string]any{"apiVersion": "v1", "kind": "Pod", "data": map[string]any{"a": text, "b c": "x"},
				"spec": map[string]any{"args": []any{text, map[string]any{"f:x": text, "k y": "z"}}}}
			if strings.HasPrefix(file.Name, "object:") {
				data, err := yaml.YAMLToJSON(file.Data)
				require.NoError(t, err)
				obj = map[string]any{}
				require.NoError(t, utiljson.Unmarshal(data, &obj))
			}
			objects[path+" "+file.Name] = obj
		}
	}
	return objects
}

// pieceOf returns a piece of a text, sometimes with other bytes than ASCII.
func pieceOf(random *rand.Rand, text string) string {
	n := knownBegin + random.IntN(16)
	at := random.IntN(max(1, len(text)-n))
	piece := text[at:min(len(text), at+n)]
	if random.IntN(4) == 0 {
		piece += "\u00e9\u00fc"
	}
	return piece
}

// hide puts a secret of s, encoded, somewhere into an object: as a value, or as a name.
func hide(obj map[string]any, random *rand.Rand, s *Shared) {
	secret := "nothing at all"
	for _, of := range s.index {
		if random.IntN(4) > 0 {
			secret = of[random.IntN(len(of))].text
		}
	}
	for range []int{0, 1, 2, 3, deepest - 1, deepest}[random.IntN(6)] {
		switch random.IntN(3) {
		case 0:
			secret = base64.StdEncoding.EncodeToString([]byte("abc"[:random.IntN(4)] + secret))
		case 1:
			secret = hex.EncodeToString([]byte(secret))
		case 2:
			secret = "it is " + secret + "."
		}
	}
	obj["extra"] = []any{
		map[string]any{secret: "x"}, map[string]any{"a": map[string]any{secret: "x"}}, []any{secret},
		map[string]any{"openAPIV3Schema": secret}, map[string]any{"text": secret, "kind": secret}, map[string]any{
			"apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIResourceSchema", "spec": map[string]any{"a": secret}},
	}[random.IntN(6)]
}
