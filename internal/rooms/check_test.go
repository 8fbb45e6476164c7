package rooms

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

const module = "github.com/etcdshift/etcdshift"

// mayImport returns the packages of this module that the non-test code of each room may import,
// besides itself and the rooms for all. changes stands for each room that changes a snapshot.
func mayImport() map[string][]string {
	data := []string{"snapshot", "keys", "encoding", "encoding/schema", "internal/native", "internal/stream"}
	with := func(more ...string) []string { return append(more, data...) }
	return map[string][]string{
		"cmd": {"internal/cli"},
		"internal/cli": with("internal/machines", changes, "transform", "transform/migrations", "inspect", "finding",
			"encoding/encryption", "docs",
			"internal/archive", "internal/doctor", "internal/kcp", "internal/kcp/move", "internal/redact",
			"internal/apiservers", "internal/publish", "internal/conversion", "internal/input",
			"internal/objects", "internal/compare", "internal/fleet", "internal/get", "internal/kubectl",
			"internal/policy", "internal/rehearse", "internal/render", "internal/report", "internal/restore",
			"internal/sandbox", "internal/save",
			"internal/s3", "internal/serve", "internal/signature", "snapshot/salvage"),
		changes: with("internal/machines", "internal/redact", "internal/bounded", "transform", "inspect",
			"internal/objects", "internal/conversion", "internal/archive", "internal/policy", "finding"),
		"transform": with("internal/bounded", "internal/machines", "internal/redact", "inspect",
			"internal/publish", "finding", "internal/input"),
		"transform/migrations": {"transform", "internal/kcp/move", "internal/policy", changes},
		"docs":                 {},
		"inspect":              with("internal/bounded", "internal/redact", "finding"),
		"internal/doctor": with("internal/bounded", "internal/kcp", "internal/machines", "internal/objects",
			"internal/redact", "inspect", "finding"),
		"internal/kcp":     with("inspect", "finding"),
		"internal/archive": with("internal/kcp", "finding"),
		"internal/kcp/move": with("internal/kcp", "internal/archive", "internal/objects", "transform", "inspect",
			"finding"),
		"internal/machines":   with("finding", "inspect"),
		"internal/redact":     with("internal/bounded"),
		"snapshot":            {"internal/publish", "internal/stream", "finding"},
		"snapshot/salvage":    {"internal/publish", "internal/stream", "finding", "snapshot"},
		"keys":                {},
		"finding":             {},
		"encoding/schema":     {"encoding", "internal/bounded"},
		"encoding/encryption": {"encoding", "internal/input"},
		"encoding":            {"finding"},
		"internal/bounded":    {"finding"},
		"internal/conversion": {},
		"internal/input":      {},
		"internal/native":     {"encoding"},
		"internal/publish":    {"finding"},
		"internal/stream":     {},
		"internal/rooms":      {},
		"internal/apiservers": with("encoding/encryption", "internal/conversion", "internal/sandbox",
			"internal/serve"),
		"internal/objects": with("internal/bounded", "internal/machines", "transform", "inspect", "finding"),
		"internal/columns": with("inspect", "internal/jsonpath"),
		"internal/compare": with("internal/redact", "inspect"),
		"internal/get": with("internal/columns", "internal/compare", "internal/jsonpath",
			"internal/objects", "internal/redact", "internal/render", "transform", "inspect", "finding"),
		"internal/fleet": with("internal/redact", "transform", "inspect", "finding", "internal/input",
			"internal/publish", "internal/render", "internal/s3"),
		"internal/jsonpath": {"encoding"},
		"internal/kubectl":  {"internal/render", "internal/serve"},
		"internal/pattern":  {},
		"internal/phrase":   {},
		"internal/policy": with("internal/redact", "internal/bounded", "transform", "inspect", "finding",
			"internal/input"),
		"internal/render": {"encoding", "internal/compare", "internal/jsonpath"},
		"internal/report": with("internal/doctor", "internal/redact", "transform", "inspect", "finding",
			"internal/compare", "internal/render"),
		"internal/rehearse": with("internal/doctor", "inspect", "finding", "encoding/encryption",
			"internal/apiservers", "internal/conversion", "internal/policy", "internal/sandbox", "internal/serve"),
		"internal/s3":        {"finding", "internal/publish"},
		"internal/restore":   {"finding", "snapshot", "internal/sandbox"},
		"internal/sandbox":   {"finding", "snapshot"},
		"internal/save":      {"internal/publish", "snapshot", "finding"},
		"internal/signature": {"internal/input", "snapshot", "finding"},
		"internal/serve":     with("internal/redact", "inspect", "internal/columns", "internal/objects"),
		"internal/test":      with("encoding/encryption", changes, "transform", "inspect", "internal/publish"),
	}
}

