// Package rooms contains only tests: they read the source of the whole module and fail if a package
// imports a forbidden package.
//
//	cmd -> internal/cli -> transform/* -> transform -> inspect ->
//	  {snapshot, keys, encoding/schema -> encoding}
//
// A room may import rooms to its right, never one to its left or beside it. Other rules:
//
//   - internal/publish is a leaf; snapshot, transform and internal/cli may import it.
//   - No transform imports another.
//   - internal holds code without a compatibility promise; each package has a row in the table.
//   - internal/test holds servers and fixtures. Only test files import it; it imports any room but
//     cmd.
//   - go.etcd.io/bbolt is imported only by snapshot and internal/test/bench, even in tests.
//   - Only cmd prints, logs or exits.
//   - No function is called init, and no variable is a compiled regular expression.
//   - Only keys has strings with the storage prefix "/registry/".
//   - No type has more than 25 methods.
//
// Test files may import any package and may print; shipped code does not depend on tests. A new
// folder needs a row in the table of check_test.go.
package rooms

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// The module keeps the rules.
func TestRooms(t *testing.T) {
	tree := os.DirFS("../..")
	text, err := os.ReadFile("../../go.mod")
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(text), "module "+module+"\n"))
	broken, seen, err := check(tree)
	require.NoError(t, err)
	require.Empty(t, strings.Join(broken, "\n"))
	for _, name := range []string{"cmd", "internal/cli", "transform", "internal/calico", "internal/kcp", "snapshot",
		"keys", "encoding", "encoding/schema", "encoding/encryption", "inspect", "internal/conversion",
		"internal/publish", "internal/test"} {
		require.Positive(t, seen[name], "%s was not looked at", name)
	}
}

// checkCase is a file and the rule that it breaks; "" for none.
type checkCase struct{ file, source, broken string }

// importCases follow the arrows, or go against one.
func importCases() []checkCase {
	return []checkCase{
		// allowed imports
		{"cmd/etcdshift/a.go", ours("internal/cli"), ""},
		{"internal/cli/a.go", ours("internal/calico", "transform", "inspect", "snapshot", "keys", "encoding",
			"encoding/schema", "internal/publish", "internal/cli/look"), ""},
		{"internal/calico/a.go", ours("transform", "inspect", "snapshot", "keys", "encoding", "encoding/schema",
			"internal/calico/ipam"), ""},
		{"transform/a.go", ours("inspect", "snapshot", "keys", "encoding", "encoding/schema", "internal/publish"), ""},
		{"inspect/a.go", ours("snapshot", "keys", "encoding", "encoding/schema"), ""},
		{"internal/storageversion/a.go", ours("transform", "internal/conversion"), ""},
		{"encoding/encryption/a.go", ours("encoding"), ""},
		{"snapshot/a.go", ours("internal/publish", "snapshot/page"), ""},
		{"encoding/schema/a.go", ours("encoding"), ""},
		{"internal/test/apitest/a.go", ours("internal/calico", "snapshot", "internal/test/etcdtest"), ""},

		// forbidden imports
		{"transform/a.go", ours("cmd/etcdshift"), ":3: transform must not import cmd"},
		{"transform/a.go", ours("internal/calico"), ":3: transform must not import internal/calico"},
		{"internal/calico/a.go", ours("transform", "internal/storageversion"),
			":4: internal/calico must not import internal/storageversion"},
		{"internal/calico/a.go", ours("internal/publish"), ":3: internal/calico must not import internal/publish"},
		{"transform/a.go", ours("encoding/encryption"), ":3: transform must not import encoding/encryption"},
		{"inspect/a.go", ours("encoding/encryption"), ":3: inspect must not import encoding/encryption"},
		{"encoding/a.go", ours("encoding/encryption"), ":3: encoding must not import encoding/encryption"},
		{"encoding/encryption/a.go", ours("keys"), ":3: encoding/encryption must not import keys"},
		{"internal/conversion/a.go", ours("encoding"), ":3: internal/conversion must not import encoding"},
		{"inspect/a.go", ours("transform"), ":3: inspect must not import transform"},
		{"inspect/a.go", ours("internal/publish"), ":3: inspect must not import internal/publish"},
		{"snapshot/page/a.go", ours("keys"), ":3: snapshot must not import keys"},
		{"snapshot/a.go", ours("encoding"), ":3: snapshot must not import encoding"},
		{"keys/a.go", ours("encoding"), ":3: keys must not import encoding"},
		{"keys/a.go", ours("snapshot"), ":3: keys must not import snapshot"},
		{"encoding/a.go", ours("keys"), ":3: encoding must not import keys"},
		{"encoding/a.go", ours("encoding/schema"), ":3: encoding must not import encoding/schema"},
		{"encoding/schema/a.go", ours("keys"), ":3: encoding/schema must not import keys"},
		{"internal/publish/a.go", ours("snapshot"), ":3: internal/publish must not import snapshot"},
		{"snapshot/a.go", ours("internal/test/etcdtest"), ":3: snapshot must not import internal/test"},
		{"internal/cli/a.go", ours("internal/test/etcdtest"), ":3: internal/cli must not import internal/test"},
		{"internal/test/etcdtest/a.go", ours("cmd/etcdshift"), ":3: internal/test must not import cmd"},
		{"keys/a_test.go", ours("encoding", "internal/test/etcdtest"), ""},

		// the kcp model, its archives, and the commands on both
		{"internal/kcp/move/a.go", ours("internal/kcp", "internal/archive", "transform", "inspect"), ""},
		{"internal/archive/a.go", ours("internal/kcp/move"),
			":3: internal/archive must not import internal/kcp/move"},
		{"internal/kcp/a.go", ours("internal/archive"), ":3: internal/kcp must not import internal/archive"},
		{"internal/kcp/a.go", ours("transform"), ":3: internal/kcp must not import transform"},
		{"internal/kcp/a_test.go", ours("internal/kcp/move"), ""},
		{"internal/calico/a.go", ours("internal/kcp/move"), ":3: internal/calico must not import internal/kcp/move"},

		// folders
		{"misc/a.go", "package p", `:1: the folder "misc" is in no room: add it to the table`},
		{"a.go", "package p", `:1: the folder "." is in no room: add it to the table`},
		{"keys/testdata/a.go", ours("encoding"), ""},
		{"e2e/a.go", ours("cmd/etcdshift"), ""},
	}
}

