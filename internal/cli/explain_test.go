package cli

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v2"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/transform/migrations"
)

// TestCodesPage: docs/reference/codes.md has the texts of all codes. -update writes the page.
func TestCodesPage(t *testing.T) {
	page := filepath.Join("..", "..", "docs", "reference", "codes.md")
	generated(t, page, codesPage(explanations(migrations.All())))
}

const codesHead = `# Codes of findings

Generated. "etcdshift explain CODE" also prints the meaning of a code, the cases in which an error is only a warning, and the full effect of
"--allow". Codes and levels are stable; texts may change.

- An **error** in a report refuses the run: exit status 3, and OUT is not written. If the row has an effect of "--allow", "--allow CODE"
  (repeatable) continues the run: exit status 4, or 0 after "went on (allowed)". "decision" in the report is the outcome for each record.
  A skipped v1 record of Calico keeps the whole v1 group in the output, locked, as "--keep-v1" does.
- An **error** of "doctor" certainly breaks the restored cluster; a **warning** may, depending on facts outside the file; an **info** is
  for your attention. "--fail-on LEVEL" sets the exit status, "--ignore CODE" hides a code. At most 1000 findings of a code are listed;
  "counts" of "-o json" has the full numbers.

Codes of several commands come first.
`

// codesPage returns docs/reference/codes.md.
func codesPage(all []explanation) string {
	page := strings.ReplaceAll(codesHead, `"`, "`")
	heading := func(e explanation) string { return "`" + strings.Join(e.Commands, "`, `") + "`" }
	all = slices.SortedStableFunc(slices.Values(all), func(a, b explanation) int {
		return cmp.Or(len(b.Commands)-len(a.Commands), strings.Compare(heading(b), heading(a)))
	})
	cell := strings.NewReplacer("|", `\|`).Replace
	for section := range grouped(all, heading) {
		page += "\n## " + heading(section[0]) + "\n\n|code|finding|remedy\n|---|---|---\n"
		for _, e := range section {
			found, do := string(e.Level)+": "+e.Title, e.Remedy
			if effect, _, _ := strings.Cut(e.Allow, ". "); effect != "" {
				do += " `--allow`" + map[bool]string{true: " (exit status 0)"}[e.Allowed == finding.WentOn] + ": " +
					strings.TrimSuffix(effect, ".") + "."
			}
			page += "|`" + e.Code.Name + "`|" + cell(found) + "|" + cell(do) + "\n"
		}
	}
	return page
}

// TestCodes: each page of a code belongs to a code reported by a command. The page has all its
// texts, and a text on --allow exactly if --allow accepts the code.
func TestCodes(t *testing.T) {
	files, err := filepath.Glob("../../finding/codes/*.md")
	require.NoError(t, err)
	pages := stream.Mapped(files, func(path string) string { return strings.TrimSuffix(filepath.Base(path), ".md") })
	levels := []finding.Level{finding.Error, finding.Warning, finding.Info}
	for _, e := range explanations(migrations.All()) {
		if !slices.Contains(pages, e.Code.Name) {
			t.Errorf("finding/codes/%s.md: write the page of the code, which %q reports", e.Code.Name, e.Commands[0])
			continue
		}
		pages = slices.DeleteFunc(pages, func(name string) bool { return name == e.Code.Name })
		for wants, has := range map[string]bool{
			"a head, # LEVEL: TITLE":                slices.Contains(levels, e.Level) && e.Title != "",
			"a meaning, which ends with a dot":      strings.HasSuffix(e.Meaning, "."),
			"Remedy: a text that ends with a dot":   strings.HasSuffix(e.Remedy, "."),
			"no Allow or A warning without # error": e.Level == finding.Error || e.Allowed == "" && e.Warns == "",
		} {
			if !has {
				t.Errorf("finding/codes/%s.md: the page needs %s", e.Code.Name, wants)
			}
		}
		require.Equal(t, e.Allowed != "", e.Allow != "", e.Code.Name)
	}
	for _, name := range pages {
		t.Errorf("finding/codes/%s.md: no command reports the code; add it to checks of internal/doctor/doctor.go, "+
			"or to the Codes of a Spec", name)
	}
}

// TestExplain: explain knows every code accepted by a flag, and completion offers it.
func TestExplain(t *testing.T) {
	status, all, _ := runWords(completeWord, "explain", "")
	require.Equal(t, exitDone, status)
	known := strings.Fields(all)
	require.True(t, slices.IsSorted(known))
	flags := 0
	eachCommand(Commands(), nil, func(path []string, c *cli.Command) {
		for _, f := range c.Flags {
			if codes, ok := f.(*codesFlag); ok {
				flags++
				require.Subset(t, known, codes.words, "%s", path)
				_, offered, _ := runWords(slices.Concat([]string{completeWord}, path,
					[]string{"--" + codes.Name, ""})...)
				require.Equal(t, codes.words, strings.Fields(offered), "%s", path)
			}
		}
	})
	require.Greater(t, flags, 5)
	for _, code := range []string{known[0], "encrypted", known[len(known)-1]} {
		_, text, _ := runWords("explain", code)
		require.Contains(t, text, " "+code+": ")
		_, text, _ = runWords("explain", code, "-o", "json")
		var list struct{ Codes []struct{ Code string } }
		require.NoError(t, json.Unmarshal([]byte(text), &list))
		require.Equal(t, code, list.Codes[0].Code)
	}
	status, out, stderr := runWords("explain", "bumprevision")
	require.Equal(t, exitUsage, status)
	require.Empty(t, out)
	require.Equal(t, "etcdshift: explain: there is no code \"bumprevision\"\nhint: did you mean \"bump-revision\"? "+
		"\"etcdshift explain\" lists all codes\n", stderr)
}
