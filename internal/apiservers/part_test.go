package apiservers

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/sandbox"
)

func TestMain(m *testing.M) {
	if code, isPart := sandbox.Main(map[string]sandbox.Part{PartName: Part}, os.Args, os.Stdin, os.Stderr); isPart {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

func newBox(t testing.TB) *sandbox.Sandbox {
	t.Helper()
	box, err := sandbox.New("", 0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, box.Close()) })
	return box
}

// A server in a sandbox gets ready, and a wait for it ends when it dies.
func TestPart(t *testing.T) {
	etcd := restored(t, "storage/flipped.db.gz")
	s, err := Store{Etcd: unixOf(t, etcd), Prefix: "/registry"}.Start(t.Context(), newBox(t))
	require.NoError(t, err)
	serving, err := s.Ready(t.Context())
	require.NoError(t, err)
	require.Len(t, serving.Versions, 2)
	s.Stop(t.Context())
	require.NoError(t, s.Err())
	_, err = s.Ready(t.Context())
	require.Error(t, err)

	bad := filepath.Join(t.TempDir(), "no-such-file")
	s, err = Store{Etcd: unixOf(t, etcd), Prefix: "/registry", Encryption: bad}.Start(t.Context(), newBox(t))
	require.NoError(t, err)
	_, err = s.Ready(t.Context())
	require.ErrorContains(t, err, "apiextensions-apiserver ended: exit status 1: ")
	require.ErrorContains(t, err, bad+": no such file or directory")
}
