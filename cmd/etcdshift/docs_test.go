package main

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
	"github.com/etcdshift/etcdshift/transform/kcp/archive"
	"github.com/etcdshift/etcdshift/transform/storageversion"
)

// TestDocumentedCommands: every command line in the documentation is one that the program takes: its name and its flags.
func TestDocumentedCommands(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	require.NoError(t, err)
	line := regexp.MustCompile("etcdshift ((?:[a-z][a-z0-9-]* )*)([^`#;|&\n]*)")
	flag := regexp.MustCompile(`(?:^| )--?([a-z][a-z0-9-]*)`)
	known := 0
	for _, page := range append(pages, filepath.Join("..", "..", "README.md")) {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, m := range line.FindAllStringSubmatch(string(text), -1) {
			command := named(commands(), strings.Fields(m[1]))
			if command == nil {
				require.NotContains(t, m[2], "--", "%s: %s", page, m[0])
				continue // a sentence about etcdshift
			}
			known++
			for _, f := range flag.FindAllStringSubmatch(" "+m[2], -1) {
				require.NotNil(t, flagOf(command, f[1]), "%s: %s: no flag %s", page, m[0], f[1])
			}
		}
	}
	require.Greater(t, known, 20)
}

// named is the command of that path, nil where there is none. Words behind it are its arguments.
func named(commands []*cli.Command, path []string) (found *cli.Command) {
	for _, word := range path {
		for _, c := range commands {
			if c.Name == word {
				found, commands = c, c.Subcommands
				break
			}
		}
	}
	return found
}

// TestDocumentedConverter: the converter that the guide shows is the one that storage_exec_jq.txtar runs.
func TestDocumentedConverter(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "storage-versions.md"))
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(guide), "cat > convert <<'END'\n")
	require.True(t, found)
	shown, _, found := strings.Cut(rest, "    END\n")
	require.True(t, found)
	script, err := os.ReadFile(filepath.Join("testdata", "script", "storage_exec_jq.txtar"))
	require.NoError(t, err)
	require.Contains(t, string(script), "-- convert --\n"+strings.ReplaceAll(shown[4:], "\n    ", "\n"))
}

// TestDocumentedFields: the pages name every field of every document that -o json prints.
func TestDocumentedFields(t *testing.T) {
	documented(t, "report.md", 80, transform.Report{}, storageversion.Definitions{}, snapshot.Status{}, inspect.Catalogue{}, verification{})
	documented(t, "logical-clusters.md", 60, clusterList{})
	documented(t, "archive.md", 40, archive.Manifest{})
}

// documented requires a page to name each field of documents, which are at least so many.
func documented(t *testing.T, page string, least int, documents ...any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
	require.NoError(t, err)
	words := map[string]bool{}
	for _, quoted := range regexp.MustCompile("`[^`\n]+`").FindAllString(string(text), -1) {
		for _, word := range regexp.MustCompile(`[A-Za-z0-9]+`).FindAllString(quoted, -1) {
			words[word] = true
		}
	}
	n := 0
	var check func(reflect.Type)
	check = func(is reflect.Type) {
		switch is.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			check(is.Elem())
		case reflect.Struct:
			for _, f := range reflect.VisibleFields(is) {
				if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
					n++
					require.True(t, words[name], "%s: %s.%s: %s", page, is, f.Name, name)
				}
				check(f.Type)
			}
		}
	}
	for _, document := range documents {
		check(reflect.TypeOf(document))
	}
	require.Greater(t, n, least)
}

// sectionOf is the text below a heading of the third level.
func sectionOf(t *testing.T, page, title string) string {
	t.Helper()
	_, rest, found := strings.Cut(page, "\n### "+title+"\n")
	require.True(t, found, title)
	text, _, _ := strings.Cut(rest, "\n#")
	return text
}

// TestWrittenByKCP: the guide to a move names what kcp writes or removes by itself when a shard starts.
func TestWrittenByKCP(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "logical-clusters.md"))
	require.NoError(t, err)
	check := sectionOf(t, string(guide), "8. What to check")
	for _, what := range []string{"`kube-root-ca.crt`", "`ca.crt` of Secrets of type `kubernetes.io/service-account-token`", "half an hour"} {
		require.Contains(t, check, what)
	}
	for _, line := range strings.Split(string(guide), "\n") {
		if strings.Contains(line, "half an hour") {
			require.Contains(t, line, "creat", "the age of a definition counts from its creation")
		}
	}
}

// TestFrontProxyOrder: the guide to a move, and the help of each command in it, stop the front-proxies first and start them last.
func TestFrontProxyOrder(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "logical-clusters.md"))
	require.NoError(t, err)
	section := func(title string) string { return sectionOf(t, string(guide), title) }
	stop, start := section("1. Stop"), section("7. Start")
	require.Regexp(t, `(?s)^\W*Stop all front-proxies first\b.*\bkcp of both shards\b.*\bcache server\b`, stop)
	require.NotContains(t, stop, "front-proxy may run on")
	require.Regexp(t, `(?s)\betcds\b.*\bcache server\b.*\broot shard\b.*\bother shard\b.*\bfront-proxies last\b`, start)
	require.Contains(t, section("The way back"), "front-proxies")
	for _, name := range []string{"extract", "import", "purge", "verify"} {
		help := named(commands(), []string{"cluster", name}).UsageText
		require.Regexp(t, `(?s)stop all front-proxies first.*start the\s+front-proxies last`, strings.ToLower(help), name)
	}
}

// TestGuideWritesOnce: no command of the guide to a move writes a file that an earlier one has written, which would fail; and each command
// of the move is rehearsed.
func TestGuideWritesOnce(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "logical-clusters.md"))
	require.NoError(t, err)
	_, guide, found := strings.Cut(string(page), "\n## A move from one shard to another")
	require.True(t, found)
	written, dry, run := map[string]bool{}, 0, 0
	for _, line := range strings.Split(guide, "\n") {
		words := strings.Fields(line)
		if !strings.HasPrefix(line, "    ") || len(words) < 6 || words[1] != "cluster" || !slices.Contains([]string{"extract", "import", "purge"}, words[2]) {
			continue
		}
		if slices.Contains(words, "--dry-run") {
			dry++
			continue
		}
		run++
		require.False(t, written[words[5]], "%s is written twice", words[5])
		written[words[5]] = true
	}
	require.Equal(t, []int{3, 5}, []int{dry, run}, "import and both purges are rehearsed dry; extract is run twice")
}
