package e2e

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	startTimeout = 2 * time.Minute // for one program on a busy machine
	stopTimeout  = 20 * time.Second
	pollInterval = 200 * time.Millisecond
	startTries   = 3  // with new ports if a port is taken
	logLines     = 40 // printed per program when a test fails
)

// tool returns the path of a program built for these tests.
func tool(t testing.TB, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("bin", name))
	require.NoError(t, err)
	require.FileExists(t, path, "run make e2e in the folder above: it builds what the tests need")
	return path
}

// process is a running program with a log file.
type process struct {
	name, log string
	cmd       *exec.Cmd
	done      chan struct{} // closed when the program has ended
}

// start runs a program of bin/ until the test ends or stop is called.
func start(t testing.TB, name string, args ...string) *process {
	t.Helper()
	p := &process{name: name, log: filepath.Join(t.TempDir(), name+".log"), done: make(chan struct{})}
	out, err := os.Create(p.log)
	require.NoError(t, err)
	defer out.Close() // the program has its own handle
	p.cmd = exec.Command(tool(t, name), args...)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	require.NoError(t, p.cmd.Start())
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			t.Logf("the last lines of %s:\n%s", name, p.tail(t))
		}
	})
	return p
}

// stop asks the program to end, and kills it after a timeout. It may be called more than once.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(stopTimeout):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *process) output(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile(p.log)
	require.NoError(t, err)
	return text
}

func (p *process) tail(t testing.TB) string {
	t.Helper()
	lines := strings.Split(string(p.output(t)), "\n")
	return strings.Join(lines[max(0, len(lines)-logLines):], "\n")
}

// startReady starts a program on a free port and waits until it is ready. If another process takes
// the port, it retries with another port.
func startReady(
	t testing.TB, name string, ready func(port string) bool, args func(port string) []string,
) (p *process, port string) {
	t.Helper()
	for range startTries {
		port = freePort(t)
		p = start(t, name, args(port)...)
		for deadline := time.Now().Add(startTimeout); !p.ended(); time.Sleep(pollInterval) {
			if ready(port) {
				return p, port
			}
			require.True(t, time.Now().Before(deadline), "%s is not ready after %s", name, startTimeout)
		}
		require.True(t, bytes.Contains(p.output(t), []byte("address already in use")), "%s ended:\n%s", name, p.tail(t))
	}
	require.Fail(t, "no port for "+name)
	return nil, ""
}

func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return port
}

// eventually polls holds until it returns no error, or fails the test with the last error.
func eventually(t testing.TB, within time.Duration, what string, holds func() error) {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		err := holds()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			require.NoError(t, err, "%s: not after %s", what, within)
		}
		time.Sleep(pollInterval)
	}
}