// room returns the room of a package folder; each transform is a room.
func room(dir string) string {
	if _, own := mayImport()[dir]; own {
		return dir
	}
	parts := strings.SplitN(dir, "/", 3)
	if len(parts) > 1 && (parts[0] == "transform" || parts[0] == "encoding" || parts[0] == "internal") {
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}

// changes is the table row of rooms that change a snapshot, each a transform.Spec.
const changes = "a change"

// kind returns the table row of a room.
func kind(room string) string {
	switch name, _ := strings.CutPrefix(room, "internal/"); name {
	case "calico", "compact", "crop", "graft", "patch", "plan", "preparerestore", "remove", "renamenode", "sanitize",
		"storageversion":
		return changes
	}
	return room
}

// source is one Go file.
type source struct {
	name    string // path relative to the module's root
	dir     string
	test    bool
	file    *ast.File
	fset    *token.FileSet
	imports map[string]string // local name to import path
}

// check reads every Go file of the module. It returns violations as "FILE:LINE: reason", and the
// rooms.
func check(tree fs.FS) (broken []string, seen map[string]int, err error) {
	seen = make(map[string]int)
	methods := map[string]int{}
	err = fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return skipFolder(tree, name)
		case !strings.HasSuffix(name, ".go"):
			return nil
		}
		s, err := parse(tree, name)
		if err != nil {
			return err
		}
		seen[room(s.dir)]++
		broken = append(broken, s.check()...)
		s.countMethods(methods)
		return nil
	})
	for name, n := range methods {
		if n > mostMethods {
			broken = append(broken, fmt.Sprintf("%s has %d methods: split the type, or write functions", name, n))
		}
	}
	slices.Sort(broken)
	return broken, seen, err
}

// mostMethods is the maximum number of methods of a type; a type with more is a script over shared
// state.
const mostMethods = 25

// countMethods adds the methods of the file by package folder and type.
func (s source) countMethods(counts map[string]int) {
	for _, decl := range s.file.Decls {
		method, is := decl.(*ast.FuncDecl)
		if !is || method.Recv == nil || s.test {
			continue
		}
		of := method.Recv.List[0].Type
		for {
			switch n := of.(type) {
			case *ast.StarExpr:
				of = n.X
				continue
			case *ast.IndexExpr:
				of = n.X
				continue
			case *ast.Ident:
				counts[s.dir+"."+n.Name]++
			}
			break
		}
	}
}

// skipFolder skips folders that Go skips, and other modules.
func skipFolder(tree fs.FS, name string) error {
	base := path.Base(name)
	if name == "." {
		return nil
	}
	if base == "testdata" || base == "vendor" || base[0] == '.' || base[0] == '_' {
		return fs.SkipDir
	}
	if _, err := fs.Stat(tree, path.Join(name, "go.mod")); !errors.Is(err, fs.ErrNotExist) {
		return fs.SkipDir
	}
	return nil
}

func parse(tree fs.FS, name string) (source, error) {
	text, err := fs.ReadFile(tree, name)
	if err != nil {
		return source{}, err
	}
	s := source{name: name, dir: path.Dir(name), test: strings.HasSuffix(name, "_test.go"), fset: token.NewFileSet(),
		imports: make(map[string]string)}
	s.file, err = parser.ParseFile(s.fset, name, text, parser.SkipObjectResolution)
	if err != nil {
		return source{}, err
	}
	for _, spec := range s.file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return source{}, err
		}
		local := path.Base(imported)
		if spec.Name != nil {
			local = spec.Name.Name
		}
		s.imports[local] = imported
	}
	return s, nil
}

func (s source) at(pos token.Pos, format string, args ...any) string {
	return fmt.Sprintf("%s:%d: ", s.name, s.fset.Position(pos).Line) + fmt.Sprintf(format, args...)
}

