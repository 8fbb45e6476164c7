package schema

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/encoding"
)

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
		`{"a":1e+21,"b":1.5,"c":-2,"d":0,"e":999999999999999999,"f":-1e-7,"g":0.1}`, `{"a":9223372036854775807,"b":-9223372036854775807}`, `{"a":true,"b":false,"c":null,"d":[true,false,null,"x"]}`,
	} {
		check(value)
	}
	check(`{"a":9223372036854775808}`)
	check(`{"a":-9223372036854775808}`)
	require.Equal(t, 10, read)
	for seed := range uint64(2_000) {
		g := generator{rand.New(rand.NewPCG(seed, 23))}
		value, err := encoding.EncodeObject(g.object(), encoding.FormatJSON)
		require.NoError(t, err)
		check(strings.TrimSuffix(string(value), "\n"))
		check(strings.TrimSuffix(string(g.mutated(value)), "\n"))
	}
	require.Greater(t, read, 2_000)
}
