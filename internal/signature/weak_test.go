package signature

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"

	"aead.dev/minisign"
	"github.com/stretchr/testify/require"
)

// weakPoints returns the points of small order in each encoding accepted by some verifier, and
// points whose y is not below the prime.
func weakPoints(t *testing.T) (points [][]byte) {
	t.Helper()
	for _, text := range append(smallOrders(),
		"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", // p: 0
		"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", // p+1: 1
		"f4ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f") {
		for _, sign := range []byte{0, 0x80} {
			point, err := hex.DecodeString(text)
			require.NoError(t, err)
			point[31] |= sign
			points = append(points, point)
		}
	}
	return points
}

// TestWeakKeys checks that a key of small order is refused on reading and on use: with S of 0 and R
// of the same order, Ed25519 accepts it as a signature of every eighth file, or of any file.
func TestWeakKeys(t *testing.T) {
	f, accepted := read(t, written(t, "anything")), 0
	for _, point := range weakPoints(t) {
		raw := append([]byte("Ed\x01\x02\x03\x04\x05\x06\x07\x08"), point...)
		line := base64.StdEncoding.EncodeToString(raw)
		_, err := ReadPublic(t.Context(), line)
		require.ErrorIs(t, err, ErrWeak)
		_, err = ReadPublic(t.Context(), written(t, "untrusted comment: x\n"+line+"\n"))
		require.ErrorIs(t, err, ErrWeak)

		var key minisign.PublicKey
		require.NoError(t, key.UnmarshalText([]byte(line)))
		for _, r := range weakPoints(t) {
			zero := base64.StdEncoding.EncodeToString(append(append([]byte("ED"), raw[2:10]...),
				append(r, make([]byte, 32)...)...))
			of := base64.StdEncoding.EncodeToString(append(r, make([]byte, 32)...))
			text := []byte("untrusted comment: x\n" + zero + "\ntrusted comment: y\n" + of + "\n")
			if f.hashed.Verify(key, text) {
				accepted++
			}
			_, err = check(f, key, text)
			require.ErrorIs(t, err, ErrWrong)
		}
	}
	require.Positive(t, accepted, "the library takes such keys")
}

// TestStrongKeys checks that generated keys are accepted.
func TestStrongKeys(t *testing.T) {
	for range 100 {
		public, _ := newKey(t)
		require.NoError(t, checkKey(public))
	}
	near, err := hex.DecodeString("ec" + strings.Repeat("ff", 30) + "7e")
	require.NoError(t, err)
	require.NoError(t, checkPoint(near))
}
