package sandbox

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// startParent runs a program with a sandbox in dir, and returns the folder once its parts run.
func startParent(t *testing.T, dir string) (cmd *exec.Cmd, folder string) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), parentEnv+"="+dir)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	folder = strings.TrimSuffix(line, "\n")
	// The parts "hang" and "run", a shell, and its two children.
	require.Eventually(t, func() bool { return len(processesIn(folder)) == 5 }, 20*time.Second, 10*time.Millisecond)
	return cmd, folder
}

// processesIn returns the processes with the folder as working directory: all processes of a
// sandbox.
func processesIn(folder string) (found []string) {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		dir, _ := os.Readlink(link)
		if strings.TrimSuffix(dir, " (deleted)") == folder {
			found = append(found, filepath.Dir(link))
		}
	}
	return found
}

func TestKilledLeavesNoProcess(t *testing.T) {
	dir := shortDir(t)
	cmd, folder := startParent(t, dir)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	require.Eventually(t, func() bool { return len(processesIn(folder)) == 0 }, 20*time.Second, time.Millisecond)

	require.DirExists(t, folder)
	var removed []string
	require.Eventually(t, func() bool { // a killed process leaves the folder before it unlocks it
		var err error
		removed, err = Clear(dir)
		return err != nil || len(removed) > 0
	}, 20*time.Second, time.Millisecond)
	require.Equal(t, []string{folder}, removed)
	require.NoDirExists(t, folder)
}

func TestInterruptLeavesNothing(t *testing.T) {
	for _, signal := range []os.Signal{syscall.SIGINT, syscall.SIGTERM} {
		dir := shortDir(t)
		cmd, folder := startParent(t, dir)
		require.NoError(t, cmd.Process.Signal(signal))
		require.NoError(t, cmd.Wait())
		require.Empty(t, processesIn(folder))
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, entries)
	}
}

// If any process of a group is killed, the others end too.
func TestKilledPartLeavesNoProcess(t *testing.T) {
	s := newSandbox(t)
	p, err := s.Command(t.Context(), "sh", "/bin/sh", "-c", "sleep 1000 & sleep 1000")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(processesIn(s.Path())) == 4 }, 20*time.Second, 10*time.Millisecond)
	require.NoError(t, p.cmd.Process.Kill())
	require.EqualError(t, p.Wait(t.Context()), "sh ended: signal: killed")
	require.Eventually(t, func() bool { return len(processesIn(s.Path())) == 0 }, 20*time.Second, time.Millisecond)
}

func TestClearKeepsWhatIsInUse(t *testing.T) {
	dir := shortDir(t)
	used, err := New(dir, 1)
	require.NoError(t, err)
	defer used.Close()
	_, folder := startParent(t, dir)
	for name, mode := range map[string]os.FileMode{"other-1": 0o700, prefix + "notes": 0o700, prefix + "1": 0o700,
		prefix + "2": 0o755} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), mode))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name, "file"), nil, 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, prefix+"3"), nil, 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, prefix+"5"), 0o700)) // possibly of a starting run
	require.NoError(t, os.Symlink(used.Path(), filepath.Join(dir, prefix+"4")))
	removed, err := Clear(dir)
	require.NoError(t, err)
	require.Equal(t, []string{filepath.Join(dir, prefix+"1")}, removed)
	require.DirExists(t, used.Path())
	require.DirExists(t, folder)
}

// A folder is in use while a process runs in it, even without the program.
func TestProcessesHoldTheLock(t *testing.T) {
	s := newSandbox(t)
	p := start1(t, s, "hang", nil)
	require.NoError(t, s.lock.Close())
	removed, err := Clear(filepath.Dir(s.Path()))
	require.NoError(t, err)
	require.Empty(t, removed)
	p.kill()
	removed, err = Clear(filepath.Dir(s.Path()))
	require.NoError(t, err)
	require.Equal(t, []string{s.Path()}, removed)
	s.lock, err = os.Open(filepath.Dir(s.Path())) // for Close
	require.NoError(t, err)
}
