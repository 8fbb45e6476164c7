package cli

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v2"
)

// A new command has more places than its code: lines in other tests and rows in pages. The tests
// here, and the callers of lacking, name each missing place.

const updating = "run go test ./internal/cli -run 'TestSchemas|TestCodesPage|TestStable' -update"

// generated checks the text of a generated file. -update writes the file.
func generated(t *testing.T, path, text string) {
	t.Helper()
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	stored, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if string(stored) != text {
		t.Errorf("%s differs from the code, or its lines have another order; %s%s%s", path, updating,
			someLines("- ", lostLines(string(stored), text)), someLines("+ ", lostLines(text, string(stored))))
	}
}

// someLines returns the first lines, shortened, each after a mark.
func someLines(mark string, lines []string) (text string) {
	const most, width = 8, 200
	for _, line := range lines[:min(most, len(lines))] {
		text += "\n" + mark + line[:min(width, len(line))]
	}
	if len(lines) > most {
		text += "\n" + mark + "..."
	}
	return text
}

// plainLines returns command lines of the commands with the given usage of arguments that have no
// line: the name, then each form. A form with -o is for the commands with that format.
func plainLines(usage string, lines []string, forms ...string) (plain []string) {
	eachCommand(Commands(), nil, func(path []string, c *cli.Command) {
		name := strings.Join(path, " ")
		if c.ArgsUsage != usage || hasLine(lines, name) {
			return
		}
		for _, form := range forms {
			if _, format, given := strings.Cut(form, " -o "); !given || offers(c, format) {
				plain = append(plain, name+" "+form)
			}
		}
	})
	return plain
}

// hasLine reports whether one of the lines runs a command.
func hasLine(lines []string, name string) bool {
	return slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line+" ", name+" ") })
}

// offers reports whether -o of a command takes a format.
func offers(c *cli.Command, format string) bool {
	output, is := flagOf(c, "output").(*choiceFlag)
	return is && slices.Contains(output.words, format)
}

// opensSnapshot reports whether a command reads the file of an argument.
func opensSnapshot(c *cli.Command) bool {
	return flagOf(c, "max-expand") != nil || strings.Contains(c.ArgsUsage, "SNAPSHOT") ||
		slices.Contains(strings.Fields(c.ArgsUsage), "IN")
}

// lacking fails the test for each visible command without a line that needs one and is no
// exception. Exceptions have a reason each. want is the message, with %s for the command.
func lacking(
	t *testing.T, want string, lines []string, exceptions map[string]string, needs func(*cli.Command) bool,
) {
	t.Helper()
	unknown := maps.Clone(exceptions)
	eachCommand(Commands(), nil, func(path []string, c *cli.Command) {
		name := strings.Join(path, " ")
		_, excepted := exceptions[name]
		switch has := hasLine(lines, name); {
		case has && excepted:
			t.Errorf("%s has a line: remove the exception", name)
		case !has && !excepted && !c.Hidden && needs(c):
			t.Errorf(want, strings.TrimSpace(name+" "+c.ArgsUsage))
		}
		delete(unknown, name)
	})
	require.Empty(t, unknown, "exceptions without a command")
}

func anyCommand(*cli.Command) bool { return true }

// TestScripts: a script runs each command.
func TestScripts(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("testdata", "script", "*.txtar"))
	require.NoError(t, err)
	var lines []string
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			if _, line, runs := strings.Cut(strings.TrimSpace(line), "etcdshift "); runs {
				lines = append(lines, line)
			}
		}
	}
	lacking(t, "testdata/script: add a script that runs %s", lines,
		map[string]string{"serve": "runs until it is interrupted: serve_test.go"}, anyCommand)
}

// TestJobs: each command has a row in a table of the README's jobs, and its help names the page of
// a row.
func TestJobs(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	require.NoError(t, err)
	pages := map[string][]string{} // by command line
	for row := range strings.Lines(sectionOf(t, string(readme), "Jobs")) {
		cells := strings.Split(row, " | ")
		if len(cells) != 3 {
			continue
		}
		group := "" // "kcp" in: `kcp extract`, `import`
		for _, line := range regexp.MustCompile("`([^`]*)`").FindAllStringSubmatch(cells[1], -1) {
			words := strings.Fields(line[1])
			if c := named(Commands(), []string{group, words[0]}); group != "" && c != nil && c.Name != group {
				words = append([]string{group}, words...)
			}
			if c := named(Commands(), words[:1]); c != nil && len(c.Subcommands) > 0 {
				group = words[0]
			}
			name := strings.Join(words, " ")
			pages[name] = append(pages[name], regexp.MustCompile(`[a-z0-9-]+\.md`).FindAllString(cells[2], 1)...)
		}
	}
	lines := slices.Collect(maps.Keys(pages))
	lacking(t, "README.md: add a row for %s to a table of Jobs", lines, map[string]string{
		"completion": "about the program", "version": "about the program",
	}, anyCommand)
	eachCommand(Commands(), nil, func(path []string, _ *cli.Command) {
		name := strings.Join(path, " ")
		var of []string
		for _, line := range lines {
			if hasLine([]string{line}, name) {
				of = append(of, pages[line]...)
			}
		}
		if len(of) > 0 && !slices.Contains(of, runbooks()[name]) {
			t.Errorf("help_pages.go: add %q: %q to runbooks, the page of its row in README.md", name, of[0])
		}
	})
}
