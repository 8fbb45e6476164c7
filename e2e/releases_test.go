package e2e

import (
	"context"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// builtRelease is the release of bin/kube-apiserver.
const builtRelease = "1.36"

// stubNamespace is the namespace of the stubs.
const stubNamespace = "stubs"

// everyFeature serves all kinds of a release, and accepts Pods without a ServiceAccount. Objects
// get only defaults that the release adds without flags.
func everyFeature(release string) []string {
	gates := "--feature-gates=AllAlpha=true,AllBeta=true"
	if release == "1.35" || release == "1.36" {
		gates += ",VolumeLimitScaling=false"
	}
	return []string{everyAPI, gates, "--disable-admission-plugins=ServiceAccount"}
}

// serverReleases returns the releases that have a kube-apiserver in bin.
func serverReleases(t testing.TB) (releases []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("bin", "kube-apiserver-*"))
	require.NoError(t, err)
	require.NotEmpty(t, paths, "run make e2e in the folder above")
	for _, path := range paths {
		releases = append(releases, strings.TrimPrefix(filepath.Base(path), "kube-apiserver-"))
	}
	return append(releases, builtRelease)
}

// serverName returns the name of the kube-apiserver of a release in bin.
func serverName(release string) string {
	if release == builtRelease {
		return "kube-apiserver"
	}
	return "kube-apiserver-" + release
}

// stub is an object of Kubernetes' own test of its storage (test/integration/etcd/data.go).
type stub struct {
	resource      schema.GroupVersionResource
	object        string // JSON without kind
	prerequisites []stub
}

// stubs returns the stubs of a release, from the module cache.
func stubs(t testing.TB, release string) (out []stub) {
	t.Helper()
	version := "v1.36.3" // of go.mod
	if release != builtRelease {
		version = strings.TrimPrefix(runText(t, tool(t, serverName(release)), "--version"), "Kubernetes ")
	}
	var module struct{ Dir string }
	query := "k8s.io/kubernetes@" + strings.TrimSpace(version)
	require.NoError(t, json.Unmarshal([]byte(runText(t, "go", "mod", "download", "-json", query)), &module))
	file, err := parser.ParseFile(token.NewFileSet(),
		filepath.Join(module.Dir, "test", "integration", "etcd", "data.go"), nil, 0)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		pair, isPair := n.(*ast.KeyValueExpr)
		if !isPair {
			return true
		}
		resource, isResource := callOf(pair.Key, "gvr")
		fields, isFields := pair.Value.(*ast.CompositeLit)
		if !isResource || !isFields {
			return true
		}
		if s := stubOf(resource, fields); s.object != "" {
			out = append(out, s)
		}
		return true
	})
	require.Greater(t, len(out), 60)
	return out
}

// stubOf reads the fields of a StorageData or a Prerequisite.
func stubOf(resource schema.GroupVersionResource, fields *ast.CompositeLit) stub {
	s := stub{resource: resource}
	for _, element := range fields.Elts {
		field := element.(*ast.KeyValueExpr)
		switch field.Key.(*ast.Ident).Name {
		case "Stub":
			s.object = textOf(field.Value)
		case "GvrData":
			s.resource, _ = callOf(field.Value, "gvr")
		case "Prerequisites":
			for _, one := range field.Value.(*ast.CompositeLit).Elts {
				s.prerequisites = append(s.prerequisites, stubOf(resource, one.(*ast.CompositeLit)))
			}
		}
	}
	return s
}

// callOf returns the resource of a call like gvr("apps", "v1", "deployments").
func callOf(n ast.Expr, name string) (r schema.GroupVersionResource, ok bool) {
	call, isCall := n.(*ast.CallExpr)
	if !isCall {
		return r, false
	}
	if f, isName := call.Fun.(*ast.Ident); !isName || f.Name != name {
		return r, false
	}
	return schema.GroupVersionResource{
		Group: textOf(call.Args[0]), Version: textOf(call.Args[1]), Resource: textOf(call.Args[2]),
	}, true
}

// textOf returns a text of literals and variables.
func textOf(n ast.Expr) string {
	switch n := n.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(n.Value)
		return text
	case *ast.BinaryExpr:
		return textOf(n.X) + textOf(n.Y)
	case *ast.Ident:
		return map[string]string{"image": "busybox:1", "namespace": stubNamespace}[n.Name]
	}
	return ""
}

func runText(t testing.TB, program string, args ...string) string {
	t.Helper()
	out, err := exec.Command(program, args...).Output()
	require.NoError(t, err)
	return string(out)
}

