package calico

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sources parses the package without its tests.
func sources(t *testing.T) []*ast.File {
	t.Helper()
	paths, err := filepath.Glob("*.go")
	require.NoError(t, err)
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

// codes are the values of all constants whose name begins with code, by name.
func codes(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, file := range sources(t) {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Names) != 1 || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, "code") {
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

// TestCodesDocumented: each code has a section that says its level, what it means and what to do.
func TestCodesDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "problems.md"))
	require.NoError(t, err)
	sections := map[string]string{}
	for _, part := range strings.Split(string(text), "\n### `")[1:] {
		code, body, _ := strings.Cut(part, "`\n")
		require.NotContains(t, sections, code, "documented twice")
		sections[code] = body
	}
	for name, code := range codes(t) {
		body, there := sections[code]
		require.True(t, there, "%s: docs/problems.md has no section on %q", name, code)
		for _, line := range []string{"- **Level:** ", "- **Means:** ", "- **Do:** "} {
			require.Contains(t, body, line, code)
		}
		if !strings.HasPrefix(code, "ipam-") { // said once for all of them
			require.Contains(t, body, "- **--allow:** ", code)
		}
	}
}

// TestCodesNamed: problems are reported by constants, so that TestCodesDocumented sees every code.
func TestCodesNamed(t *testing.T) {
	reporting := map[string]int{"Refuse": 1, "Warn": 1, "Resolve": 1, "refuse": 0, "leave": 1}
	calls := 0
	for _, file := range sources(t) {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			name := ""
			switch fun := call.Fun.(type) {
			case *ast.Ident:
				name = fun.Name
			case *ast.SelectorExpr:
				name = fun.Sel.Name
			}
			at, reports := reporting[name]
			if !reports || at >= len(call.Args) {
				return true
			}
			calls++
			_, literal := call.Args[at].(*ast.BasicLit)
			require.False(t, literal, "%s with a literal code", name)
			return true
		})
	}
	require.Greater(t, calls, 30)
}
