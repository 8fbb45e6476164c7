package encoding

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
)

// TestNextField checks that nextField returns the fields and errors of the general decoder.
func TestNextField(t *testing.T) {
	random, good := rand.New(rand.NewPCG(5, 6)), 0
	for range 300000 {
		msg := make([]byte, 1+random.IntN(300))
		for i := range min(len(msg), 12) {
			msg[i] = byte(random.Uint32())
		}
		if random.IntN(2) == 0 {
			msg[0] = msg[0]&0x78 | byte(protowire.BytesType)
		}
		f, code := nextField(msg, 0)
		num, typ, n := protowire.ConsumeTag(msg)
		if n < 0 {
			require.Negative(t, code)
			continue
		}
		m := protowire.ConsumeFieldValue(num, typ, msg[n:])
		require.Equal(t, m < 0, code < 0, "%x", msg)
		if m < 0 {
			continue
		}
		good++
		require.Equal(t, []any{num, typ, 0, n + m}, []any{f.Number, f.Type, f.start, f.end}, "%x", msg)
		if typ == protowire.BytesType {
			content, _ := protowire.ConsumeBytes(msg[n:])
			require.Equal(t, content, f.Payload)
		}
	}
	require.Greater(t, good, 10000)
}
