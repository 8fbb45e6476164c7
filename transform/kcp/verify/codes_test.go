package verify

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestVerifyCodes: each finding has its line in the guide, in the order of the questions, and there is no other.
func TestVerifyCodes(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "logical-clusters.md"))
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), "### The findings of verify\n")
	require.True(t, found)
	table, _, found = strings.Cut(table, "\n`--ignore CODE`")
	require.True(t, found)
	var documented []Code
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|").FindAllStringSubmatch(table, -1) {
		documented = append(documented, Code(m[1]))
	}
	require.Equal(t, Codes(), documented)
	for _, q := range Questions() {
		require.Contains(t, string(text), "| `"+string(q)+"` | ")
	}
}
