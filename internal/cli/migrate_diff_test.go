package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMigrateDiff: --diff prints the same changes as "diff --all" of input and output, even in a
// dry run.
func TestMigrateDiff(t *testing.T) {
	fixtureFiles(t, "calico/before", "storage/flipped", "kcp/root-before", "kcp/shard1-before")
	status, _, stderr := runWords("kcp", "extract", "2y3qvnqz5ga11oc4", "root-before.db", "one.archive")
	require.Equal(t, exitDone, status, stderr)
	for i, line := range []string{
		"migrate calico-v3 before.db",
		"migrate storage-versions flipped.db --allow pruned-field",
		"migrate storage-versions before.db",
		"kcp import one.archive shard1-before.db",
		"kcp purge 2y3qvnqz5ga11oc4 root-before.db --allow owner-points-here --to-shard shard-1 --scrub",
	} {
		words, out := strings.Fields(line), string(rune('a'+i))+".db"
		at := 0
		for at = range words {
			if strings.HasSuffix(words[at], ".db") {
				break
			}
		}
		run := append(append(append([]string{}, words[:at+1]...), out, "--diff", "--quiet"), words[at+1:]...)
		dry, planned, stderr := runWords(append(run, "--dry-run")...)
		require.Contains(t, []int{exitDone, exitAllowed}, dry, "%s: %s", line, stderr)
		status, printed, stderr := runWords(run...)
		require.Equal(t, dry, status, "%s: %s", line, stderr)
		_, want, _ := runWords("diff", "--all", words[at], out)
		head := words[0] + " " + words[1] + ": "
		got, _, _ := strings.Cut(printed, "\n"+head)
		require.Equal(t, want, got, line)
		got, _, _ = strings.Cut(planned, "\n"+head)
		require.Equal(t, want, got, "%s --dry-run", line)
		require.Greater(t, strings.Count(want, "\n"), 3, line)
	}
}

// TestMigrateDiffUsage: --diff is text, and --show-secrets needs --diff.
func TestMigrateDiffUsage(t *testing.T) {
	for flags, want := range map[string]string{
		"--diff -o json":           `--diff prints text, and -o json the report alone`,
		"--show-secrets":           `--show-secrets is for --diff`,
		"--show-secrets --dry-run": `--show-secrets is for --diff`,
	} {
		status, _, stderr := runWords(append(strings.Fields("migrate calico-v3 in.db out.db"),
			strings.Fields(flags)...)...)
		require.Equal(t, exitUsage, status, flags)
		require.Contains(t, stderr, want, flags)
	}
}
