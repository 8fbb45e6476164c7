package schema

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/encoding"
)

// requireRelabelled compares what bytes tell with each step of a migration, of both modes. It
// returns whether the bytes tell.
func requireRelabelled(t testing.TB, crd *CRD, value []byte) bool {
	out, obj, from, ok := crd.Relabelled(value, "", "x")
	if !ok {
		return false
	}
	for _, mode := range []Mode{Settled, Pure} {
		slow, format, err := encoding.DecodeObject(value)
		require.NoError(t, err)
		require.Equal(t, "example.com/"+from, slow["apiVersion"])
		dropped, err := crd.Begin(slow)
		require.NoError(t, err)
		require.Empty(t, dropped, "%s", value)
		crd.Relabel(slow)
		dropped, err = crd.Finish(slow, mode)
		require.NoError(t, err)
		require.Empty(t, dropped, "%s", value)
		changed, lost, err := crd.RelabelManagedFields(slow, true)
		require.NoError(t, err)
		require.Zero(t, changed)
		require.Empty(t, lost)
		if mode == Settled {
			_, err = crd.RewriteManagedFields(slow)
			require.NoError(t, err)
		}
		text, err := encoding.EncodeObject(slow, format)
		require.NoError(t, err)
		require.Equal(t, string(text), string(out))
		require.Equal(t, slow, obj)
	}
	return true
}

// TestRelabelled: random objects at random schemas.
func TestRelabelled(t *testing.T) {
	told := 0
	for seed := range uint64(200) {
		g := generator{rand.New(rand.NewPCG(seed, 19))}
		crd, err := ParseCRD(g.crd())
		require.NoError(t, err)
		if _, err := crd.Version("v2"); err != nil {
			continue
		}
		for range 60 {
			obj := g.object()
			for _, version := range []string{"example.com/v2", "example.com/v1", "example.com/v2"} { // some fit both
				if obj["apiVersion"] = version; g.IntN(8) > 0 {
					_, _ = crd.Begin(obj)
				}
			}
			metadata, isObject := obj["metadata"].(map[string]any)
			if isObject && g.IntN(3) == 0 {
				metadata["managedFields"] = []any{map[string]any{"manager": "m", "operation": "Update", "apiVersion": "example.com/" + g.one("v2", "v2", "v1").(string),
					"fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:spec": g.fieldsV1(2)}}}
			}
			obj["apiVersion"] = "example.com/" + g.one("v1", "v1", "v1", "v2", "v3").(string)
			value, err := encoding.EncodeObject(obj, encoding.FormatJSON)
			require.NoError(t, err)
			for _, value := range [][]byte{value, g.mutated(value), g.mutated(value)} {
				if requireRelabelled(t, crd, value) {
					told++
				}
			}
		}
	}
	t.Log(told)
	require.Greater(t, told, 1_000)
}

// TestReader: text that is canonical decodes as encoding.DecodeObject decodes it.
func TestReader(t *testing.T) {
	read := 0
	check := func(value string) {
		c := canonical{text: []byte(value)}
		if !strings.HasPrefix(value, "{") || !c.any() || c.at != len(value) {
			return
		}
		read++
		want, _, err := encoding.DecodeObject([]byte(value))
		require.NoError(t, err, value)
		r := reader{text: value}
		require.Equal(t, any(want), r.value(), value)
		require.Equal(t, len(value), r.at)
	}
	for _, value := range []string{
		`{}`, `{"a":[]}`, `{"a":{}}`, `{"a":[{},[],[[1]],{"b":[{}]}]}`, `{"a":"\"","b":"\\","c":"\\\"","d":"x\\"}`, `{"\"":1,"\\":2}`, `{"a":"\u003c\u2028\n\u0001ü漢😀"}`,
		`{"a":1e+21,"b":1.5,"c":-2,"d":0,"e":999999999999999999,"f":-1e-7,"g":0.1}`, `{"a":true,"b":false,"c":null,"d":[true,false,null,"x"]}`,
	} {
		check(value)
	}
	require.Equal(t, 9, read)
	for seed := range uint64(2_000) {
		g := generator{rand.New(rand.NewPCG(seed, 23))}
		value, err := encoding.EncodeObject(g.object(), encoding.FormatJSON)
		require.NoError(t, err)
		check(strings.TrimSuffix(string(value), "\n"))
		check(strings.TrimSuffix(string(g.mutated(value)), "\n"))
	}
	require.Greater(t, read, 2_000)
}
