package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestKubectlInterrupted: an interrupt ends kubectl with the interrupt's status, regardless of
// kubectl's error.
func TestKubectlInterrupted(t *testing.T) {
	all := recordedFile(t, t.TempDir(), "kubectl/all.db", "all.db")
	for _, line := range []string{"get pods -A", "describe pods -A", "events -A", "api-resources"} {
		ctx, cancel := context.WithCancel(t.Context())
		stdout, stderr := &cancelling{cancel: cancel}, &bytes.Buffer{}
		if line != "get pods -A" { // interrupted while printing
			cancel()
		}
		status := Run(ctx, append([]string{"etcdshift", "kubectl", "-q", all}, strings.Fields(line)...),
			nil, stdout, stderr)
		require.Equal(t, exitInterrupted, status, "%s: %s", line, stderr)
		require.Equal(t, "etcdshift: interrupted; nothing was written\n", stderr.String(), line)
		cancel()
	}
}

// TestKubectlInterruptedAtInput: an interrupt ends a command that waits for input.
func TestKubectlInterruptedAtInput(t *testing.T) {
	dir := t.TempDir()
	all, fifo := recordedFile(t, dir, "kubectl/all.db", "all.db"), filepath.Join(dir, "fifo")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		held, err := os.OpenFile(fifo, os.O_WRONLY, 0) // waits until kubectl reads
		cancel()
		if err == nil {
			<-t.Context().Done()
			_ = held.Close()
		}
	}()
	var stderr bytes.Buffer
	status := Run(ctx, []string{"etcdshift", "kubectl", "-q", all, "get", "pods", "-o", "go-template-file=" + fifo},
		nil, io.Discard, &stderr)
	require.Equal(t, exitInterrupted, status, "%s", &stderr)
}

// cancelling is an output that interrupts at the first write.
type cancelling struct{ cancel context.CancelFunc }

func (c *cancelling) Write(p []byte) (int, error) {
	c.cancel()
	return len(p), nil
}
