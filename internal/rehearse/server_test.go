package rehearse

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/apiservers"
	"github.com/etcdshift/etcdshift/internal/sandbox"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

func TestMain(m *testing.M) {
	if code, isPart := sandbox.Main(nil, os.Args, os.Stdin, os.Stderr); isPart {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// tool is a program that "make e2e" builds. Without it the test is skipped.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", "e2e", "bin", name))
	require.NoError(t, err)
	if _, err := os.Stat(path); err != nil {
		t.Skip("make e2e builds " + path)
	}
	return path
}

// startServer runs a kube-apiserver on records below /registry. The options lack nothing but what a
// test changes.
func startServer(t *testing.T, records map[string]string) collectOptions {
	t.Helper()
	binary := tool(t, "kube-apiserver")
	etcd := etcdtest.Start(t, filepath.Join(t.TempDir(), "e"))
	for key, value := range records {
		_, err := etcd.Client.Put(t.Context(), "/registry/"+key, value)
		require.NoError(t, err)
	}
	box, err := sandbox.New("", 0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, box.Close()) })
	server, err := apiservers.Kube{Store: apiservers.Store{Etcd: etcd.URL, Prefix: "/registry"}, Binary: binary}.Start(t.Context(), box)
	require.NoError(t, err)
	_, err = server.Ready(t.Context())
	require.NoError(t, err)
	return collectOptions{Etcd: etcd.Client, Prefix: "/registry", Config: server.Config, Start: func(ctx context.Context) (process, error) {
		return server.Collect(ctx, box, tool(t, "kube-controller-manager"))
	}}
}
