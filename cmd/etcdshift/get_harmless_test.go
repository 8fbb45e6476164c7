package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHarmless(t *testing.T) {
	for given, want := range map[string]string{
		"a\tb\nc": "a\tb\nc", "\x1b[2J": `\x1b[2J`, "\u009b2J": `\u009b2J`, "äé\u00a0Â": "äé\u00a0Â", "\xc2\xc2\u009b": "\xc2\xc2" + `\u009b`, "\r\x7f": `\x0d\x7f`,
		"a\r\nb": "a\r\nb", "x\u202e\u2066\u200f\u2028": `x\u202e\u2066\u200f\u2028`, "\x9b2J": `\x9b2J`, "שלום": "שלום", "a\r": `a\x0d`,
	} {
		var whole, parts bytes.Buffer
		w, p := &harmless{w: &whole}, &harmless{w: &parts}
		n, err := w.Write([]byte(given))
		require.NoError(t, err)
		require.Equal(t, len(given), n)
		for _, b := range []byte(given) {
			_, err := p.Write([]byte{b})
			require.NoError(t, err)
		}
		require.NoError(t, w.end())
		require.NoError(t, p.end())
		require.Equal(t, want, whole.String())
		require.Equal(t, want, parts.String())
	}
}
