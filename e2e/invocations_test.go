package e2e

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// klogLine matches a line of kubectl's log, for example about a slow connection.
var klogLine = regexp.MustCompile(`(?m)^[EFIW]\d{4} .*\n`)

var update = flag.Bool("update", false, "record again what kubectl prints")

// TestInvocations compares kubectl's output for testdata/kubectl/all.db in a kube-apiserver with
// the recording in testdata/kubectl/invocations.txt. -update records again. To add a command, add a
// line "== COMMAND" to the file.
func TestInvocations(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "testdata", "kubectl", "invocations.txt")
	recorded, err := os.ReadFile(path)
	require.NoError(t, err)
	all := filepath.Join(t.TempDir(), "all.db")
	unzip(t, filepath.Join("..", "testdata", "kubectl", "all.db.gz"), all)
	live := startCluster(t, restoreAsIs(t, all, "--skip-hash-check"))
	live.store.waitQuiet(t)
	var now strings.Builder
	sections := strings.TrimPrefix("\n"+strings.TrimSuffix(string(recorded), "\n"), "\n== ")
	for section := range strings.SplitSeq(sections, "\n== ") {
		command, was, _ := strings.Cut(section, "\n")
		is := live.kubectl(t).record(t, command)
		if !*update {
			require.Equal(t, was, strings.TrimSuffix(is, "\n"), command)
		}
		fmt.Fprintf(&now, "== %s\n%s", command, is)
	}
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(now.String()), 0o644))
	}
}

// record runs a command and returns its section of the recording: its output, without ages in
// tables, then its error lines after "2> ", then an exit status other than 0.
func (k kubectl) record(t testing.TB, command string) string {
	t.Helper()
	cmd := exec.Command(k.program, slices.Concat(k.flags, strings.Fields(command))...)
	var stdout, stderr bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = []string{"HOME=" + k.home, "TZ=UTC"}, &stdout, &stderr
	err := cmd.Run()
	text := stdout.String()
	if durations.MatchString(text) && !strings.Contains(command, "json") && !strings.Contains(command, "yaml") {
		text = blanks.ReplaceAllString(durations.ReplaceAllString(text, "AGE"), " ")
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\\\n" // a line without line ending
	}
	for line := range strings.Lines(klogLine.ReplaceAllString(stderr.String(), "")) {
		text += strings.TrimSuffix("2> "+line, "\n") + "\n"
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return text + fmt.Sprintf("exit %d\n", exit.ExitCode())
	}
	require.NoError(t, err)
	return text
}
