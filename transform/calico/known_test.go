package calico

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCodes: what can be allowed is what the documentation calls an error.
func TestCodes(t *testing.T) {
	require.True(t, slices.IsSorted(Codes()))
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "problems.md"))
	require.NoError(t, err)
	for name, code := range codes(t) {
		_, section, found := strings.Cut(string(text), "\n### `"+code+"`\n")
		require.True(t, found, code)
		_, level, _ := strings.Cut(section, "- **Level:** ")
		level, _, _ = strings.Cut(level, "\n- **Means:**")
		require.Equal(t, strings.Contains(level, "error"), slices.Contains(Codes(), code), "%s, documented as %q", name, level)
	}
	for _, code := range Codes() {
		require.Contains(t, slices.Collect(maps.Values(codes(t))), code)
	}
}
