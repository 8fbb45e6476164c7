package sanitize

import (
	"flag"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write vocabulary.txt")

var phrase = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9./_:-]{2,60}$`)

// TestVocabulary: vocabulary.txt has the constants and fields of the APIs that this build knows.
func TestVocabulary(t *testing.T) {
	found := map[string]bool{}
	for module, dir := range map[string]string{"k8s.io/api": ".", "k8s.io/apimachinery": "pkg/apis/meta/v1", "k8s.io/apiextensions-apiserver": "pkg/apis/apiextensions"} {
		root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
		require.NoError(t, err)
		err = filepath.WalkDir(filepath.Join(strings.TrimSpace(string(root)), dir), func(path string, d fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") && !strings.Contains(path, "generated") {
				addPhrases(t, path, found)
			}
			return err
		})
		require.NoError(t, err)
	}
	var list []string
	for text := range found {
		if phrase.MatchString(text) {
			list = append(list, text)
		}
	}
	slices.Sort(list)
	text := strings.Join(list, "\n") + "\n"
	if *update {
		require.NoError(t, os.WriteFile("vocabulary.txt", []byte(text), 0o644))
	}
	require.True(t, *update || text == constants, "run go test -run TestVocabulary -update")
}

// addPhrases adds the texts of constants, and the names of fields in JSON, of a file of Go.
func addPhrases(t *testing.T, path string, to map[string]bool) {
	file, err := parser.ParseFile(gotoken.NewFileSet(), path, nil, 0)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			for _, value := range n.Values {
				if literal, is := value.(*ast.BasicLit); is && literal.Kind == gotoken.STRING {
					text, err := strconv.Unquote(literal.Value)
					require.NoError(t, err)
					to[text] = true
				}
			}
		case *ast.Field:
			if n.Tag != nil {
				name, _, _ := strings.Cut(reflect.StructTag(strings.Trim(n.Tag.Value, "`")).Get("json"), ",")
				to[name] = true
			}
		}
		return true
	})
}
