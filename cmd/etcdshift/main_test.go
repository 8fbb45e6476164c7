package main

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestStart: no collection of memory runs before main.
func TestStart(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	c := exec.Command(self, "-test.run=^$")
	c.Env = append(os.Environ(), "GOGC=", "GODEBUG=inittrace=1,gctrace=1")
	trace, err := c.CombinedOutput()
	require.NoError(t, err, "%s", trace)
	require.Contains(t, string(trace), "init k8s.io/")
	require.NotContains(t, string(trace), "gc 1 @")
}
