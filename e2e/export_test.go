package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// exported runs "etcdshift export" into a file. The exit status must be 0 or "refused".
func exported(t testing.TB, snapshot string, flags ...string) (path string) {
	t.Helper()
	cmd := exec.Command(etcdshift(t), append([]string{"export", snapshot, "--show-secrets"}, flags...)...)
	out, err := cmd.Output()
	require.NoError(t, err)
	path = filepath.Join(t.TempDir(), "export.yaml")
	require.NoError(t, os.WriteFile(path, out, 0o600))
	return path
}

// TestExport checks that an empty API server accepts an exported namespace in one run, and a second
// run changes nothing.
func TestExport(t *testing.T) {
	t.Parallel()
	live, _ := everyKind(t)
	text, ok := live.kubectl(t).run(t, "create", "serviceaccount", "default", "-n", "a") // no controller runs
	require.True(t, ok, text)
	live.store.waitQuiet(t)
	snapshot := live.store.save(t)
	live.stop()
	k := startCluster(t, filepath.Join(t.TempDir(), "empty")).kubectl(t)
	apply := func(path string) (lines []string) {
		text, ok := k.run(t, "apply", "-f", path)
		require.True(t, ok, text)
		return strings.Split(strings.TrimSpace(text), "\n")
	}
	crds := exported(t, snapshot, "-n", "a", "--crds")
	require.Len(t, apply(crds), 1)
	eventually(t, time.Minute, "discovery", func() error {
		_, err := exec.Command(k.program, append(k.flags, "wait", "--for=condition=Established", "--timeout=1s", "-f",
			crds)...).Output()
		return err
	})
	all := exported(t, snapshot, "-n", "a", "--needed")
	require.Greater(t, len(apply(all)), 40)
	versions := func() string {
		text, ok := k.run(t, "get", "-f", all, "-o",
			`jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.resourceVersion}{"\n"}{end}`)
		require.True(t, ok, text)
		return text
	}
	before := versions()
	for _, line := range apply(all) {
		// kubectl always replaces the selectors of budgets
		if !strings.HasPrefix(line, "Warning:") && !strings.HasPrefix(line, "poddisruptionbudget.policy/") {
			require.Regexp(t, ` unchanged$`, line)
		}
	}
	require.Equal(t, before, versions())
}
