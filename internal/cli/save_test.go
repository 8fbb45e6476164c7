package cli

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

// etcdCmd starts an etcd, runs a script file on it (see etcdtest), and sets ETCDCTL_ENDPOINTS.
func etcdCmd(t *testing.T) func(ts *testscript.TestScript, neg bool, args []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) != 1 {
			ts.Fatalf("usage: etcd SCRIPT")
		}
		server := etcdtest.Start(t, filepath.Join(t.TempDir(), "member.etcd"))
		ts.Defer(server.Stop)
		etcdtest.Run(t, server, ts.ReadFile(args[0]))
		ts.Setenv("ETCDCTL_ENDPOINTS", server.URL)
	}
}

// TestSaveInterrupted: an interrupt ends a request without an answer.
func TestSaveInterrupted(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		if in, err := l.Accept(); err == nil {
			defer in.Close()
		}
		cancel()
	}()
	var stdout, stderr strings.Builder
	out := filepath.Join(t.TempDir(), "out.db")
	args := []string{"etcdshift", "save", out, "--dial-timeout=1h", "--endpoints", l.Addr().String()}
	require.Equal(t, exitInterrupted, Run(ctx, args, strings.NewReader(""), &stdout, &stderr))
	require.Empty(t, stdout.String())
	require.Equal(t, "etcdshift: interrupted; nothing was written\n", stderr.String())
	require.NoFileExists(t, out)
}