// TestReleases stores upstream's stub of each kind in the API server of each release, and
// re-encodes the objects for each other release: its API server lists all kinds, and an update of
// each object without changes writes nothing. The way back from an older release gives the bytes of
// an update by the first one.
func TestReleases(t *testing.T) {
	t.Parallel()
	releases := serverReleases(t)
	for _, from := range releases {
		t.Run(from, func(t *testing.T) {
			t.Parallel()
			saved := stubbed(t, from, from)
			updated := values(t, convert(t, saved, from).path)
			for _, to := range releases {
				t.Run("to "+to, func(t *testing.T) {
					there := requireNamed(t, saved, to)
					requireServed(t, there, to)
					if to <= from { // the first release keeps defaults that a newer one added
						requireRestored(t, updated, there, convert(t, there.path, from, "--allow", "dead-version"))
					}
				})
			}
		})
	}
}

// TestEmulated stores the stubs in API servers that emulate an older release, and re-encodes the
// objects for that release: its own API server lists all kinds, and an update of each object
// without changes writes nothing.
func TestEmulated(t *testing.T) {
	t.Parallel()
	releases := serverReleases(t)
	for _, server := range []string{builtRelease, "1.37"} {
		for _, release := range releases {
			if release < server {
				t.Run(server+" as "+release, func(t *testing.T) {
					there := requireNamed(t, stubbed(t, server, release), release)
					requireServed(t, there, release)
				})
			}
		}
	}
}

// stubbed returns a snapshot with the stubs of a release, stored by an API server of the release,
// or by a newer one that emulates it.
func stubbed(t testing.TB, server, release string) (path string) {
	t.Helper()
	flags := everyFeature(release)
	if server != release { // without what needs features or kinds of the newer release
		flags = []string{everyAPI,
			"--feature-gates=AllAlpha=true,AllBeta=true,StorageVersionAPI=false,EventedPLEG=false",
			"--disable-admission-plugins=ServiceAccount,MutatingAdmissionPolicy", "--emulated-version=" + release}
	}
	c := startServer(t, serverName(server), filepath.Join(t.TempDir(), "etcd"), flags...)
	defer c.stop()
	_, err := c.client(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "").Create(
		context.Background(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": stubNamespace},
		}}, metav1.CreateOptions{})
	require.NoError(t, err)
	type kind struct {
		schema.GroupVersionKind
		namespaced bool
	}
	kinds := map[schema.GroupVersionResource]kind{}
	for gvk, r := range c.kinds(t) {
		kinds[r.GroupVersionResource] = kind{gvk, r.namespaced}
	}
	created := 0
	for _, s := range stubs(t, server) {
		for _, one := range append(s.prerequisites, s) {
			r, served := kinds[one.resource]
			if !served { // of another release, or a kind of a CRD
				continue
			}
			o := &unstructured.Unstructured{}
			require.NoError(t, json.Unmarshal([]byte(one.object), &o.Object))
			o.SetGroupVersionKind(r.GroupVersionKind)
			namespace := ""
			if r.namespaced {
				namespace = stubNamespace
			}
			_, err := c.client(one.resource, namespace).Create(context.Background(), o, metav1.CreateOptions{})
			require.NoError(t, err, "%s of %s", one.resource, release)
			created++
		}
	}
	require.Greater(t, created, 70)
	c.store.waitQuiet(t)
	return c.store.save(t)
}

// requireNamed re-encodes a snapshot for a release, and requires that all problems are expected.
func requireNamed(t *testing.T, saved, to string) converted {
	t.Helper()
	for _, p := range convert(t, saved, to, "--dry-run").Problems {
		switch p.Code {
		case "dead-version", "unknown-kind": // an alpha version that this build cannot write, or check
			require.Contains(t, p.Reason, "alpha", p.Key)
		case "not-in-release", "pruned-field", "managed-fields-lost":
		default:
			require.Fail(t, p.Code, "%s: %s", p.Key, p.Reason)
		}
	}
	return convert(t, saved, to, "--remove-unserved", "--allow", "dead-version", "--allow", "pruned-field")
}

// requireServed requires that an API server of a release lists all kinds in a re-encoded snapshot,
// and that an update of each object without changes writes nothing.
func requireServed(t *testing.T, there converted, to string) {
	t.Helper()
	dir := restoreAsIs(t, there.path)
	var dead []string
	for _, p := range there.Problems {
		if p.Code == "dead-version" {
			dead = append(dead, p.Key)
		}
	}
	remove(t, dir, dead)
	c := startServer(t, serverName(to), dir, everyFeature(to)...)
	before := c.store.waitQuiet(t)
	require.Greater(t, c.updateAll(t), 300)
	require.Empty(t, difference(before, c.store.records(t)))
}

