package rooms

import (
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// oldWords matches words of the third column of docs/reference/glossary.md, grouped by their
// replacement. Text and identifiers are compared in lower case: "sealedValue" contains "sealed".
var oldWords = regexp.MustCompile(`\b(?:` + strings.Join([]string{
	`(?P<encrypt>(?:un)?seal(?:s|ed|er|ers|ing)?|closed values?|values? (?:is|are|stays?) (?:closed|shut))`,
	`(?P<undecryptable>unopened|stays? closed)`,
	`(?P<decrypter>openers?)`,
	`(?P<finding>misfits?|troubles?|unjudged)`,
	`(?P<check>judge[sd]?|judging|judge?ments?)`,
	`(?P<staged>fed|put down)`,
	`(?P<skipped>left alone|leaves? \w+ alone|passed over)`,
}, "|") + `)\b`)

// stable matches permitted spellings with an old word, from other projects.
var stable = regexp.MustCompile(`(?i:sealed-?secrets?|unseal[ _-]?keys?|operator(\\s\+| )unseal(\|unseal)?)`)

// checkWords returns the lines of a text with an old word.
func checkWords(name, text string) (broken []string) {
	text = stable.ReplaceAllString(text, "")
	text = strings.ToLower(camel.ReplaceAllString(strings.ReplaceAll(text, "_", " "), "$1 $2"))
	for _, at := range oldWords.FindAllStringSubmatchIndex(text, -1) {
		for i, use := range oldWords.SubexpNames() {
			if i > 0 && at[2*i] >= 0 {
				line := 1 + strings.Count(text[:at[0]], "\n")
				broken = append(broken, fmt.Sprintf("%s:%d: %q: the word is %s", name, line, text[at[0]:at[1]], use))
			}
		}
	}
	return broken
}

var camel = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// checkWidth returns the Go lines that are too wide: comments have 100 columns, code 120. A tab
// counts as four. Lines with a raw string or the output of an Example have no limit.
func checkWidth(name, text string) (broken []string) {
	raw := rawLines(text)
	for i, line := range strings.Split(text, "\n") {
		width := len([]rune(strings.ReplaceAll(line, "\t", "    ")))
		free := raw[i+1] || strings.Contains(line, "// Output: ")
		comment := strings.HasPrefix(strings.TrimSpace(line), "//")
		if !free && (width > 120 || comment && width > 100) {
			broken = append(broken, fmt.Sprintf("%s:%d: %d columns", name, i+1, width))
		}
	}
	return broken
}

// rawLines returns the numbers of the lines with a part of a raw string. A quoted backtick, as in
// the usage of a flag, begins none.
func rawLines(text string) map[int]bool {
	file := token.NewFileSet().AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, []byte(text), nil, 0)
	lines := map[int]bool{}
	for pos, kind, literal := s.Scan(); kind != token.EOF; pos, kind, literal = s.Scan() {
		if kind == token.STRING && literal[0] == '`' {
			for n := range strings.Count(literal, "\n") + 1 {
				lines[file.Line(pos)+n] = true
			}
		}
	}
	return lines
}

// Code, comments, tests, scripts and documents follow the glossary and the line width.
func TestWords(t *testing.T) {
	tree, seen := os.DirFS("../.."), map[string]int{}
	var broken []string
	require.NoError(t, fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		ext := path.Ext(name)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (path.Base(name) == ".git" || path.Base(name) == "bin" || name == "demo"):
			return fs.SkipDir
		case entry.IsDir(), ext != ".go" && ext != ".md" && ext != ".txtar":
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		seen[ext]++
		if name != "docs/reference/glossary.md" && name != "internal/rooms/words_test.go" { // they list the old words
			broken = append(broken, checkWords(name, string(text))...)
		}
		if ext == ".go" {
			broken = append(broken, checkWidth(name, string(text))...)
		}
		return err
	}))
	require.Greater(t, min(seen[".go"], seen[".md"], seen[".txtar"]), 10)
	for _, line := range broken {
		t.Error(line)
	}
}

func TestCheckWords(t *testing.T) {
	for text, want := range map[string]string{
		"the value is encrypted":          "",
		"// a sealed value":               `a.go:1: "sealed": the word is encrypt`,
		"\n\tif x.noteSealed {":           `a.go:2: "sealed": the word is encrypt`,
		`"decision": "skipped (allowed)"`: "",
		"it is left alone":                `a.go:1: "left alone": the word is skipped`,
		"func judgeOwner() {":             `a.go:1: "judge": the word is check`,
		"codeOwner // owner-unchecked":    "",
		"func unsealed_value() {":         `a.go:1: "unsealed": the word is encrypt`,
	} {
		require.Equal(t, want, strings.Join(checkWords("a.go", text), "\n"), text)
	}
}

func TestCheckWidth(t *testing.T) {
	wide := strings.Repeat("é", 98)
	require.Empty(t, checkWidth("a.go", "// "+wide[2:]+"\nx := "+wide+" // x"))
	require.Equal(t, []string{"a.go:2: 101 columns"}, checkWidth("a.go", "\n// "+wide))
	require.Equal(t, []string{"a.go:1: 196 columns"}, checkWidth("a.go", wide+wide))
	require.Empty(t, checkWidth("a.go", "x := `\n"+wide+wide+"`\n// x"))
	require.Equal(t, []string{"a.go:3: 121 columns"}, checkWidth("a.go", "x := `\n`\n"+strings.Repeat("x", 121)))
	require.Equal(t, []string{"a.go:1: 121 columns"}, checkWidth("a.go", `x := "`+"`"+strings.Repeat("x", 112)+"`"+`"`))
}
