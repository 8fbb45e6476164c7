package native

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"math/rand"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/meta"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// TestStrategies checks that every stored kind of the linked release has the rules of its server.
func TestStrategies(t *testing.T) {
	neverStored := []string{"Binding", "ComponentStatus", "Scale", "autoscaling Scale", "extensions Scale",
		"policy Eviction"}
	withoutRules := []string{"RangeAllocation"} // only API servers write it
	var without []string
	for gvk, of := range legacyscheme.Scheme.AllKnownTypes() {
		obj, err := legacyscheme.Scheme.New(gvk)
		require.NoError(t, err)
		_, is := obj.(metav1.Object)
		if gvk.Version != runtime.APIVersionInternal || !is || strings.HasPrefix(gvk.Group, "auth") {
			continue
		}
		if _, has := strategies()[reflect.PointerTo(of)]; !has {
			without = append(without, strings.TrimSpace(strings.TrimPrefix(gvk.Group, "apps")+" "+gvk.Kind))
		}
	}
	slices.Sort(without)
	require.Equal(t, slices.Sorted(slices.Values(slices.Concat(neverStored, withoutRules))), slices.Compact(without))
}

// stubs returns upstream's objects of every resource in the storage table of the linked release.
func stubs(t testing.TB) (all []map[string]any) {
	t.Helper()
	path := filepath.Join(moduleDir(t, "k8s.io/kubernetes"), "test", "integration", "etcd", "data.go")
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	require.NoError(t, err)
	kinds := map[schema.GroupVersionResource]string{}
	for gvk := range legacyscheme.Scheme.AllKnownTypes() {
		resource, _ := meta.UnsafeGuessKindToResource(gvk)
		kinds[resource] = gvk.Kind
	}
	ast.Inspect(file, func(n ast.Node) bool {
		entry, is := n.(*ast.KeyValueExpr)
		if !is {
			return true
		}
		call, is := entry.Key.(*ast.CallExpr)
		fields, isLit := entry.Value.(*ast.CompositeLit)
		if !is || !isLit || len(call.Args) != 3 {
			return true
		}
		of := schema.GroupVersionResource{Group: constant(call.Args[0]), Version: constant(call.Args[1]),
			Resource: constant(call.Args[2])}
		for _, e := range fields.Elts {
			if f := e.(*ast.KeyValueExpr); f.Key.(*ast.Ident).Name == "Stub" && kinds[of] != "" {
				var content map[string]any
				require.NoError(t, json.Unmarshal([]byte(constant(f.Value)), &content), of)
				content["apiVersion"], content["kind"] = of.GroupVersion().WithKind(kinds[of]).ToAPIVersionAndKind()
				all = append(all, content)
			}
		}
		return true
	})
	return all
}

// constant evaluates a constant string; variables are images.
func constant(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		return constant(e.X) + constant(e.Y)
	case *ast.BasicLit:
		s, _ := strconv.Unquote(e.Value)
		return s
	}
	if name, is := e.(*ast.Ident); is && name.Name == "namespace" {
		return "ns"
	}
	return "example.com/image:1"
}

// TestStubsAreValid checks that upstream's objects of all kinds have no error, with the fields
// that a server adds to new objects.
func TestStubsAreValid(t *testing.T) {
	seen := map[reflect.Type]bool{}
	for _, content := range stubs(t) {
		obj, known := defaulted(kindOf(content), content)
		require.True(t, known, content)
		of := reflect.TypeOf(obj)
		s, has := strategies()[of]
		require.True(t, has, of)
		seen[of] = true
		c, err := newCheck(content)
		require.NoError(t, err)
		object, err := meta.Accessor(obj)
		require.NoError(t, err)
		if s.object.NamespaceScoped() {
			object.SetNamespace("ns")
		}
		object.SetUID("u")
		s.object.PrepareForCreate(c.request("", obj), obj)
		versioned, err := legacyscheme.Scheme.ConvertToVersion(obj, kindOf(content).GroupVersion())
		require.NoError(t, err)
		made, err := Content(versioned)
		require.NoError(t, err)
		made["apiVersion"], made["kind"] = content["apiVersion"], content["kind"]
		reasons, ofStatus, err := RefusedAgain(made)
		require.NoError(t, err, content)
		require.Empty(t, append(reasons, ofStatus...), "%v", made)
	}
	for of := range strategies() {
		require.True(t, seen[of], "no object of %v", of)
	}
}

func kindOf(content map[string]any) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(content["apiVersion"].(string), content["kind"].(string))
}

// TestValidationSurvives checks that no object of random fields, of any kind, ends the program.
func TestValidationSurvives(t *testing.T) {
	checked := 0
	for _, gvk := range slices.SortedFunc(maps.Keys(scheme.Scheme.AllKnownTypes()),
		func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) }) {
		for seed := range int64(3) {
			var contents []map[string]any
			for i := range int64(2) {
				obj, err := scheme.Scheme.New(gvk)
				require.NoError(t, err)
				if _, is := obj.(metav1.Object); !is || gvk.Version == runtime.APIVersionInternal {
					continue
				}
				fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(2*seed+i), scheme.Codecs).Fill(obj)
				content, err := Content(obj)
				require.NoError(t, err)
				content["apiVersion"], content["kind"] = gvk.ToAPIVersionAndKind()
				contents = append(contents, content)
			}
			if len(contents) < 2 {
				continue
			}
			for _, content := range contents {
				_, _, _ = RefusedAgain(content)
				_, _, _ = RefusedAgain(map[string]any{"apiVersion": content["apiVersion"], "kind": content["kind"]})
			}
			_, err := Refused(contents[0], contents[1])
			if err == nil {
				checked++
			}
		}
	}
	require.Greater(t, checked, 200)
}
