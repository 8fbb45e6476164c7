package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/columns"
	"github.com/etcdshift/etcdshift/internal/native"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

// upstreamObjects are folders of modules k8s.io/api with an object of each kind and version of a
// release, with every field.
func upstreamObjects() map[string]string {
	return map[string]string{
		"1.29": "v0.29.6/HEAD", "1.30": "v0.32.13/v1.30.0", "1.31": "v0.32.13/v1.31.0", "1.32": "v0.32.13/HEAD",
		"1.33": "v0.37.2/v1.33.0", "1.34": "v0.37.2/v1.34.0", "1.35": "v0.37.2/v1.35.0", "1.36": "v0.37.2/v1.36.0",
		"1.37": "v0.37.2/HEAD",
	}
}

// upstreamFile is a snapshot with objects of a release, as JSON and as protobuf.
type upstreamFile struct {
	path  string
	types []string
	lines []string // of tables, without ages; of all objects that the linked release decodes
	dead  []string // names of the other objects
}

// TestUpstreamObjects shows upstream's objects of each release: each cell equals the cell of an API
// server, or the object is named as one that no server of the linked release decodes.
func TestUpstreamObjects(t *testing.T) {
	for release, from := range upstreamObjects() {
		t.Run(release, func(t *testing.T) {
			t.Parallel()
			version, folder, _ := strings.Cut(from, "/")
			f := newUpstreamFile(t, version, folder)
			require.Greater(t, len(f.lines), 150)
			for _, command := range [][]string{
				{"get", "-q", f.path, strings.Join(f.types, ","), "-A", "-o", "wide", "--age-from",
					time.Now().UTC().Format(time.RFC3339)},
				{"kubectl", f.path, "get", strings.Join(f.types, ","), "-A", "-o", "wide"},
			} {
				status, stdout, stderr := runWords(command...)
				shown := tableLines(stdout)
				for _, line := range f.lines {
					require.Contains(t, shown, line, "%s: %s", command[0], stderr)
				}
				require.Equal(t, len(f.dead) > 0, status != 0, "%s: %s", command[0], stderr)
				for _, name := range f.dead {
					require.Contains(t, stderr, name, command[0])
				}
			}
			for _, words := range []string{
				"doctor", "doctor --kubernetes 1.29", "doctor --validate", "status", "sizes",
			} {
				status, _, stderr := runWords(append(strings.Fields(words), f.path)...)
				require.LessOrEqual(t, status, 1, stderr)
			}
		})
	}
}

func newUpstreamFile(t *testing.T, version, folder string) *upstreamFile {
	t.Helper()
	out, err := exec.Command("go", "mod", "download", "-json", "k8s.io/api@"+version).Output()
	require.NoError(t, err)
	var module struct{ Dir string }
	require.NoError(t, json.Unmarshal(out, &module))
	paths, err := filepath.Glob(filepath.Join(module.Dir, "testdata", folder, "*.json"))
	require.NoError(t, err)
	f := &upstreamFile{path: filepath.Join(t.TempDir(), folder+".db")}
	named := map[string]bool{}
	var changes []snapshot.Change
	for _, path := range paths {
		if strings.Contains(path, ".after_roundtrip.") {
			continue
		}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		content, _, err := encoding.DecodeObject(text)
		require.NoError(t, err)
		apiVersion, _ := content["apiVersion"].(string)
		kindName, _ := content["kind"].(string)
		gvk := schema.FromAPIVersionAndKind(apiVersion, kindName)
		kind := builtinOf(gvk.GroupKind())
		if kind == nil {
			continue // never stored, or of a removed kind
		}
		named[kind.Name()] = true
		message, err := os.ReadFile(strings.TrimSuffix(path, "json") + "pb")
		require.NoError(t, err)
		for format, value := range map[string][]byte{"json": text, "pb": message} {
			name := strings.ToLower(strings.Join([]string{gvk.Kind, gvk.Version, gvk.Group, format}, "-"))
			changes = append(changes, f.add(t, kind, gvk, name, value))
		}
	}
	f.types = slices.Sorted(maps.Keys(named))
	writeChanges(t, f.path, changes)
	return f
}

// builtinOf returns the type of a kind, also under a former group.
func builtinOf(kind schema.GroupKind) *inspect.Type {
	for _, t := range inspect.Builtins() {
		former := kind.Group == "extensions" && t.Resource.Group != "" || kind.Group == "events.k8s.io"
		if t.Kind == kind.Kind && (t.Resource.Group == kind.Group || former) {
			return t
		}
	}
	return nil
}

// add names an object, and remembers its line.
func (f *upstreamFile) add(t *testing.T, kind *inspect.Type, gvk schema.GroupVersionKind, name string, value []byte,
) snapshot.Change {
	t.Helper()
	namespace, key := "", string(keys.Kubernetes{Prefix: "/registry"}.Dir(kind.Resource))
	if kind.Namespaced {
		namespace = "ns"
		key += namespace + "/"
	}
	for field, text := range map[string]string{"name": name, "namespace": namespace} {
		var err error
		value, err = encoding.Set(value, text, "metadata", field)
		require.NoError(t, err)
	}
	if !native.DecodedBy(gvk, native.LinkedRelease) {
		f.dead = append(f.dead, name)
	} else {
		content, err := native.Decode(value)
		require.NoError(t, err, name)
		line := ""
		for _, cell := range append([]any{namespace}, columns.For(kind).Row(content, time.Now())...) {
			line += fmt.Sprintln(cell)
		}
		f.lines = append(f.lines, tableLines(strings.ReplaceAll(line, "\n", " "))...)
	}
	return snapshot.Change{Key: []byte(key + name), Value: value}
}

// tableLines returns the lines of tables without ages, blanks and the kinds before names.
func tableLines(text string) (lines []string) {
	age := regexp.MustCompile(`\b(?:[0-9]+[smhdy])+\b`)
	prefix := regexp.MustCompile(`(^| )[a-z.0-9]+/([a-z0-9.-]+-(?:json|pb)\b)`)
	for line := range strings.Lines(text) {
		line = strings.Join(strings.Fields(age.ReplaceAllString(line, "AGE")), " ")
		lines = append(lines, prefix.ReplaceAllString(line, "$1$2"))
	}
	return lines
}

// writeChanges writes a snapshot with the records.
func writeChanges(t *testing.T, path string, changes []snapshot.Change) {
	t.Helper()
	base := recordedFile(t, t.TempDir(), "reports/base.db", "base.db")
	src, err := snapshot.Open(t.Context(), base, snapshot.Config{})
	require.NoError(t, err)
	defer src.Close()
	_, err = snapshot.Write(t.Context(), path, src, func(yield func(snapshot.Change, error) bool) {
		for _, change := range changes {
			if !yield(change, nil) {
				return
			}
		}
	}, snapshot.WriteConfig{})
	require.NoError(t, err)
}