// problem is a problem of a report.
type problem struct{ Key, Code, Reason string }

// converted is the report of a migration, with the path of the output.
type converted struct {
	Problems []problem
	path     string
}

// convert runs "migrate storage-versions" for a release.
func convert(t testing.TB, in, release string, flags ...string) (c converted) {
	t.Helper()
	c.path = filepath.Join(t.TempDir(), "after.db")
	report := filepath.Join(t.TempDir(), "report.json")
	args := append([]string{"migrate", "storage-versions", in, c.path, "--kubernetes", release, "--report", report},
		flags...)
	said, _ := exec.Command(etcdshift(t), args...).CombinedOutput()
	text, err := os.ReadFile(report)
	require.NoError(t, err, "%s", said)
	require.NoError(t, json.Unmarshal(text, &c))
	return c
}

// remove removes keys from the etcd of a data directory.
func remove(t testing.TB, dir string, keys []string) {
	t.Helper()
	s := startStore(t, dir)
	for _, key := range keys {
		_, err := s.Delete(context.Background(), key)
		require.NoError(t, err)
	}
	require.NoError(t, s.Close())
	s.process.stop()
}

// values returns the values of a snapshot by key.
func values(t testing.TB, path string) map[string]string {
	t.Helper()
	s := startStore(t, restoreAsIs(t, path))
	defer func() {
		_ = s.Close()
		s.process.stop()
	}()
	out := map[string]string{}
	for key, r := range s.records(t) {
		out[key] = r.value
	}
	return out
}

// requireRestored requires that each object in back has the updated bytes of its own release, but
// for problems on the way there or back.
func requireRestored(t testing.TB, updated map[string]string, there, back converted) {
	t.Helper()
	named := map[string]bool{}
	for _, p := range append(there.Problems, back.Problems...) {
		named[p.Key] = true
	}
	for key, value := range values(t, back.path) {
		if !named[key] {
			require.Equal(t, updated[key], value, key)
		}
	}
}

// fieldsDeployment has fields that Kubernetes 1.36 does not know.
const fieldsDeployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"fields"},"spec":{` +
	`"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{` +
	`"volumes":[{"name":"v","emptyDir":{"mode":448}}],"containers":[{"name":"c","image":"busybox:1",` +
	`"volumeMounts":[{"name":"v","mountPath":"/v"}]}]}}}}`

// TestFieldsOfRelease checks that a field unknown to an older release is named, and that its API
// server drops exactly the bytes that --allow drops.
func TestFieldsOfRelease(t *testing.T) {
	t.Parallel()
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	c := startServer(t, serverName("1.37"), filepath.Join(t.TempDir(), "etcd"), everyFeature("1.37")...)
	o := &unstructured.Unstructured{}
	require.NoError(t, json.Unmarshal([]byte(fieldsDeployment), &o.Object))
	_, err := c.client(deployments, "default").Create(context.Background(), o, metav1.CreateOptions{})
	require.NoError(t, err)
	c.store.waitQuiet(t)
	saved := c.store.save(t)
	c.stop()

	const key = "/registry/deployments/default/fields"
	named := convert(t, saved, builtRelease, "--dry-run", "--remove-unserved").Problems
	at := slices.IndexFunc(named, func(p problem) bool { return p.Key == key })
	require.GreaterOrEqual(t, at, 0)
	require.Equal(t, problem{key, "pruned-field",
		"apps/v1 Deployment of Kubernetes 1.36 cannot hold spec.template.spec.volumes[0].emptyDir.mode"}, named[at])

	update := func(path string) (before, after string) {
		c := startServer(t, serverName(builtRelease), restoreAsIs(t, path), everyFeature(builtRelease)...)
		defer c.stop()
		before = c.store.waitQuiet(t)[key].value
		one, err := c.client(deployments, "default").Get(context.Background(), "fields", metav1.GetOptions{})
		require.NoError(t, err)
		_, err = c.client(deployments, "default").Update(context.Background(), one, metav1.UpdateOptions{})
		require.NoError(t, err)
		return before, c.store.waitQuiet(t)[key].value
	}
	first, updated := update(saved)
	require.NotEqual(t, first, updated)
	before, after := update(convert(t, saved, builtRelease, "--remove-unserved", "--allow", "pruned-field").path)
	require.Equal(t, before, after)
	require.Equal(t, updated, before)
}
