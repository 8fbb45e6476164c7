package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/docs"
)

// TestDocumentedCommands: the program accepts the name and the flags of every command line in the
// documentation.
func TestDocumentedCommands(t *testing.T) {
	line := regexp.MustCompile("etcdshift ((?:[a-z][a-z0-9-]* )*)([^`#;|&\n]*)")
	flag := regexp.MustCompile(`(?:^| )--?([a-z][a-z0-9-]*)`)
	known := 0
	for _, page := range documentation(t) {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, m := range line.FindAllStringSubmatch(string(text), -1) {
			command := named(Commands(), strings.Fields(m[1]))
			if command == nil {
				require.NotContains(t, m[2], "--", "%s: %s", page, m[0])
				continue // a sentence about etcdshift
			}
			known++
			words, _, _ := strings.Cut(m[2], " -- ") // the command of "fleet run"
			if passesOn(command) {
				words, _, _ = strings.Cut(words, ".db ")
			}
			for _, f := range flag.FindAllStringSubmatch(" "+words, -1) {
				require.NotNil(t, flagOf(command, f[1]), "%s: %s: no flag %s", page, m[0], f[1])
			}
		}
	}
	require.Greater(t, known, 20)
}

// named returns the command of that path, nil for none. Words after the command are its arguments.
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

// TestDocumentedConverter: the guide shows the converter run by storage_exec_jq.txtar.
func TestDocumentedConverter(t *testing.T) {
	guide, is := docs.Page("storage-versions")
	require.True(t, is)
	_, rest, found := strings.Cut(guide, "cat > convert <<'END'\n")
	require.True(t, found)
	shown, _, found := strings.Cut(rest, "    END\n")
	require.True(t, found)
	script, err := os.ReadFile(filepath.Join("testdata", "script", "storage_exec_jq.txtar"))
	require.NoError(t, err)
	require.Contains(t, string(script), "-- convert --\n"+strings.ReplaceAll(shown[4:], "\n    ", "\n"))
}

// TestSearchTexts: README, explain and command help contain the errors users search for.
func TestSearchTexts(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	require.NoError(t, err)
	_, explained, _ := runWords("explain", "-o", "json")
	for text, command := range map[string]string{
		"must appear in spec.versions":                        "migrate storage-versions",
		"request to convert CR from an invalid group/version": "migrate storage-versions",
		"failed calling webhook":                              "doctor",
		"mvcc: database space exceeded":                       "sizes",
	} {
		require.Contains(t, string(readme), text+"`")
		help := strings.Join(strings.Fields(named(Commands(), strings.Fields(command)).UsageText), " ")
		require.Contains(t, help, text, command)
		require.Contains(t, explained, text)
	}
}

// documentation returns the pages for users.
func documentation(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "*", "*.md"))
	require.NoError(t, err)
	return append(pages, filepath.Join("..", "..", "README.md"))
}

// sectionOf returns the text below a heading of the second level.
func sectionOf(t *testing.T, page, title string) string {
	t.Helper()
	_, rest, found := strings.Cut(page, "\n## "+title+"\n")
	require.True(t, found, title)
	text, _, _ := strings.Cut(rest, "\n#")
	return text
}

// TestWrittenByKCP: the guide to a move names the objects written or removed by kcp itself when a
// shard starts.
func TestWrittenByKCP(t *testing.T) {
	guide, is := docs.Page("move-a-logical-cluster")
	require.True(t, is)
	check := strings.Join(strings.Fields(sectionOf(t, guide, "8. What to check")), " ")
	for _, what := range []string{"`kube-root-ca.crt`",
		"`ca.crt` of Secrets of type `kubernetes.io/service-account-token`", "half an hour"} {
		require.Contains(t, check, what)
	}
	for _, item := range strings.Split(guide, "\n- ") {
		if strings.Contains(item, "half an hour") {
			require.Contains(t, item, "creat", "the age of a definition counts from its creation")
		}
	}
}

