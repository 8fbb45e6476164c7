package cli

import (
	"bytes"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestForgottenDash: "status < before.db" prints the missing argument.
func TestForgottenDash(t *testing.T) {
	in, err := os.Open(recordedFile(t, t.TempDir(), "kubectl/all.db", "all.db"))
	require.NoError(t, err)
	defer in.Close()
	var stderr bytes.Buffer
	require.Equal(t, exitUsage, Run(t.Context(), []string{"etcdshift", "status"}, in, io.Discard, &stderr))
	require.Contains(t, stderr.String(), "\nhint: \"-\" reads standard input: etcdshift status -\n")
}

// TestSparseInput: a sparse file is refused before it is copied.
func TestSparseInput(t *testing.T) {
	path := recordedFile(t, t.TempDir(), "kubectl/all.db", "all.db")
	require.NoError(t, os.Truncate(path, 1<<40))
	in, err := os.Open(path)
	require.NoError(t, err)
	defer in.Close()
	var stderr bytes.Buffer
	require.Equal(t, exitFailed, Run(t.Context(), []string{"etcdshift", "status", "-"}, in, io.Discard, &stderr))
	require.Contains(t, stderr.String(), "standard input: not an etcd snapshot: it has 1099511627776 bytes")
}
