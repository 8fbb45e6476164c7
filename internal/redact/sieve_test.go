package redact

import (
	"encoding/base64"
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSieve checks that a sieve keeps all data that skip keeps, at each offset of a run, and
// rejects most other data.
func TestSieve(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	inside := []string{"", "password", "päßwörd", "\u20ac\u20acab", "\U0001f511\U0001f511", gzipBegins, zipBegins,
		"p\x00a\x00s\x00s\x00", "\x00p\x00a\x00s\x00s", "x\x9c", "a\tb\r\ncdef"}
	empty, rejected := 0, 0
	for range 20000 {
		data := make([]byte, r.IntN(40))
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		at := r.IntN(len(data) + 1)
		data = append(append(data[:at:at], inside[r.IntN(len(inside))]...), data[at:]...)
		letters := "AbC-"[:r.IntN(4)] + base64.RawURLEncoding.EncodeToString(data) + "d_/"[:r.IntN(4)]
		digits := "7"[:r.IntN(2)] + hex.EncodeToString(data)
		if len(data) < leastWhole {
			continue
		}
		of, mayHold, mayHoldHex := run{letters: letters}, false, false
		for offset := range 4 {
			of.decode(offset)
			plain, _ := base64.RawURLEncoding.DecodeString(strings.ReplaceAll(letters[offset:], "/", "_"))
			require.Equal(t, of.size(offset), len(of.plain))
			require.True(t, strings.HasPrefix(string(of.plain), string(plain)), letters)
			mayHold = mayHold || !(&Unpacker{left: mostUnpacked}).skip(of.plain, false)
		}
		for offset := range 2 {
			of.decodeHex(digits[offset:])
			mayHoldHex = mayHoldHex || !(&Unpacker{left: mostUnpacked}).skip(of.plain, false)
		}
		require.True(t, !mayHold || sieves().mayHold(letters), letters)
		require.True(t, !mayHoldHex || sieves().mayHoldHex(digits), digits)
		if !mayHold {
			empty++
			if !sieves().mayHold(letters) {
				rejected++
			}
		}
	}
	require.Greater(t, rejected, empty*2/3, "of %d", empty)
}

// TestTraits checks that the traits of a text admit each search that finds something.
func TestTraits(t *testing.T) {
	marks := []string{"kty: EC", "auths", "API key: ", "password", "ghp_", " ", ":", "x", "%41", "&lt;", `\n`, "\x00", "@",
		"eyJhbGciOiJSUzI1.eyJpc3MiOiJr"}
	for _, s := range append(tables().shapes, tables().commands...) {
		marks = append(marks, strings.Join(s.marks, ""))
	}
	for _, s := range tables().commands {
		require.NotEmpty(t, rarest(s.marks), "secretInCommand asks only for pairs")
	}
	for _, tokens := range tables().tokens {
		for _, token := range tokens {
			marks = append(marks, token.text+"Aa1")
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 50000 {
		text := ""
		for range 1 + r.IntN(4) {
			text += marks[r.IntN(len(marks))]
		}
		of := traitsOf(text)
		for _, shapes := range [][]shape{tables().shapes, tables().commands} {
			for _, s := range shapes {
				require.True(t, !s.fits(text) || of.mayShape(), text)
			}
		}
		require.True(t, !hasToken(text) || of.tokens, text)
		require.True(t, !hasUserInfo(text) || of.mayShape(), text)
		require.True(t, !mentions(names{}, text) || of.mayName(), text)
		for f := range (*Unpacker)(nil).decode(text, leastKnown, false) {
			require.True(t, f.plain == "" || of.mayPack(leastKnown), text)
		}
	}
	require.False(t, traitsOf("all is well").mayShape() || traitsOf("all is well").mayName() ||
		traitsOf("all is well").mayPack(leastKnown))
}
