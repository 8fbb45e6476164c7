package rooms

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// TestWorkflows checks that actions are pinned to a commit, with the release beside it, and that
// workflow tokens are read-only except in jobs that declare more.
func TestWorkflows(t *testing.T) {
	files, err := filepath.Glob("../../.github/workflows/*")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	uses := regexp.MustCompile(`uses: *(\S+)(.*)`)
	pinned := regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40}$`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, use := range uses.FindAllStringSubmatch(string(text), -1) {
			require.Regexp(t, pinned, use[1], file)
			require.Regexp(t, `^ # v\d+\.\d+\.\d+$`, use[2], file)
		}
		var workflow struct {
			Permissions map[string]string
		}
		require.NoError(t, yaml.Unmarshal(text, &workflow))
		require.Equal(t, map[string]string{"contents": "read"}, workflow.Permissions, file)
		if strings.Contains(string(text), "gh release create") {
			require.Contains(t, string(text), "actions/attest-build-provenance@", "a release without provenance")
		}
	}
}
