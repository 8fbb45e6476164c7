package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestKubectlInterrupted: an interrupt ends kubectl with its own status, whatever kubectl says.
func TestKubectlInterrupted(t *testing.T) {
	all := recordedFile(t, t.TempDir(), "kubectl/all.db", "all.db")
	for _, line := range []string{"get pods -A", "describe pods -A", "events -A", "api-resources"} {
		ctx, cancel := context.WithCancel(t.Context())
		stdout, stderr := &cancelling{cancel: cancel}, &bytes.Buffer{}
		if line != "get pods -A" { // which is interrupted as it prints
			cancel()
		}
		status := run(ctx, append([]string{"etcdshift", "kubectl", "-q", all}, strings.Fields(line)...), nil, stdout, stderr)
		require.Equal(t, exitInterrupted, status, "%s: %s", line, stderr)
		require.Equal(t, "etcdshift: interrupted; nothing was written\n", stderr.String(), line)
		cancel()
	}
}

// cancelling is an output that interrupts as something is written.
type cancelling struct{ cancel context.CancelFunc }

func (c *cancelling) Write(p []byte) (int, error) {
	c.cancel()
	return len(p), nil
}
