package encoding

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPlainLength: eight bytes at a time end at the byte where one at a time do.
func TestPlainLength(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 31))
	for range 100_000 {
		text := make([]byte, random.IntN(40))
		for i := range text {
			if text[i] = byte(' ' + random.IntN(95)); random.IntN(20) == 0 {
				text[i] = byte(random.IntN(256))
			}
		}
		want := 0
		for want < len(text) && plain(text[want]) {
			want++
		}
		require.Equal(t, want, plainLength(text), "%q", text)
	}
}
