package archive

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDocumented: docs/formats.md has the format's name, its notes and the test vector.
func TestDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "formats.md"))
	require.NoError(t, err)
	for _, name := range []string{APIVersion, Kind, noteManifest, noteDigest} {
		require.Contains(t, string(page), "`"+name+"`")
	}
	vector, err := os.ReadFile("archive_test.go")
	require.NoError(t, err)
	digests := regexp.MustCompile(`SHA256: "([0-9a-f]{64})"`).FindAllStringSubmatch(string(vector), -1)
	require.Len(t, digests, 2)
	for _, digest := range digests {
		require.Contains(t, string(page), digest[1])
	}
}
