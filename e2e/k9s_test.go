package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
)

// terminal is a running k9s in a terminal.
type terminal struct {
	file *os.File
	rows uint16

	mu     sync.Mutex
	screen []byte // output since the last redraw
}

// startK9s runs k9s in a terminal until the test ends.
func startK9s(t testing.TB, kubeconfig string) *terminal {
	t.Helper()
	home := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(home, "k9s"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(home, "k9s", "config.yaml"),
		[]byte("k9s: {skipLatestRevCheck: true}\n"), 0o600))
	cmd := exec.Command(tool(t, "k9s"), "-A", "--logFile", filepath.Join(home, "k9s.log"))
	cmd.Env = []string{"HOME=" + home, "TERM=xterm-256color", "KUBECONFIG=" + kubeconfig}
	for _, dir := range []string{"CONFIG", "STATE", "DATA"} {
		cmd.Env = append(cmd.Env, "XDG_"+dir+"_HOME="+home)
	}
	file, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: 160})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait()
		require.NoError(t, file.Close())
	})
	k := &terminal{file: file, rows: 50}
	go k.read()
	return k
}

func (k *terminal) read() {
	buf := make([]byte, 1<<16)
	for {
		n, err := k.file.Read(buf)
		if err != nil {
			return // k9s has ended
		}
		k.mu.Lock()
		k.screen = append(k.screen, buf[:n]...)
		k.mu.Unlock()
	}
}

// redraw returns the whole screen; k9s redraws it when the size changes.
func (k *terminal) redraw(t testing.TB) string {
	t.Helper()
	k.mu.Lock()
	k.screen = nil
	k.mu.Unlock()
	k.rows ^= 1
	require.NoError(t, pty.Setsize(k.file, &pty.Winsize{Rows: k.rows, Cols: 160}))
	time.Sleep(pollInterval * 5)
	k.mu.Lock()
	defer k.mu.Unlock()
	return regexp.MustCompile(`\x1b(\[[0-9;?]*[a-zA-Z]|[()][A-Z0-9]|[=>])`).ReplaceAllString(string(k.screen), "")
}

// keys types keys, waits until the screen shows all texts, and returns the screen.
func (k *terminal) keys(t testing.TB, keys string, shows ...string) (screen string) {
	t.Helper()
	_, err := k.file.WriteString(keys)
	require.NoError(t, err)
	for deadline := time.Now().Add(startTimeout); ; {
		screen = k.redraw(t)
		missing := ""
		for _, text := range shows {
			if !strings.Contains(screen, text) {
				missing = text
			}
		}
		if missing == "" {
			return screen
		}
		require.True(t, time.Now().Before(deadline), "after %q the screen lacks %q:\n%s", keys, missing, screen)
	}
}

// TestK9s checks that k9s shows the resources of a snapshot: built-in and custom resources, YAML
// and descriptions. "make k9s" builds k9s, which takes minutes, and sets E2E_K9S.
func TestK9s(t *testing.T) {
	if os.Getenv("E2E_K9S") == "" {
		t.Skip("make k9s runs it")
	}
	k := startK9s(t, strings.TrimPrefix(serve(t, snapshotOf(t, "before")).flags[0], "--kubeconfig="))
	const escape = "\x1b"
	k.keys(t, "", "pods(all)[0]")
	k.keys(t, ":namespaces\r", "namespaces(all)[8]", "calico-system", "Active")
	k.keys(t, ":nodes\r", "nodes(all)[2]", "node-a", "node-b")
	k.keys(t, ":ippools.crd.projectcalico.org\r", "ippools(all)[4]", "default-ipv4-ippool")
	k.keys(t, "d", "Describe(-/default-ipv4-ippool)", "192.168.0.0/16")
	k.keys(t, escape, "ippools(all)[4]")
	k.keys(t, ":secrets\r", "secrets(all)[1]", "owned-by-ippool", "Opaque")
	k.keys(t, "y", "YAML(team-a/owned-by-ippool)", "x: PHJlZGFjdGVkIDMgYnl0ZXM+") // <redacted 3 bytes>
	k.keys(t, escape, "secrets(all)[1]")
	k.keys(t, ":configmaps\r", "configmaps(all)[6]", "extension-apiserver-authentication")
}
