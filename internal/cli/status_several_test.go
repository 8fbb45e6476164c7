package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

// TestUnusablePeer warns about a member whose log cannot complete that of another member.
func TestUnusablePeer(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, etcdtest.UnpackMember(testdata("wal", "three36.tar.zst"), dir))
	a, b, c := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "c")
	f, err := os.Open(filepath.Join(b, "member", "snap", "db"))
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
	status, _, stderr := runWords("status", a, c, b)
	require.Equal(t, 1, status)
	cause := ": the log of another member cannot be used: " + b + ": an etcd uses the data directory\n"
	for _, path := range []string{a, c} {
		require.Contains(t, stderr, "warning: "+path+cause)
	}
	require.NotContains(t, stderr, "left out") // a and c prove all entries
}
