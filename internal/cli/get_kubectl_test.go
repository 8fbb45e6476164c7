package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// justified are the lines of kubectl's tables, without ages, that differ from ours on purpose.
func justified() map[string]string {
	return map[string]string{
		// the server removes its lease at the end, before the copy of the file
		"kube-system apiserver-wlv32tlttr4jl3gtroqexyxapa " +
			"apiserver-wlv32tlttr4jl3gtroqexyxapa_b79b976d-fa6d-4993-897e-7e274bfc18e6 AGE": "",
		// a selector for parameters, printed by kubectl in Go syntax
		"vab2 vap &LabelSelector{MatchLabels:map[string]string{}," +
			"MatchExpressions:[]LabelSelectorRequirement{},} AGE": "vab2 vap * AGE",
	}
}

// TestTablesOfKubectl compares the recorded output of "kubectl get TYPE -A -o wide" on a cluster
// with each built-in kind in many states with the output of get on its snapshot, by column, without
// ages.
func TestTablesOfKubectl(t *testing.T) {
	db := recordedFile(t, t.TempDir(), "kubectl/all.db", "all.db")
	recorded, err := os.ReadFile("../../testdata/kubectl/tables.txt")
	require.NoError(t, err)
	age, blanks := regexp.MustCompile(`\b(?:[0-9]+[smhdy])+\b`), regexp.MustCompile(` +`)
	lines := func(text string) (out []string) {
		for line := range strings.Lines(text) {
			line = strings.TrimRight(blanks.ReplaceAllString(age.ReplaceAllString(line, "AGE"), " "), " \n")
			if instead, is := justified()[line]; is {
				line = instead
			}
			if line != "" {
				out = append(out, line)
			}
		}
		return out
	}
	sections := strings.Split(string(recorded), "== ")[1:]
	require.Len(t, sections, 54)
	for _, section := range sections {
		kind, want, _ := strings.Cut(section, "\n")
		status, stdout, stderr := runWords("get", "-q", db, kind, "-A", "-o", "wide")
		require.Zero(t, status, "%s: %s", kind, stderr)
		require.Equal(t, lines(want), lines(stdout), kind)
	}
}
