//go:build unix

package publish

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRemove checks that only the created file is removed, not another file with its name.
func TestRemove(t *testing.T) {
	write := func(path string) error { return os.WriteFile(path, []byte("mine!"), 0o600) }
	for name, change := range map[string]func(path string) error{
		"":         func(string) error { return nil },
		"gone":     os.Remove,
		"replaced": func(path string) error { return errors.Join(os.Remove(path), write(path)) },
		"edited":   write,
		"linked": func(path string) error {
			return errors.Join(os.Rename(path, path+".1"),
				os.Symlink(path+".1", path))
		},
		"a folder": func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
	} {
		path := filepath.Join(t.TempDir(), "out")
		f, err := Create(path)
		require.NoError(t, err)
		_, err = f.File().WriteString("ours!")
		require.NoError(t, err)
		require.NoError(t, f.Publish())
		time.Sleep(10 * time.Millisecond) // longer than a clock tick of a file system
		require.NoError(t, change(path))
		if err = f.Remove(); name == "" || name == "gone" {
			require.NoError(t, err, name)
			require.NoFileExists(t, path)
			continue
		}
		require.ErrorIs(t, err, ErrReplaced, name)
		_, err = os.Lstat(path)
		require.NoError(t, err, name)
	}
	folder := filepath.Join(t.TempDir(), "folder")
	require.NoError(t, os.Mkdir(folder, 0o700))
	made, err := os.Stat(folder)
	require.NoError(t, err)
	require.NoError(t, write(filepath.Join(folder, "x")))
	require.Error(t, Remove(folder, made), "not empty")
	require.NoError(t, os.Remove(filepath.Join(folder, "x")))
	require.NoError(t, Remove(folder, made))
	require.NoError(t, Remove(folder, made), "gone")
}
