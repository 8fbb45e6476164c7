package publish

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/windows"
)

// names lists the names in dir.
func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func started(t *testing.T, path string) *File {
	t.Helper()
	f, err := Create(path)
	require.NoError(t, err)
	_, err = f.File().WriteString("whole")
	require.NoError(t, err)
	return f
}

func TestPublish(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.db")
	f := started(t, path)
	require.NoFileExists(t, path)
	require.NoError(t, f.Publish())
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "whole", string(data))
	require.Equal(t, []string{"out.db"}, names(t, filepath.Dir(path)))
}

func TestExistingNameIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.db")
	f := started(t, path)
	require.NoError(t, os.WriteFile(path, []byte("theirs"), 0o600))
	require.ErrorIs(t, f.Publish(), fs.ErrExist)
	_, err := Create(path)
	require.ErrorIs(t, err, fs.ErrExist)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "theirs", string(data))
	require.Equal(t, []string{"out.db"}, names(t, filepath.Dir(path)))
}

func TestDiscardLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, started(t, filepath.Join(dir, "out.db")).Discard())
	require.Empty(t, names(t, dir))
}

// On Windows some names mean devices, and a colon begins a stream name.
func TestNamesOfNoFile(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"NUL", "con", "out.db:stream", ""} {
		_, err := Create(dir + `\` + name)
		require.Error(t, err, name)
	}
	require.Empty(t, names(t, dir))
}

func TestScratchGoesWithItsHandle(t *testing.T) {
	dir := t.TempDir()
	f, err := Scratch(dir)
	require.NoError(t, err)
	_, err = f.WriteString("spool")
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.Empty(t, names(t, dir))
}

// Under Wine the system account may open the file too; no group of users may.
func TestOtherUsersMayNotOpenIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.db")
	require.NoError(t, started(t, path).Publish())
	sd, err := windows.GetNamedSecurityInfo(path, windows.SE_FILE_OBJECT, windows.DACL_SECURITY_INFORMATION)
	require.NoError(t, err)
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	require.NoError(t, err)
	entries := strings.Split(sd.String(), "(")[1:]
	require.NotEmpty(t, entries)
	for _, entry := range entries {
		require.Regexp(t, ";;;(SY|"+user.User.Sid.String()+")\\)", entry)
	}
}
