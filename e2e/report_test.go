package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// writeReport runs "etcdshift report" and returns the path of the page.
func writeReport(t testing.TB, name string, args ...string) string {
	t.Helper()
	program, err := filepath.Abs(filepath.Join("..", "bin", "etcdshift"))
	require.NoError(t, err)
	out := filepath.Join(t.TempDir(), name+".html")
	said, err := exec.Command(program, append([]string{"report", args[0], out}, args[1:]...)...).CombinedOutput()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 1 { // with findings
		err = nil
	}
	require.NoError(t, err, "%s", said)
	return out
}

// TestReport checks that a page opens in a real browser without a message or a request, with each
// of its sections, on a desktop, a phone and paper, light and dark; names stay text.
func TestReport(t *testing.T) {
	t.Parallel()
	before := snapshotOf(t, "before")
	migrated := migrate(t, before)
	for name, args := range map[string][]string{
		"calico": {before},
		"change": {migrated.path, "--before", before, "--migration",
			filepath.Join(filepath.Dir(migrated.path), "report.json")},
		"kcp":     {filepath.Join("..", "testdata", "kcp", "root-before.db.gz")},
		"hostile": {hostileSnapshot(t), "--prefix", "/registry"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			page := writeReport(t, name, args...)
			tab := openTab(t, page)
			sections := "identity verify doctor versions sizes activity objects history "
			if name == "change" {
				sections += "before migration "
			}
			require.Equal(t, sections+"sign", eval[string](t, tab,
				`[...document.querySelectorAll("main > section")].map(s => s.id).join(" ")`))
			requireInert(t, tab)
			requireLooks(t, tab, name)
			tab.print(t, filepath.Join(pictures(t), name+".pdf"))
			tab.mu.Lock()
			defer tab.mu.Unlock()
			require.Empty(t, tab.messages)
			require.Equal(t, []string{"file://" + page}, tab.asked)
		})
	}
}

// requireInert requires that elements and attributes of a page only display text.
func requireInert(t testing.TB, tab *tab) {
	t.Helper()
	elements := strings.Fields("html head meta title style body header p h1 h2 h3 bdi ul ol li span strong nav a " +
		"main section dl div dt dd code wbr " +
		"table thead tbody tr th td article br figure figcaption svg rect text line footer")
	attributes := strings.Fields("lang charset http-equiv content name class data-name href id tabindex scope " +
		"colspan role aria-label aria-hidden " +
		"viewBox preserveAspectRatio width height x y x1 x2 y1 y2 dy text-anchor")
	require.Subset(t, elements, eval[[]string](t, tab,
		`[...new Set([...document.querySelectorAll("*")].map(e => e.localName))]`))
	require.Subset(t, attributes, eval[[]string](t, tab,
		`[...new Set([...document.querySelectorAll("*")].flatMap(e => e.getAttributeNames()))]`))
	require.Equal(t, 1.0, eval[float64](t, tab, `document.styleSheets.length`))
	require.True(t, eval[bool](t, tab, `[...document.links].every(a => a.getAttribute("href").startsWith("#"))`))
}

// requireLooks requires that a page is never wider than the screen, and each theme has its
// background.
func requireLooks(t testing.TB, tab *tab, name string) {
	t.Helper()
	for _, l := range []look{
		{"light", 1280, "light", "screen"}, {"dark", 1280, "dark", "screen"}, {"phone", 390, "light", "screen"},
		{"phone-dark", 390, "dark", "screen"}, {"print", 800, "dark", "print"},
	} {
		tab.show(t, l, filepath.Join(pictures(t), name+"-"+l.name+".png"))
		paper := "rgb(255, 255, 255)"
		if l.scheme == "dark" && l.media == "screen" {
			paper = "rgb(20, 25, 31)"
		}
		require.Equal(t, paper, eval[string](t, tab, `getComputedStyle(document.documentElement).backgroundColor`),
			l.name)
		require.LessOrEqual(t, eval[float64](t, tab, `document.documentElement.scrollWidth`), float64(l.width), l.name)
	}
}

// TestReportHostile checks that hostile names are text on the page, and long names are cut.
func TestReportHostile(t *testing.T) {
	t.Parallel()
	page := writeReport(t, "hostile", hostileSnapshot(t), "--prefix", "/registry")
	tab := openTab(t, page)
	text := eval[string](t, tab, `document.body.textContent`)
	for _, shown := range []string{"<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`,
		"]]><svg onload=alert(1)>", "</title></style>", `\u202e`, `\x1b[2J`} {
		require.Contains(t, strings.ReplaceAll(text, `\"`, `"`), shown)
	}
	require.NotContains(t, text, "\u202e")
	require.Contains(t, text, "bytes)")
	require.Less(t, len(text), 1<<20)
	info, err := os.Stat(page)
	require.NoError(t, err)
	require.Less(t, info.Size(), int64(1<<20))
	require.Equal(t, os.FileMode(0o600), info.Mode())
}

// hostileSnapshot returns a snapshot of an etcd whose keys and objects have hostile names.
func hostileSnapshot(t testing.TB) string {
	t.Helper()
	s := startStore(t, t.TempDir())
	texts := []string{
		"<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`, "]]><svg onload=alert(1)>",
		"</title></style><script>x()</script>",
		"a\u202etxt.exe", "\x1b[2J\x07", "{{.}}`${alert(1)}`", "line\nbreak", strings.Repeat("long", 1<<18),
	}
	for _, text := range texts {
		short := text[:min(len(text), 100_000)]
		object, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": short, "metadata": map[string]any{
			"name": short, "namespace": short, "creationTimestamp": "2026-01-02T03:04:05Z",
			"labels":          map[string]string{"long": text},
			"ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": short, "name": "x", "uid": "u"}},
		}})
		require.NoError(t, err)
		for _, key := range []string{"/registry/configmaps/" + short + "/a", "/registry/example.com/" + short + "/b/c",
			"/registry/pods/" + short + "/a", "/registry/" + short + ".example.com/b/c/d"} {
			for range 2 {
				_, err := s.Put(context.Background(), key, string(object))
				require.NoError(t, err)
			}
		}
	}
	return s.save(t)
}

// TestBrowserComplains is the control: the tab reports a page that violates its policy, logs and
// requests a file.
func TestBrowserComplains(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "bad.html")
	require.NoError(t, os.WriteFile(path,
		[]byte(`<!DOCTYPE html><meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src *">
<p style="color:red">text</p><script>console.log("ran")</script><img src="other.png"><footer></footer>`), 0o600))
	tab := openTab(t, path)
	tab.mu.Lock()
	defer tab.mu.Unlock()
	require.Len(t, tab.asked, 2)
	require.Contains(t, strings.Join(tab.messages, "\n"), "Content Security Policy")
	require.GreaterOrEqual(t, len(tab.messages), 3, "%s", tab.messages)
}
