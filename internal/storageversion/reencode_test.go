package storageversion

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/encoding/schema"
)

// A server writes the float -0.0 as -0, and its next no-op write as 0; in CBOR the value stays.
func TestNegativeZero(t *testing.T) {
	for _, tc := range []struct{ stored, pure, settled string }{
		{`{"a":-0.0}`, `{"a":-0}`, `{"a":0}`},
		{`{"a":[-0.0]}`, `{"a":[-0]}`, `{"a":[0]}`},
		{`{"a":[-0.0,"-0,"]}`, `{"a":[-0,"-0,"]}`, `{"a":[0,"-0,"]}`},
		{`{"a":-0.5}`, `{"a":-0.5}`, `{"a":-0.5}`},
	} {
		for mode, want := range map[schema.Mode]string{schema.Pure: tc.pure, schema.Settled: tc.settled} {
			obj, f, err := encoding.DecodeObject([]byte(tc.stored))
			require.NoError(t, err)
			out, err := encode(obj, f, mode)
			require.NoError(t, err)
			require.Equal(t, want+"\n", string(out), tc.stored)
			cbor, err := encode(obj, encoding.FormatCBOR, mode)
			require.NoError(t, err)
			back, _, err := encoding.DecodeObject(cbor)
			require.NoError(t, err)
			again, err := encoding.EncodeObject(back, encoding.FormatCBOR)
			require.NoError(t, err)
			require.Equal(t, cbor, again)
		}
	}
}