// ruleCases break, or keep, the other rules.
func ruleCases() []checkCase {
	return []checkCase{
		// bbolt
		{"snapshot/a.go", imports("go.etcd.io/bbolt", "go.etcd.io/bbolt/errors"), ""},
		{"snapshot/a_test.go", imports("go.etcd.io/bbolt"), ""},
		{"internal/test/bench/a.go", imports("go.etcd.io/bbolt"), ""},
		{"internal/test/apitest/a.go", imports("go.etcd.io/bbolt"), ":3: only snapshot may know bbolt"},
		{"transform/a.go", imports("go.etcd.io/bbolt/errors"), ":3: only snapshot may know bbolt"},
		{"transform/a_test.go", imports("go.etcd.io/bbolt"), ":3: only snapshot may know bbolt"},
		{"inspect/a.go", imports("k8s.io/kubernetes/pkg/api/legacyscheme"),
			":3: only internal/native may know k8s.io/kubernetes"},

		// printing and exiting
		{"cmd/etcdshift/a.go", "package p\nimport \"fmt\"\nimport \"os\"\nfunc f() { fmt.Println(1); os.Exit(1) }", ""},
		{"keys/a_test.go", "package p\nimport \"fmt\"\nfunc f() { fmt.Println(1); println(1) }", ""},
		{"keys/a.go", "package p\nimport \"fmt\"\nfunc f() { _ = fmt.Sprint(1); fmt.Fprintln(nil) }", ""},
		{"keys/a.go", "package p\nimport \"fmt\"\nfunc f() { fmt.Printf(\"\") }", ":3: only cmd prints: fmt.Printf"},
		{"keys/a.go", "package p\nimport out \"fmt\"\nvar f = out.Print", ":3: only cmd prints: fmt.Print"},
		{"keys/a.go", "package p\nimport \"os\"\nfunc f() { os.Exit(1) }", ":3: only cmd exits"},
		{"keys/a.go", "package p\nimport \"os\"\nvar out = os.Stdout", ":3: only cmd prints: os.Stdout"},
		{"keys/a.go", "package p\nimport \"log\"\nfunc f() { log.Fatal() }", ":3: only cmd prints: log.Fatal"},
		{"keys/a.go", "package p\nfunc f(log interface{ Fatal() }) { log.Fatal() }", ""},
		{"keys/a.go", "package p\nfunc f() { println() }", ":2: only cmd prints: println"},
		{"internal/test/etcdtest/a.go", "package p\nimport \"os\"\nfunc f() { os.Exit(1) }", ":3: only cmd exits"},

		// init
		{"cmd/etcdshift/a.go", "package p\nfunc init() {}", ":2: no init functions"},
		{"keys/a_test.go", "package p\nfunc init() {}", ":2: no init functions"},
		{"keys/a.go", "package p\ntype t int\nfunc (t) init() {}", ""},

		// regular expressions
		{"keys/a.go", "package p\nimport \"regexp\"\nvar x = regexp.MustCompile(`x`)",
			":3: every start would compile it: use internal/pattern"},
		{"keys/a.go", "package p\nimport re \"regexp\"\nvar (\n\tx = []any{re.MustCompilePOSIX(`x`)}\n)",
			":4: every start would compile it: use internal/pattern"},
		{"keys/a.go", "package p\nimport \"regexp\"\nvar x = func() any { return regexp.MustCompile(`x`) }", ""},
		{"keys/a.go", "package p\nimport \"regexp\"\nfunc f() { regexp.MustCompile(`x`) }", ""},
		{"keys/a_test.go", "package p\nimport \"regexp\"\nvar x = regexp.MustCompile(`x`)", ""},
		{"internal/test/a.go", "package p\nimport \"regexp\"\nvar x = regexp.MustCompile(`x`)", ""},
		{"keys/a.go", ours("internal/pattern"), ""},

		// keys of etcd
		{"keys/a.go", "package p\nconst k = \"/registry/pods/\"", ""},
		{"inspect/a.go", "package p\nconst k = `/registry/pods/`", ":2: only keys may spell etcd keys"},
		{"internal/cli/a.go", "package p\nfunc f(s string) bool { return s == \"\\x2fregistry/\" }",
			":2: only keys may spell etcd keys"},
		{"internal/cli/a.go", "package p\nconst help = `etcdshift keys before.db /registry/pods/`", ""},
		{"inspect/a.go", "package p\nconst help = `etcdshift keys before.db /registry/pods/`",
			":2: only keys may spell etcd keys"},
		{"inspect/a.go", "package p\n// /registry/pods\nconst k = \"registry\"", ""},
		{"inspect/a.go", imports("k8s.io/apiserver/pkg/registry/rest"), ""},
		{"inspect/a_test.go", "package p\nconst k = \"/registry/pods/\"", ""},
		{"internal/test/etcdtest/a.go", "package p\nconst k = \"/registry/pods/\"", ""},
	}
}