func (s source) check() []string {
	var broken []string
	for _, spec := range s.file.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value) // parsed successfully before
		if reason := s.checkImport(imported); reason != "" {
			broken = append(broken, s.at(spec.Pos(), "%s", reason))
		}
	}
	if _, known := mayImport()[kind(room(s.dir))]; !known {
		broken = append(broken, s.at(s.file.Package, "the folder %q is in no room: add it to the table", s.dir))
	}
	for _, decl := range s.file.Decls {
		if group, isGroup := decl.(*ast.GenDecl); isGroup && group.Tok == token.IMPORT {
			continue
		}
		ast.Inspect(decl, func(node ast.Node) bool {
			if reason := s.checkNode(node); reason != "" {
				broken = append(broken, s.at(node.Pos(), "%s", reason))
			}
			return true
		})
		if group, isGroup := decl.(*ast.GenDecl); isGroup && !s.test && room(s.dir) != "internal/test" {
			broken = append(broken, s.compiled(group)...)
		}
	}
	return broken
}

// compiled returns the regular expressions of variables, except in functions.
func (s source) compiled(group *ast.GenDecl) (broken []string) {
	ast.Inspect(group, func(node ast.Node) bool {
		if of, is := node.(*ast.SelectorExpr); is && strings.HasPrefix(of.Sel.Name, "MustCompile") {
			if pkg, isName := of.X.(*ast.Ident); isName && s.imports[pkg.Name] == "regexp" {
				broken = append(broken, s.at(node.Pos(), "every start would compile it: use internal/pattern"))
			}
		}
		_, isFunction := node.(*ast.FuncLit)
		return !isFunction
	})
	return broken
}

func (s source) checkImport(imported string) string {
	from := room(s.dir)
	if imported == "go.etcd.io/bbolt" || strings.HasPrefix(imported, "go.etcd.io/bbolt/") {
		if from != "snapshot" && from != "snapshot/salvage" && s.dir != "internal/test/bench" {
			return "only snapshot may know bbolt"
		}
	}
	if strings.HasPrefix(imported, "k8s.io/kubernetes/") && from != "internal/native" {
		return "only internal/native may know k8s.io/kubernetes"
	}
	dir, ours := strings.CutPrefix(imported, module+"/")
	if !ours || s.test {
		return ""
	}
	to := room(dir)
	forAll := []string{from, "internal/pattern", "internal/phrase"}
	if slices.Contains(forAll, to) || slices.Contains(mayImport()[kind(from)], kind(to)) &&
		(kind(from) != changes || kind(to) != changes) {
		return ""
	}
	return fmt.Sprintf("%s must not import %s", from, to)
}

func (s source) checkNode(node ast.Node) string {
	outside := !s.test && room(s.dir) != "cmd"
	switch n := node.(type) {
	case *ast.FuncDecl:
		if n.Recv == nil && n.Name.Name == "init" {
			return "no init functions"
		}
	case *ast.SelectorExpr:
		if pkg, isName := n.X.(*ast.Ident); isName && outside {
			return printing(s.imports[pkg.Name], n.Sel.Name)
		}
	case *ast.CallExpr:
		if f, isName := n.Fun.(*ast.Ident); isName && outside && (f.Name == "print" || f.Name == "println") {
			return "only cmd prints: " + f.Name
		}
	case *ast.BasicLit:
		text, err := strconv.Unquote(n.Value)
		home := room(s.dir) == "keys" || room(s.dir) == "internal/test" || room(s.dir) == "internal/cli" &&
			strings.Contains(text, "etcdshift ") // an example in the help
		if n.Kind == token.STRING && err == nil && strings.Contains(text, "/registry/") && !s.test && !home {
			return "only keys may spell etcd keys"
		}
	}
	return ""
}

// printing returns the violation of a selector outside of cmd, or "".
func printing(imported, name string) string {
	full := imported + "." + name
	switch {
	case imported == "log", imported == "fmt" && (name == "Print" || name == "Printf" || name == "Println"),
		full == "os.Stdout", full == "os.Stderr":
		return "only cmd prints: " + full
	case full == "os.Exit":
		return "only cmd exits"
	}
	return ""
}
