package cli

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/transform"
	"github.com/etcdshift/etcdshift/transform/migrations"
)

const thisModule = "github.com/etcdshift/etcdshift"

// TestExplainListsRaised: for each command explain lists exactly the codes raised by its package or
// by called functions: methods of View, readers of inspect.
func TestExplainListsRaised(t *testing.T) {
	g := readCodeGraph(t)
	policies := slices.Concat(
		g.raised(t, "internal/policy.Check", "internal/policy"),
		g.raised(t, "internal/policy.New", "internal/policy"),
		g.raised(t, "internal/policy.Check", "finding"),
	)
	raised := map[string][]string{
		"doctor":       g.raised(t, "internal/doctor", ""),
		"kcp list":     g.raised(t, "internal/kcp.ReadChecked", ""),
		"policy check": policies,
		// doctor's codes are in a reason
		"rehearse": append(g.raised(t, "internal/rehearse", "internal/rehearse"), policies...),
		// kcp verify raises only its own codes
		"kcp verify": g.raised(t, "internal/kcp/move.Move)", "internal/kcp/move"),
	}
	served := g.raised(t, "internal/kcp/move.Serving)", "") // reported only as notes
	raised["kcp verify"] = slices.DeleteFunc(raised["kcp verify"],
		func(c string) bool { return slices.Contains(served, c) })
	for _, spec := range migrations.All() {
		if spec.Of != nil {
			continue
		}
		dir, name := path.Split(runtime.FuncForPC(reflect.ValueOf(spec.New).Pointer()).Name())
		pkg, _, _ := strings.Cut(name, ".")
		codes := g.raised(t, "transform.Run", "")
		for _, root := range rootsOf(spec) {
			codes = append(codes, g.raised(t, strings.TrimPrefix(dir, thisModule+"/")+pkg+root, "")...)
		}
		if spec.Builds { // Run returns before it checks the output
			codes = slices.DeleteFunc(codes, func(c string) bool { return c == "large-value" })
		}
		if spec.NotForRestore {
			codes = slices.DeleteFunc(codes, func(c string) bool { return c == transform.CodeBumpTooLarge.Name })
		}
		if spec.Command() == "sanitize" { // the findings of Rewritten are in a reason
			found := g.raised(t, "transform.Rewritten", "")
			codes = slices.DeleteFunc(codes, func(c string) bool { return slices.Contains(found, c) })
		}
		if spec.Command() == "import" { // the other findings of policies are in a reason
			found := g.raised(t, "internal/policy", "internal/policy")
			codes = slices.DeleteFunc(codes, func(c string) bool {
				return slices.Contains(found, c) && c != "policy-denied" && c != "policy-not-evaluated"
			})
		}
		raised[spec.Command()] = codes
	}
	listed := map[string][]string{}
	for _, e := range explanations(migrations.All()) {
		for _, command := range e.Commands {
			listed[command] = append(listed[command], e.Code.Name)
		}
	}
	require.Equal(t, slices.Sorted(maps.Keys(raised)), slices.Sorted(maps.Keys(listed)))
	require.Contains(t, raised["migrate storage-versions"], transform.CodeUnsupportedLayout.Name,
		"of KubernetesPrefixes")
	require.NotContains(t, raised["kcp extract"], transform.CodeWouldBePlaintext.Name, "which stages nothing")
	for command, codes := range raised {
		slices.Sort(codes)
		require.Equal(t, slices.Sorted(slices.Values(listed[command])), slices.Compact(codes), command)
	}
}

// rootsOf returns suffixes of the command's package, the roots of raised: types, if the package has
// several commands.
func rootsOf(spec transform.Spec) []string {
	switch spec.Command() {
	case "policy apply":
		return []string{".apply)", ".Choice)"}
	case "crop":
		return []string{".Crop)"}
	case "delete":
		return []string{".Delete)"}
	case "extract", "kcp extract":
		return []string{".Extract)"}
	case "purge", "kcp purge":
		return []string{".Purge)"}
	case "kcp import":
		return []string{".Import)", ".PutBack)"}
	}
	return []string{""}
}

// codeGraph maps each function, type and variable of this module to the names in its declaration.
type codeGraph struct {
	names map[string][]string // by the full name of an object
	codes map[string]string   // names of the variables of type *finding.Code
}

