package snapshot

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestNeverOverwrites checks that an existing file stays unchanged, even if it is the input. If the
// folder is missing, a file or not writable, the error names the folder.
func TestNeverOverwrites(t *testing.T) {
	in := copyOf(t, fixture(t))
	s := open(t, in)
	dir, locked := t.TempDir(), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.WriteFile(at("file"), []byte("mine"), 0o600))
	require.NoError(t, os.Mkdir(at("folder"), 0o700))
	require.NoError(t, os.Symlink("nowhere", at("broken")))
	require.NoError(t, os.Symlink(in, at("link")))
	require.NoError(t, os.Link(in, at("hard")))
	require.NoError(t, os.Chmod(filepath.Dir(locked), 0o755))
	require.NoError(t, os.Chmod(locked, 0o555))
	for path, want := range map[string]error{
		in: fs.ErrExist, at("file"): fs.ErrExist, at("folder"): fs.ErrExist, at("broken"): fs.ErrExist,
		at("link"): fs.ErrExist,
		at("hard"): fs.ErrExist, at("absent/out.db"): fs.ErrNotExist, in + "/out.db": unix.ENOTDIR,
		locked + "/out.db": fs.ErrPermission,
	} {
		write := func() error {
			_, err := Write(t.Context(), path, s, seq(put("/new", "x")), WriteConfig{})
			return err
		}
		named := path
		if want != fs.ErrExist {
			as := write
			write, named = func() error { return asNobody(t, as) }, filepath.Base(filepath.Dir(path))
		}
		err := write()
		require.ErrorIs(t, err, want, path)
		require.ErrorContains(t, err, named)
	}
	nothingIn(t, locked)
	require.Equal(t, "mine", string(must(os.ReadFile(at("file")))(t)))
	require.Len(t, must(os.ReadDir(dir))(t), 5)
}

// TestInputUntouched makes all calls with a read-only file in a read-only folder.
func TestInputUntouched(t *testing.T) {
	in := victim(t, fixture(t))
	require.NoError(t, os.Chmod(in, 0o444))
	untouched(t, in)
	dir := filepath.Dir(in)
	require.NoError(t, os.Chmod(dir, 0o555))
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
	t.Cleanup(func() { require.NoError(t, os.Chmod(dir, 0o700)) })
	before := must(os.Stat(dir))(t)
	s := open(t, in)
	flags := must(unix.FcntlInt(s.file.Fd(), unix.F_GETFL, 0))(t)
	require.Equal(t, unix.O_RDONLY, flags&unix.O_ACCMODE)
	errs, out := exercise(t, in)
	require.Empty(t, errs)
	require.NotEmpty(t, out)
	require.Equal(t, before.ModTime(), must(os.Stat(dir))(t).ModTime(), "no file came or went beside it")
}