// imports returns a file that imports packages.
func imports(paths ...string) string {
	return "package p\nimport (\n\"" + strings.Join(paths, "\"\n\"") + "\"\n)\n"
}

// ours returns a file that imports packages of this module.
func ours(dirs ...string) string {
	for i, dir := range dirs {
		dirs[i] = module + "/" + dir
	}
	return imports(dirs...)
}

// The checker finds each kind of violation, and no others.
func TestCheck(t *testing.T) {
	for _, tc := range slices.Concat(importCases(), ruleCases()) {
		tree := fstest.MapFS{tc.file: {Data: []byte(tc.source)}, "e2e/go.mod": {},
			"keys/README.md": {Data: []byte("/registry/")}}
		broken, _, err := check(tree)
		require.NoError(t, err, tc.file)
		want := tc.broken
		if want != "" {
			want = tc.file + want
		}
		require.Equal(t, want, strings.Join(broken, "\n"), "%s\n%s", tc.file, tc.source)
	}
}

func TestCheckReportsWhatItCannotRead(t *testing.T) {
	_, _, err := check(fstest.MapFS{"keys/a.go": {Data: []byte("no go")}})
	require.ErrorContains(t, err, "keys/a.go:1:1: expected 'package'")
}

// A type with too many methods is found across all non-test files of its package.
func TestCheckMethods(t *testing.T) {
	file := func(name, receiver string, from, to int) *fstest.MapFile {
		text := "package " + name + "\n"
		for i := from; i < to; i++ {
			text += fmt.Sprintf("func (x %s) m%d() {}\n", receiver, i)
		}
		return &fstest.MapFile{Data: []byte(text)}
	}
	tree := fstest.MapFS{
		"keys/a.go":      file("keys", "*many", 0, 13),
		"keys/b.go":      file("keys", "many", 13, 26),
		"keys/b_test.go": file("keys", "tested", 0, 30),
		"keys/c.go":      file("keys", "few[T]", 0, 25),
		"keys/d.go":      file("keys", "*generic[T]", 0, 26),
	}
	broken, _, err := check(tree)
	require.NoError(t, err)
	require.Equal(t, []string{
		"keys.generic has 26 methods: split the type, or write functions",
		"keys.many has 26 methods: split the type, or write functions",
	}, broken)
}
