//go:build unix

package publish

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// systems returns all methods of naming a file; every test below runs with each.
func systems() map[string]system {
	named := host()
	named.nameless = func(*os.Root, string, bool) (*os.File, error) { return nil, syscall.EOPNOTSUPP }
	linked := named
	linked.renameNoReplace = func(*os.Root, string, string) error { return syscall.EINVAL }
	renamed := named
	renamed.link = func(*os.Root, string, string) error { return syscall.EPERM }
	return map[string]system{"host": host(), "named": named, "linked": linked, "renamed": renamed}
}

func each(t *testing.T, test func(t *testing.T, sys system)) {
	for name, sys := range systems() {
		t.Run(name, func(t *testing.T) { test(t, sys) })
	}
}

// names lists the names in dir.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	out := []string{}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func write(t *testing.T, f *File, data string) {
	t.Helper()
	_, err := f.File().WriteString(data)
	require.NoError(t, err)
}

func TestPublish(t *testing.T) {
	each(t, func(t *testing.T, sys system) {
		path := filepath.Join(t.TempDir(), "out.db")
		old := syscall.Umask(0o777)
		f, err := create(path, sys)
		syscall.Umask(old)
		require.NoError(t, err)
		write(t, f, "whole")
		_, err = os.Lstat(path)
		require.ErrorIs(t, err, fs.ErrNotExist, "no name before Publish")
		require.NoError(t, f.Publish())

		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, "whole", string(data))
		info, err := os.Lstat(path)
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), info.Mode())
		require.EqualValues(t, 1, info.Sys().(*syscall.Stat_t).Nlink)
		require.Equal(t, []string{"out.db"}, names(t, filepath.Dir(path)))

		require.ErrorIs(t, f.File().Sync(), fs.ErrClosed)
		require.ErrorIs(t, f.Publish(), fs.ErrClosed, "a second time")
		require.NoError(t, f.Discard(), "after Publish it does nothing")
		require.FileExists(t, path)
	})
}

func TestCreateOver(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "report.json")
	for _, content := range []string{"first", "second"} { // a free name, and a taken one
		f, err := CreateOver(path)
		require.NoError(t, err)
		write(t, f, content)
		require.NoError(t, f.Publish())
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, content, string(data))
	}
	f, err := CreateOver(path)
	require.NoError(t, err)
	write(t, f, "third")
	require.NoError(t, f.Discard())
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "second", string(data), "the old content stays until Publish")
	require.Equal(t, []string{"report.json"}, names(t, dir))

	for name, take := range map[string]func(path string) error{
		"folder": func(path string) error { return os.Mkdir(path, 0o755) },
		"link":   func(path string) error { return os.Symlink("report.json", path) },
	} {
		taken := filepath.Join(dir, name)
		require.NoError(t, take(taken))
		_, err := CreateOver(taken)
		require.ErrorIs(t, err, fs.ErrExist, name)
	}
}

func TestOnlyModeWhileUnderConstruction(t *testing.T) {
	each(t, func(t *testing.T, sys system) {
		old := syscall.Umask(0)
		defer syscall.Umask(old)
		f, err := create(filepath.Join(t.TempDir(), "out.db"), sys)
		require.NoError(t, err)
		defer f.Discard()
		info, err := f.File().Stat()
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), info.Mode())
	})
}

func TestExistingNameIsRefused(t *testing.T) {
	takers := map[string]func(path string) error{
		"file":          func(path string) error { return os.WriteFile(path, []byte("theirs"), 0o644) },
		"folder":        func(path string) error { return os.Mkdir(path, 0o755) },
		"dangling link": func(path string) error { return os.Symlink("nowhere", path) },
		"link":          func(path string) error { return os.Symlink("/dev/null", path) },
	}
	for taker, take := range takers {
		t.Run(taker, func(t *testing.T) {
			each(t, func(t *testing.T, sys system) {
				dir := t.TempDir()
				path := filepath.Join(dir, "out.db")

				f, err := create(path, sys)
				require.NoError(t, err)
				write(t, f, "ours")
				require.NoError(t, take(path))
				before, err := os.Lstat(path)
				require.NoError(t, err)

				err = f.Publish()
				require.ErrorIs(t, err, fs.ErrExist)
				require.ErrorContains(t, err, path)

				_, err = create(path, sys)
				require.ErrorIs(t, err, fs.ErrExist)
				require.ErrorIs(t, writeFile(path, []byte("ours"), sys), fs.ErrExist)

				after, err := os.Lstat(path)
				require.NoError(t, err)
				require.True(t, os.SameFile(before, after))
				require.Equal(t, before.ModTime(), after.ModTime())
				require.Equal(t, before.Size(), after.Size())
				require.Equal(t, []string{"out.db"}, names(t, dir),
					"nothing else is left, nothing created through the link")
			})
		})
	}
}