// raised returns the codes declared below a folder and reachable from a function or a whole
// package.
func (g *codeGraph) raised(t *testing.T, root, declared string) (codes []string) {
	root, declared = thisModule+"/"+root, thisModule+"/"+declared
	var todo []string
	for name := range g.names {
		within := strings.HasPrefix(strings.TrimLeft(name, "(*"), root+".")
		if name == root || within && g.codes[name] == "" { // a code is raised by a function that names it
			todo = append(todo, name)
		}
	}
	require.NotEmpty(t, todo, root)
	seen := map[string]bool{}
	for ; len(todo) > 0; todo = todo[1:] {
		name := todo[0]
		if seen[name] {
			continue
		}
		seen[name] = true
		todo = append(todo, g.names[name]...)
		if code := g.codes[name]; code != "" && strings.HasPrefix(name, declared) {
			codes = append(codes, code)
		}
	}
	return codes
}

// readCodeGraph type-checks the packages with codes, and their imports.
func readCodeGraph(t *testing.T) *codeGraph {
	list := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Export,Dir,GoFiles", "./transform/...",
		"./internal/doctor", "./internal/rehearse/...")
	list.Dir, list.Stderr = filepath.Join("..", ".."), os.Stderr
	out, err := list.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, list.Start())
	fset, exports, g := token.NewFileSet(), map[string]string{}, &codeGraph{map[string][]string{}, map[string]string{}}
	exported := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	for packages := json.NewDecoder(out); ; { // imported packages come first
		var p struct {
			ImportPath, Export, Dir string
			GoFiles                 []string
		}
		if err := packages.Decode(&p); errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if exports[p.ImportPath] = p.Export; !strings.HasPrefix(p.ImportPath, thisModule+"/") {
			continue
		}
		var files []*ast.File
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, 0)
			require.NoError(t, err)
			files = append(files, file)
		}
		info := &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
		_, err := (&types.Config{Importer: exported}).Check(p.ImportPath, fset, files, info)
		require.NoError(t, err)
		for _, file := range files {
			g.add(info, file)
		}
	}
	require.NoError(t, list.Wait())
	return g
}

// add adds the functions and variables of a file.
func (g *codeGraph) add(info *types.Info, file *ast.File) {
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			of := info.Defs[d.Name].Type().String()
			if !strings.HasSuffix(of, "[]*"+thisModule+"/finding.Code") && // tables raise nothing
				!strings.HasSuffix(of, "[]"+thisModule+"/internal/doctor.check") {
				g.link(info, info.Defs[d.Name], d)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok {
					for _, name := range v.Names {
						g.link(info, info.Defs[name], v)
					}
				}
			}
		}
	}
}

// link links an object to the objects in its declaration. Comparing a code, or reading its name,
// does not raise the code.
func (g *codeGraph) link(info *types.Info, of types.Object, declaration ast.Node) {
	from, passive := fullName(of), map[*ast.Ident]bool{}
	isCode := of.Type().String() == "*"+thisModule+"/finding.Code"
	pass := func(exprs ...ast.Expr) {
		for _, e := range exprs {
			if selector, ok := e.(*ast.SelectorExpr); ok {
				e = selector.Sel
			}
			if name, ok := e.(*ast.Ident); ok {
				passive[name] = true
			}
		}
	}
	g.names[from] = append(g.names[from], "")
	ast.Inspect(declaration, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && isCode && g.codes[from] == "" {
				g.codes[from] = text
			}
		case *ast.BinaryExpr:
			pass(n.X, n.Y)
		case *ast.CaseClause:
			pass(n.List...)
		case *ast.SelectorExpr:
			if n.Sel.Name == "Name" {
				pass(n.X)
			}
		case *ast.Ident:
			to := info.Uses[n]
			if _, isVar := to.(*types.Var); to != nil && !isCode && !(isVar && passive[n]) {
				g.names[from] = append(g.names[from], fullName(to))
			}
		}
		return true
	})
}

// fullName returns the full name of a package-level object, "" for others.
func fullName(o types.Object) string {
	if f, ok := o.(*types.Func); ok {
		return f.Origin().FullName()
	}
	if o == nil || o.Pkg() == nil || o.Parent() != o.Pkg().Scope() {
		return ""
	}
	return o.Pkg().Path() + "." + o.Name()
}
