package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The Makefile stamps the commit if it is known, for any GOFLAGS, and builds from a tarball without
// one. A folder unreadable for git, such as another user's, would fail the build.
func TestMakeStampsCommit(t *testing.T) {
	for _, tool := range []string{"make", "git"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	dir := t.TempDir()
	makefile, err := os.ReadFile(filepath.Join("..", "..", "Makefile"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Makefile"), makefile, 0o600))
	do := func(name string, args ...string) string {
		c := exec.Command(name, args...)
		c.Dir = dir
		c.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false", "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	require.Contains(t, do("make", "-n", "build"), "-buildvcs=false")
	do("git", "init", "-q")
	require.Contains(t, do("make", "-n", "build"), "-buildvcs=false", "no commit")
	do("git", "add", "Makefile")
	do("git", "-c", "user.name=n", "-c", "user.email=e@example.com", "commit", "-qm", "one")
	require.Contains(t, do("make", "-n", "build"), "-buildvcs=true")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "inner"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "inner", "Makefile"), makefile, 0o600))
	require.Contains(t, do("make", "-n", "-C", "inner", "build"), "-buildvcs=false", "a tarball in another repository")
}
