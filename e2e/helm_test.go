package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// chart returns a folder with a chart of one ConfigMap.
func chart(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "templates"), 0o700))
	for name, text := range map[string]string{
		"Chart.yaml":  "apiVersion: v2\nname: shop\nversion: 0.1.0\nappVersion: \"7\"\n",
		"values.yaml": "color: red\n",
		"templates/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\ndata:\n  " +
			"color: {{ .Values.color }}\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

// TestHelm checks that helm prints the same for the releases in a snapshot and in the saved
// cluster. "make k9s" builds helm, and sets E2E_K9S.
func TestHelm(t *testing.T) {
	if os.Getenv("E2E_K9S") == "" {
		t.Skip("make k9s runs it")
	}
	live := startCluster(t, restoreAsIs(t, snapshotOf(t, "before"), "--skip-hash-check"))
	in := kubectl{tool(t, "helm"), []string{
		"--kube-apiserver=" + live.config.Host, "--kube-token=" + live.config.BearerToken,
		"--kube-ca-file=" + live.config.CAFile,
	}, t.TempDir()}
	shop := chart(t)
	for _, line := range []string{"install web -n team-a", "upgrade web -n team-a --set color=blue",
		"install queue -n team-b --create-namespace"} {
		text, ok := in.run(t, append(strings.Fields(line), shop)...)
		require.True(t, ok, text)
	}
	live.store.waitQuiet(t)
	path := live.store.save(t)
	shown, redacted := serve(t, path, "--show-secrets"), serve(t, path)
	shown.program, redacted.program = in.program, in.program

	for line, says := range map[string]string{
		"list -A":                            "shop-0.1.0",
		"list -n team-a -o json":             `"revision":"2"`,
		"status web -n team-a":               "STATUS: deployed",
		"history web -n team-a":              "superseded",
		"get all web -n team-a":              "color: blue",
		"get values queue -n team-b -a":      "color: red",
		"get manifest web -n team-a":         "kind: ConfigMap",
		"get metadata web -n team-a":         "APP_VERSION: 7",
		"status none -n team-a":              "release: not found",
		"get all web -n team-a --revision 1": "color: red",
	} {
		want, wantOK := in.run(t, strings.Fields(line)...)
		got, gotOK := shown.run(t, strings.Fields(line)...)
		require.Contains(t, want, says, line)
		require.Equal(t, want, got, line)
		require.Equal(t, wantOK, gotOK, line)
	}
	for line, says := range map[string]string{
		"rollback web 1 -n team-a": "served read-only: nothing can be changed",
		"uninstall web -n team-a":  "failed to delete release: web", // helm omits the reason
	} {
		text, ok := shown.run(t, strings.Fields(line)...)
		require.False(t, ok, line)
		require.Contains(t, text, says, line)
	}
	text, _ := redacted.run(t, "list", "-A")
	require.NotContains(t, text, "shop")
}