func TestDiscardLeavesNothing(t *testing.T) {
	each(t, func(t *testing.T, sys system) {
		dir := t.TempDir()
		f, err := create(filepath.Join(dir, "out.db"), sys)
		require.NoError(t, err)
		write(t, f, "half")
		require.NoError(t, f.Discard())
		require.NoError(t, f.Discard())
		require.Empty(t, names(t, dir))
		require.ErrorIs(t, f.Publish(), fs.ErrClosed)
		require.Empty(t, names(t, dir))
	})
}

func TestFolderThatTakesNoFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, c := range []struct {
		name, path string
		want       error
	}{
		{"missing folder", filepath.Join(dir, "no", "out.db"), fs.ErrNotExist},
		{"file as folder", filepath.Join(file, "out.db"), syscall.ENOTDIR},
		{"filesystem that makes no files", "/proc/self/fdinfo/out.db", fs.ErrPermission},
		{"name too long", filepath.Join(dir, strings.Repeat("n", 300)), syscall.ENAMETOOLONG},
		{"folder by its slash", dir + "/", nil},
		{"folder itself", dir, fs.ErrExist},
		{"folder by its dots", dir + "/..", nil},
		{"nothing", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			each(t, func(t *testing.T, sys system) {
				_, err := create(c.path, sys)
				require.Error(t, err)
				require.ErrorContains(t, err, c.path)
				if c.want != nil && !(c.want == fs.ErrPermission && errors.Is(err, fs.ErrNotExist)) {
					require.ErrorIs(t, err, c.want)
				}
				require.Equal(t, []string{"file"}, names(t, dir))
			})
		})
	}
}

func TestLongestName(t *testing.T) {
	each(t, func(t *testing.T, sys system) {
		path := filepath.Join(t.TempDir(), strings.Repeat("n", 255))
		require.NoError(t, writeFile(path, []byte("x"), sys))
		require.FileExists(t, path)
	})
}

func TestFolderStaysTheOneOfCreate(t *testing.T) {
	each(t, func(t *testing.T, sys system) {
		top := t.TempDir()
		require.NoError(t, os.Mkdir(filepath.Join(top, "a"), 0o755))
		t.Chdir(filepath.Join(top, "a"))
		f, err := create("out.db", sys)
		require.NoError(t, err)
		require.NoError(t, os.Rename(filepath.Join(top, "a"), filepath.Join(top, "b")))
		t.Chdir(top)
		require.NoError(t, f.Publish())
		require.Equal(t, []string{"out.db"}, names(t, filepath.Join(top, "b")))
		require.Equal(t, []string{"b"}, names(t, top))
	})
}

func TestFailedPublishLeavesNothing(t *testing.T) {
	broken := errors.New("broken")
	isFolder := func(f *os.File) bool {
		info, err := f.Stat()
		return err == nil && info.IsDir()
	}
	faults := map[string]func(sys *system){
		"sync of the file": func(sys *system) {
			sys.sync = func(f *os.File) error {
				if !isFolder(f) {
					return broken
				}
				return f.Sync()
			}
		},
		"sync of the folder": func(sys *system) {
			sys.sync = func(f *os.File) error {
				if isFolder(f) {
					return broken
				}
				return f.Sync()
			}
		},
		"naming": func(sys *system) {
			sys.nameNameless = func(*os.Root, *os.File, string) error { return broken }
			sys.renameNoReplace = func(*os.Root, string, string) error { return broken }
			sys.link = func(*os.Root, string, string) error { return broken }
		},
	}
	for fault, inject := range faults {
		t.Run(fault, func(t *testing.T) {
			each(t, func(t *testing.T, sys system) {
				inject(&sys)
				dir := t.TempDir()
				f, err := create(filepath.Join(dir, "out.db"), sys)
				require.NoError(t, err)
				write(t, f, "whole")
				require.ErrorIs(t, f.Publish(), broken)
				require.Empty(t, names(t, dir))
				require.ErrorIs(t, f.Publish(), fs.ErrClosed)
				require.NoError(t, f.Discard())
			})
		})
	}
}

