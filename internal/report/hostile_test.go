package report

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

// hostileTexts returns texts that a tenant may put into names.
func hostileTexts() []string {
	return []string{
		`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `]]><svg onload=alert(1)>`,
		`</title></style><script>x</script>`,
		"a\u202etxt.exe", "\x1b[2J\x07\x00", "`@everyone` | [x](http://x) <b>", "{{.}}", "line\nbreak\r\n# head",
		"\xff\xfe", strings.Repeat("x", 1<<20),
	}
}

// hostile returns a snapshot with such keys, namespaces, labels and versions.
func hostile(t testing.TB) string {
	var script strings.Builder
	for i, text := range hostileTexts() {
		object, err := json.Marshal(map[string]any{
			"apiVersion": "v1/" + text, "kind": text, "metadata": map[string]any{
				"name": text, "namespace": text, "labels": map[string]any{text: text},
				"creationTimestamp": "2026-01-02T03:04:05Z",
				"ownerReferences":   []any{map[string]any{"apiVersion": text, "kind": text, "name": text, "uid": "u"}},
			},
		})
		require.NoError(t, err)
		key := text
		if len(key) > 1000 {
			key = key[:300_000] // a request has at most 1.5 MB
			object = object[:min(len(object), 1_000_000)]
		}
		for _, k := range []string{"/registry/configmaps/" + key + "/" + key[:min(len(key), 9)],
			"/registry/example.com/" + key + "/ns/n", "/registry/pods/" + key,
			"/registry/" + key + ".example.com/b/c/d", key} {
			fmt.Fprintf(&script, "put %q %q\nput %q %q\n", k, object, k, object)
		}
		if i%2 == 0 {
			fmt.Fprintf(&script, "del %q\n", key)
		}
	}
	return etcdtest.Build(t, script.String())
}

// TestHostile checks that hostile names add no elements to a page, control characters are visible,
// and long texts are cut.
func TestHostile(t *testing.T) {
	path := hostile(t)
	migration, err := json.Marshal(map[string]any{
		"apiVersion": "etcdshift/v1", "kind": "Report", "command": hostileTexts()[0], "outcome": hostileTexts()[1],
		"error": hostileTexts()[2],
		"input": map[string]any{"path": hostileTexts()[3], "sha256": hostileTexts()[0]}, "steps": hostileTexts(),
		"restore": hostileTexts(),
		"kinds":   []any{map[string]any{"kind": hostileTexts()[0], "from": hostileTexts()[1]}},
		"problems": []any{map[string]any{"key": hostileTexts()[4], "code": hostileTexts()[0],
			"level": hostileTexts()[1], "reason": hostileTexts()[2]}},
	})
	require.NoError(t, err)
	p := read(t, opened(t, path, "/registry"), Options{Migration: migration})
	p.Path = hostileTexts()[3]
	page := printed(t, p.HTML)
	requireQuiet(t, page)
	require.Equal(t, FitsNot, p.Migration.Fits)
	require.Contains(t, page, "&lt;script&gt;alert(1)&lt;/")
	require.Contains(t, page, `\u202e`)
	require.Less(t, len(page), 1<<20)
	require.Contains(t, page, "bytes)")
	require.NotContains(t, page, "\u202e")
	for _, r := range page {
		require.False(t, r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0, "%q", r)
	}
}
