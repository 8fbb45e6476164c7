package codedoc

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Sources parses the packages in folders, without their tests; none stands for the working folder.
func Sources(t testing.TB, folders ...string) []*ast.File {
	t.Helper()
	if len(folders) == 0 {
		folders = []string{"."}
	}
	var paths []string
	for _, folder := range folders {
		found, err := filepath.Glob(filepath.Join(folder, "*.go"))
		require.NoError(t, err)
		paths = append(paths, found...)
	}
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		require.NoError(t, err)
		files = append(files, file)
	}
	return files
}

// Codes are the codes of the packages in folders, by the names of their constants.
func Codes(t testing.TB, folders ...string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, file := range Sources(t, folders...) {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Names) != 1 || len(spec.Values) != 1 || !strings.HasPrefix(strings.ToLower(spec.Names[0].Name), "code") {
				return true
			}
			if lit, ok := spec.Values[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
				value, err := strconv.Unquote(lit.Value)
				require.NoError(t, err)
				out[spec.Names[0].Name] = value
			}
			return true
		})
	}
	require.NotEmpty(t, out)
	return out
}

// Check requires that each code of the packages in folders has a section that says its level, what it means, what to
// do and what --allow does, and that those of allowed are what the page calls an error of the command, such as
// "migrate calico-v3", and no other. page is the path of docs/problems.md.
func Check(t testing.TB, page, command string, allowed []string, folders ...string) {
	t.Helper()
	require.True(t, slices.IsSorted(allowed))
	all, codes := sections(t, page), Codes(t, folders...)
	for name, code := range codes {
		section, there := all[code]
		require.True(t, there, "%s: %s has no section on %q", name, page, code)
		for _, line := range []string{"- **Level:** ", "- **Means:** ", "- **Do:** "} {
			require.Contains(t, section, line, code)
		}
		if !strings.HasPrefix(code, "ipam-") { // said once for all of them
			require.Contains(t, section, "- **--allow:** ", code)
		}
		require.Equal(t, slices.Contains(allowed, code), isError(section, command), "%s in %s", code, command)
	}
	for _, code := range allowed {
		require.Contains(t, slices.Collect(maps.Values(codes)), code)
	}
}

// sections are the texts about codes.
func sections(t testing.TB, page string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	out := map[string]string{}
	for _, part := range strings.Split(string(text), "\n### `")[1:] {
		code, body, _ := strings.Cut(part, "`\n")
		require.NotContains(t, out, code, "documented twice")
		body, _, _ = strings.Cut(body, "\n## ")
		out[code] = body
	}
	return out
}

// isError says whether a section calls its code an error of the command that can be allowed.
func isError(section, command string) bool {
	_, level, _ := strings.Cut(section, "- **Level:** ")
	level, _, _ = strings.Cut(level, "\n- **")
	level = strings.Join(strings.Fields(level), " ")
	for clause := range strings.SplitSeq(level, "; ") {
		others := (strings.Contains(clause, "`migrate ") || strings.Contains(clause, "`cluster ")) && !strings.Contains(clause, "`"+command+"`")
		if strings.Contains(clause, "error") && !strings.Contains(clause, "`--allow` does not take") && !others {
			return true
		}
	}
	return false
}
