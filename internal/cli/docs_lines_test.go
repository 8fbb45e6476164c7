package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDocumentedLines finds rendering faults and accidental line breaks: rows with a different
// number of cells than their table, unclosed inline code, and short lines within a paragraph.
func TestDocumentedLines(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*/*.md")
	require.NoError(t, err)
	require.Greater(t, len(pages), 5)
	pages = append(pages, "../../README.md", "../../testdata/README.md")
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		var lines []string
		fenced := false
		if outside := regexp.MustCompile(`(?m)^(etcd|kube)[a-z]+ .*\n    \S`).FindString(string(text)); outside != "" {
			t.Errorf("%s: a command stands outside of its block: %s", page, outside)
		}
		for line := range strings.Lines(string(text)) {
			line = strings.TrimRight(line, "\n")
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				fenced, line = !fenced, ""
			}
			if fenced || strings.HasPrefix(line, "    ") {
				line = ""
			}
			lines = append(lines, line)
		}
		require.False(t, fenced, "%s: a code block does not end", page)
		for _, wrong := range wrongLines(append(lines, "")) {
			t.Errorf("%s: %s", page, wrong)
		}
	}
	require.NotEmpty(t, wrongLines([]string{"a long line of a paragraph, which is as wide as any of the others, " +
		"depending on", "what", "the file shows", ""}))
	require.NotEmpty(t, wrongLines([]string{"| a | b |", "|---|---|", "| `x|y` | z |", ""}))
	require.NotEmpty(t, wrongLines([]string{"see `code", "", "end`", ""}))
}

// wrongLines returns the lines found by TestDocumentedLines; the last line is empty.
func wrongLines(lines []string) (wrong []string) {
	begins := regexp.MustCompile(`^ *([-*] |\d+\. |#|>|\||<)`)
	cells := func(row string) int { return strings.Count(strings.ReplaceAll(row, `\|`, ""), "|") }
	ticks, table := 0, 0
	for i, line := range lines[:len(lines)-1] {
		if line == "" {
			continue
		}
		next := lines[i+1]
		isRow := strings.HasPrefix(line, "|")
		switch {
		case !isRow, i > 0 && lines[i-1] == "":
			table = 0
		}
		switch {
		case !isRow:
		case table == 0:
			table = cells(line)
		case cells(line) != table:
			wrong = append(wrong, "another number of cells than the table: "+line)
		}
		ticks += strings.Count(line, "`")
		last := next == "" || begins.MatchString(next) || isRow
		if last && ticks%2 != 0 {
			wrong = append(wrong, "code that does not end: "+line)
		}
		if last {
			ticks = 0
			continue
		}
		word, _, _ := strings.Cut(strings.TrimSpace(next), " ")
		if !strings.HasPrefix(line, "#") && len(line)+1+len(word) < 60 {
			wrong = append(wrong, "broken early: "+line)
		}
	}
	return wrong
}
