package cli

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestComplete checks the candidates for the last word of command lines. "_" is an empty word.
func TestComplete(t *testing.T) {
	kinds := map[string][]string{"": {"pods", "services", "widgets.example.com"}, "pods": {"web-0", "web-1"},
		"namespaces": {"default", "shop"}}
	for words, want := range map[string]string{
		"sta":                                      "status",
		"migrate _":                                "calico-v3 storage-versions",
		"migrate storage-versions --mod":           "--mode",
		"migrate storage-versions --mode _":        "pure settled",
		"help kc":                                  "kcp",
		"get _":                                    ":files",
		"get -- _":                                 ":files",
		"get -n shop _":                            ":files",
		"get a.db po":                              "pods",
		"get a.db pods,ser":                        "pods,services",
		"get a.db pods/web-1":                      "pods/web-1",
		"get a.db pods _":                          "web-0 web-1",
		"get a.db pods/web-0 pods/web-1":           "pods/web-1",
		"get a.db pods -n _":                       "default shop",
		"get a.db pods --namespace=s":              "--namespace=shop",
		"get -oj":                                  "",
		"get -o js":                                "json jsonpath-as-json= jsonpath-file= jsonpath=",
		"get -A a.db wid":                          "widgets.example.com",
		"get a.db pods -nshop web-0":               "web-0",
		"status a.db _":                            ":files",
		"status a.db --encryption-config _":        ":files",
		"diff a.db _":                              ":files",
		"diff a.db b.db serv":                      "services",
		"history a.db b.db pod":                    "pods :files",
		"kubectl -q a.db expl":                     "explain",
		"kubectl a.db get pods web-0":              "web-0",
		"kubectl a.db describe -n shop pods web-1": "web-1",
		"kubectl a.db get --show-l":                "--show-labels",
		"kubectl a.db delete _":                    "",
		"explain und":                              "undecodable",
		"migrate calico-v3 --allow unde":           "undecodable",
		"completion _":                             "bash fish zsh",
		"nosuch _":                                 "",
		"kcp purge _":                              "",
		"fleet run a.json --index 7 -- kubectl a.db expl": "explain",
		"fleet run a.json --index 7 -- get a.db po":       "pods",
		"fleet run _":                                    ":files",
		"import a.db --on-conflict ta":                   "take take:",
		"import a.db --on-conflict take:po":              "take:pods",
		"import a.db --on-conflict take:pods/sh":         "take:pods/shop/",
		"import a.db --on-conflict=keep:pods/shop/web-1": "--on-conflict=keep:pods/shop/web-1",
	} {
		c := completer{app: newApp(Commands()), codes: []string{"undecodable"}}
		c.objects = func(file, kind string, in within) []string {
			require.Equal(t, "a.db", file)
			require.False(t, kind == "pods" && strings.Contains(words, "-nshop") && in.namespace != "shop", words)
			return kinds[kind]
		}
		got := c.complete(strings.Split(strings.ReplaceAll(words, "_", ""), " "))
		require.Equal(t, want, strings.Join(got, " "), words)
	}
}

// TestCompleteHostile: names with a meaning for a shell are not offered, and unreadable files offer
// nothing.
func TestCompleteHostile(t *testing.T) {
	c := completer{app: newApp(Commands())}
	c.objects = func(string, string, within) []string {
		return []string{"good", "$(reboot)", "a b", "`x`", "a\x1b[2J", "", "a\nb", "a\rb", "a;b", "-rf",
			"--show-secrets", ":files"}
	}
	for line, want := range map[string]string{
		"get a.db pods _": "good", "get a.db pods -n _": "good", "get a.db pods -n -": "", "get a.db -- pods -": "",
		"get a.db _":      "good",
		"get a.db pods/_": "pods/good", "get a.db pods --namespace=_": "--namespace=good",
		"kubectl a.db get pods _": "good", "kubectl a.db describe _": "good",
		"fleet run a.json -- get a.db pods _": "good",
	} {
		require.Equal(t, want, strings.Join(c.complete(strings.Split(strings.ReplaceAll(line, "_", ""), " ")), " "),
			line)
	}
	for _, file := range []string{"nosuch", t.TempDir(), "completion_test.go", "../../testdata/calico/before.db.gz", "",
		"-"} {
		status, stdout, stderr := runWords(completeWord, "get", file, "pods", "")
		require.Equal(t, exitDone, status)
		require.Empty(t, stdout+stderr, file)
	}
}

// TestCompleteTyped: a path is completed as typed, before a shell expands or unquotes it.
func TestCompleteTyped(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("HOME", folder)
	path := filepath.Join(folder, "a b.db")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	for _, word := range []string{path, `~/a\ b.db`, `"$HOME/a b.db"`, `"$HOME/a b.db`} {
		require.Equal(t, path, typedPath(word))
	}
}

// TestCompleteAsksNoServer: an object in a bucket is completed with nothing.
func TestCompleteAsksNoServer(t *testing.T) {
	asked := false
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer server.Close()
	t.Setenv("AWS_ENDPOINT_URL", server.URL)
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	require.Empty(t, completeObjects(t.Context(), "s3://bucket/a.db", "pods", within{}))
	require.False(t, asked)
}

// TestCompletionScriptsPrintAnyWord: echo would take -n, -e and -E as its own options.
func TestCompletionScriptsPrintAnyWord(t *testing.T) {
	for _, script := range []string{bashCompletion, zshCompletion, fishCompletion} {
		require.NotRegexp(t, `\becho\b`, script)
	}
}
