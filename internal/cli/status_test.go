package cli

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/render"
)

// TestStatusFits: the page of every recorded snapshot fits in 80 columns, except for single longer
// words. Warnings come first.
func TestStatusFits(t *testing.T) {
	files, err := filepath.Glob(testdata("*", "*.db.gz"))
	require.NoError(t, err)
	require.Greater(t, len(files), 40)
	for _, file := range files {
		_, printed, _ := runWords("status", "-q", file)
		first := true // no line before it
		for line := range strings.Lines(printed) {
			line = strings.TrimRight(line, "\n")
			if utf8.RuneCountInString(line) > render.PageWidth {
				longest := slices.MaxFunc(strings.Fields(line), func(a, b string) int { return len(a) - len(b) })
				require.Greater(t, len(longest), 66, "%s: %s", file, line)
			}
			require.Equal(t, strings.TrimRight(line, " "), line)
			about := strings.HasPrefix(line, "attention") || strings.HasPrefix(line, " ") ||
				strings.HasPrefix(line, "next") || strings.HasPrefix(line, "guide")
			require.False(t, strings.HasPrefix(line, "attention") && !first, "%s: %s", file, line)
			first = first && about
		}
	}
}
