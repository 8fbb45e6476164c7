package kubectl

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestIsPlain checks that no name of a plain answer is quoted.
func TestIsPlain(t *testing.T) {
	for name, plain := range map[string]bool{"a-b.c": true, "<none>": true, "a&b": true, "": true, "it's": true,
		`"a"`: false, "a\nb": false, "a\tb": false, "\x1b[1m": false, "a\x7f": false, "\u202e": false, "\u00e9": false,
		`a\b`: false, `\u0026`: false} {
		text, err := json.Marshal(map[string]any{"metadata": map[string]any{"name": name}, name: name})
		require.NoError(t, err)
		require.Equal(t, plain, isPlain(text), "%s", text)
		quoted, err := quoteNames(text)
		require.NoError(t, err)
		if plain {
			require.JSONEq(t, string(text), string(quoted))
		}
	}
	require.True(t, isPlain([]byte("{\n \"a\": 1\n}\n")))
}
