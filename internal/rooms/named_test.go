package rooms

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestThreatModel checks that each test, script and target named in docs/project/threat-model.md
// exists in the named package.
func TestThreatModel(t *testing.T) {
	tree, there := os.DirFS("../.."), map[string]bool{}
	declared := regexp.MustCompile(`(?m)^(?:func ((?:Test|Fuzz)\w+)\(|(\w+):)`)
	require.NoError(t, fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch base := path.Base(name); {
		case err != nil:
			return err
		case entry.IsDir() && base == ".git":
			return fs.SkipDir
		case path.Ext(base) == ".txtar":
			there[base] = true
		case strings.HasSuffix(base, "_test.go") || name == "Makefile":
			text, err := fs.ReadFile(tree, name)
			for _, found := range declared.FindAllStringSubmatch(string(text), -1) {
				there[found[1]], there["make "+found[2]] = true, true
				there[path.Base(path.Dir(name))+"."+found[1]] = true
			}
			return err
		}
		return nil
	}))
	page, err := fs.ReadFile(tree, "docs/project/threat-model.md")
	require.NoError(t, err)
	named := regexp.MustCompile("`((?:\\w+\\.)?(?:Test|Fuzz)\\w+|\\w+\\.txtar|make \\w+)`").FindAllStringSubmatch(
		string(page), -1)
	require.Greater(t, len(named), 40)
	for _, name := range named {
		require.True(t, there[name[1]], "%s is nowhere", name[1])
	}
}
