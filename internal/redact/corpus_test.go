package redact_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/redact"
)

const corpusKey = "/registry/example.com/things/ns/a"

// shape is one case of the corpus.
type shape struct {
	name string
	obj  map[string]any
}

// corpus reads testdata/NAME. The head of the file describes its sections.
func corpus(t testing.TB, name string) (shapes []shape) {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	for _, file := range archive.Files {
		text := string(file.Data)
		section, _, found := strings.Cut(file.Name, ":")
		require.True(t, found, file.Name)
		if section == "object" {
			shapes = append(shapes, shape{file.Name, parse(t, text)})
			continue
		}
		if entry, isEntry := strings.CutPrefix(section, "entry "); isEntry {
			shapes = append(shapes, shape{file.Name, configMap(entry, text)})
			continue
		}
		for line := range strings.Lines(text) {
			line = strings.TrimSuffix(line, "\n")
			shapes = append(shapes, shape{file.Name + ": " + line, lineShape(t, section, line)})
		}
	}
	return shapes
}

func lineShape(t testing.TB, section, line string) map[string]any {
	switch section {
	case "lines":
		return configMap("config", strings.ReplaceAll(line, `\n`, "\n"))
	case "fields":
		return parse(t, "{apiVersion: example.com/v1, kind: Thing, spec: "+line+"}")
	}
	require.Equal(t, "env", section)
	name, value, _ := strings.Cut(line, "=")
	env := map[string]any{"name": name, "value": value}
	return map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"env": []any{env}}}}}
}

func configMap(entry, text string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{entry: text}}
}

// markers returns MARKER as text, and in base64 at each of the three offsets in a group.
func markers() []string { return []string{"MARKER", "TUFSS0VS", "NQVJLRV", "1BUktFU"} }

func text(t testing.TB, value any) string {
	t.Helper()
	out, err := json.Marshal(value)
	require.NoError(t, err)
	return string(out)
}

// TestCorpus checks that each shape of testdata/hidden.txtar is redacted completely, and no shape
// of testdata/shown.txtar.
func TestCorpus(t *testing.T) {
	hidden, shown := corpus(t, "hidden.txtar"), corpus(t, "shown.txtar")
	require.Greater(t, len(hidden), 100)
	require.Greater(t, len(shown), 100)
	var wrong []string
	for _, s := range hidden {
		before := text(t, s.obj)
		if changed := redact.NewShared().Object([]byte(corpusKey), s.obj); !changed || leaks(text(t, s.obj)) {
			wrong = append(wrong, fmt.Sprintf("leaks: %s\n\t%s", s.name, before))
		}
		if redact.NewShared().Object([]byte(corpusKey), s.obj) {
			wrong = append(wrong, "a second pass changes "+s.name)
		}
	}
	for _, s := range shown {
		before := text(t, s.obj)
		if changed := redact.NewShared().Object([]byte(corpusKey), s.obj); changed || text(t, s.obj) != before {
			wrong = append(wrong, fmt.Sprintf("redacted: %s\n\t%s\n\t%s", s.name, before, text(t, s.obj)))
		}
	}
	require.Empty(t, wrong, "%d of %d and %d:\n%s", len(wrong), len(hidden), len(shown), strings.Join(wrong, "\n"))
}

func leaks(text string) bool {
	for _, marker := range markers() {
		if strings.Contains(text, marker) {
			return true
		}
	}
	return false
}