// TestFrontProxyOrder: the guide to a move, and the help of each command in it, stop the
// front-proxies first and start them last.
func TestFrontProxyOrder(t *testing.T) {
	guide, is := docs.Page("move-a-logical-cluster")
	require.True(t, is)
	section := func(title string) string { return sectionOf(t, guide, title) }
	stop, start := section("1. Stop"), section("7. Start")
	require.Regexp(t, `(?s)^\W*Stop all front-proxies first\b.*\bkcp of both shards\b.*\bcache server\b`, stop)
	require.NotContains(t, stop, "front-proxy may run on")
	require.Regexp(t, `(?s)\betcds\b.*\bcache server\b.*\broot shard\b.*\bother shard\b.*\bfront-proxies last\b`, start)
	require.Contains(t, section("The way back"), "front-proxies")
	for _, name := range []string{"extract", "import", "purge", "verify"} {
		help := named(Commands(), []string{"kcp", name}).UsageText
		require.Regexp(t, `(?s)stop all front-proxies first.*start the\s+front-proxies last`,
			strings.ToLower(help), name)
	}
}

// TestGuideWritesOnce: no command in the guide to a move writes a file of an earlier command, which
// would fail; import and both purges run dry first.
func TestGuideWritesOnce(t *testing.T) {
	page, is := docs.Page("move-a-logical-cluster")
	require.True(t, is)
	_, guide, found := strings.Cut(page, "\n## Days before")
	require.True(t, found)
	written, dry, run := map[string]bool{}, 0, 0
	for _, line := range strings.Split(guide, "\n") {
		words := strings.Fields(line)
		if !strings.HasPrefix(line, "    ") || len(words) < 6 || words[1] != "kcp" ||
			!slices.Contains([]string{"extract", "import", "purge"}, words[2]) {
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
	require.Equal(t, []int{3, 5}, []int{dry, run}, "import and both purges run dry first; extract runs twice")
}

// TestRunbooks: each page and its command exist, and each command that changes a file has a page.
func TestRunbooks(t *testing.T) {
	books := runbooks()
	eachCommand(Commands(), nil, func(path []string, c *cli.Command) {
		name := strings.Join(path, " ")
		if strings.HasPrefix(c.ArgsUsage, "IN OUT") {
			require.NotEmpty(t, books[name], name)
		}
		if books[name] != "" {
			_, is := docs.Page(books[name])
			require.True(t, is, books[name])
		}
		delete(books, name)
	})
	require.Empty(t, books, "no such command")
}

// TestAnswersInJSON checks the README's statement about -o json.
func TestAnswersInJSON(t *testing.T) {
	others := []string{"export", "kubectl", "serve", "fleet run", "completion", "man"}
	eachCommand(Commands(), nil, func(path []string, c *cli.Command) {
		name := strings.Join(path, " ")
		require.NotEqual(t, flagOf(c, "output") != nil, slices.Contains(others, name), name)
	})
}

// TestWrappedPages: on a terminal the prose of a page fits 80 columns without losing a word.
// Commands and tables stay unchanged.
func TestWrappedPages(t *testing.T) {
	for _, name := range docs.Pages() {
		text, is := docs.Page(name)
		require.True(t, is, name)
		page := wrapPage(text)
		require.Equal(t, strings.Fields(text), strings.Fields(page), name)
		for line := range strings.Lines(page) {
			words := strings.Fields(line)
			if verbatim().MatchString(line) || entryHead().MatchString(line) && len(words) == 2 || len(words) < 2 {
				continue
			}
			require.LessOrEqual(t, utf8.RuneCountInString(line), 81, "%s: %s", name, line)
		}
		for _, line := range strings.Split(text, "\n") {
			if verbatim().MatchString(line) {
				require.Contains(t, page, line, name)
			}
		}
	}
	require.Equal(t, "a b\n\n1. c d\n\n       x   y\n\n   e f\n2. g\n",
		wrapPage("a\nb\n\n1. c\n   d\n\n       x   y\n\n   e\n   f\n2. g\n"))
}