func TestFolderThatCannotSync(t *testing.T) {
	each(t, func(t *testing.T, sys system) {
		sys.sync = func(f *os.File) error {
			if info, err := f.Stat(); err == nil && info.IsDir() {
				return syscall.EINVAL
			}
			return f.Sync()
		}
		path := filepath.Join(t.TempDir(), "out.db")
		require.NoError(t, writeFile(path, []byte("x"), sys))
		require.FileExists(t, path)
	})
}

func TestSyncsBeforeAndAfterTheName(t *testing.T) {
	each(t, func(t *testing.T, sys system) {
		path := filepath.Join(t.TempDir(), "out.db")
		var order []string
		sys.sync = func(f *os.File) error {
			info, err := f.Stat()
			require.NoError(t, err)
			_, err = os.Lstat(path)
			switch named := err == nil; {
			case info.IsDir() && named:
				order = append(order, "folder after the name")
			case !info.IsDir() && !named:
				order = append(order, "file before the name")
			default:
				order = append(order, "wrong")
			}
			return f.Sync()
		}
		require.NoError(t, writeFile(path, []byte("x"), sys))
		require.Equal(t, []string{"file before the name", "folder after the name"}, order)
	})
}

func TestScratch(t *testing.T) {
	each(t, func(t *testing.T, sys system) {
		dir := t.TempDir()
		f, err := scratch(dir, sys)
		require.NoError(t, err)
		require.Empty(t, names(t, dir))
		info, err := f.Stat()
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), info.Mode())
		_, err = f.WriteString("spool")
		require.NoError(t, err)
		back := make([]byte, 5)
		_, err = f.ReadAt(back, 0)
		require.NoError(t, err)
		require.Equal(t, "spool", string(back))
		require.NoError(t, f.Close())
		require.Empty(t, names(t, dir))

		_, err = scratch(filepath.Join(dir, "no"), sys)
		require.ErrorIs(t, err, fs.ErrNotExist)
	})
}

func TestExported(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "report.json")
	require.NoError(t, writeFile(path, []byte("{}\n"), host()))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "{}\n", string(data))
	require.ErrorIs(t, writeFile(path, nil, host()), fs.ErrExist)
	f, err := Scratch(dir)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	_, err = Create(path)
	require.ErrorIs(t, err, fs.ErrExist)
	require.Equal(t, []string{"report.json"}, names(t, dir))
}

// writeFile publishes data as path.
func writeFile(path string, data []byte, sys system) error {
	f, err := create(path, sys)
	if err != nil {
		return err
	}
	defer f.Discard()
	if _, err := f.file.Write(data); err != nil {
		return err
	}
	return f.Publish()
}

// A file of CreateElsewhere never has a local name.
func TestElsewhere(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	refused := errors.New("refused")
	for _, outcome := range []error{nil, refused} {
		var got []byte
		f, err := CreateElsewhere("s3://bucket/key", func(file *os.File) error {
			got, _ = io.ReadAll(io.NewSectionReader(file, 0, 100))
			return outcome
		})
		require.NoError(t, err)
		_, err = f.File().WriteString("content")
		require.NoError(t, err)
		require.ErrorIs(t, f.Publish(), outcome)
		require.Equal(t, "content", string(got))
		require.ErrorIs(t, f.Publish(), fs.ErrClosed)
		require.NoError(t, f.Discard())
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, left)
	}
}
