package calico

import (
	"go/ast"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/codedoc"
)

// TestCodesNamed: problems are reported by constants, so that TestCodes sees every code.
func TestCodesNamed(t *testing.T) {
	reporting := map[string]int{"Refuse": 1, "Warn": 1, "Resolve": 1, "refuse": 0, "leave": 1}
	calls := 0
	for _, file := range codedoc.Sources(t) {
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
