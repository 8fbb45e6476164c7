package snapshot

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// fails says that Write ends with want (nil: any error) and leaves its folder as it was.
func fails(t testing.TB, s *Snapshot, changes iter.Seq2[Change, error], want error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "out.db")
	_, err := Write(context.Background(), path, s, changes, WriteConfig{})
	require.Error(t, err)
	if want != nil {
		require.ErrorIs(t, err, want)
	}
	nothingIn(t, filepath.Dir(path))
}

func nothingIn(t testing.TB, dir string) {
	t.Helper()
	require.Empty(t, must(os.ReadDir(dir))(t))
}

// TestNeverOverwrites: a name that is taken stays what it is, be it the input's own.
func TestNeverOverwrites(t *testing.T) {
	in := copyOf(t, fixture(t))
	s := open(t, in)
	dir := t.TempDir()
	file, folder, broken, hard := filepath.Join(dir, "file"), filepath.Join(dir, "folder"), filepath.Join(dir, "broken"), filepath.Join(dir, "hard")
	require.NoError(t, os.WriteFile(file, []byte("mine"), 0o600))
	require.NoError(t, os.Mkdir(folder, 0o700))
	require.NoError(t, os.Symlink("nowhere", broken))
	require.NoError(t, os.Symlink(in, filepath.Join(dir, "link")))
	require.NoError(t, os.Link(in, hard))
	for _, path := range []string{in, file, folder, broken, filepath.Join(dir, "link"), hard} {
		_, err := Write(context.Background(), path, s, seq(put("/new", "x")), WriteConfig{})
		require.ErrorIs(t, err, fs.ErrExist, path)
		require.ErrorContains(t, err, path)
	}
	b := must(os.ReadFile(file))(t)
	require.Equal(t, "mine", string(b))
	left := must(os.ReadDir(dir))(t)
	require.Len(t, left, 5)
}

// TestInputUntouched does everything there is with a file that nobody may write to, in a folder
// that nobody may write to.
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
	after := must(os.Stat(dir))(t)
	require.Equal(t, before.ModTime(), after.ModTime(), "no file came or went beside it")
}

// TestNameTakenMeanwhile: another program makes a file of that name while Write is at work.
func TestNameTakenMeanwhile(t *testing.T) {
	s := open(t, copyOf(t, fixture(t)))
	path := filepath.Join(t.TempDir(), "out.db")
	passes := 0
	_, err := Write(context.Background(), path, s, func(yield func(Change, error) bool) {
		if passes++; passes == 2 {
			require.NoError(t, os.WriteFile(path, []byte("theirs"), 0o600))
		}
		seq(put("/new", "x"))(yield)
	}, WriteConfig{})
	require.ErrorIs(t, err, fs.ErrExist)
	b := must(os.ReadFile(path))(t)
	require.Equal(t, "theirs", string(b))
	left := must(os.ReadDir(filepath.Dir(path)))(t)
	require.Len(t, left, 1)
}

// TestFolders: there is no folder, it is a file, or it may not be written to.
func TestFolders(t *testing.T) {
	in := copyOf(t, fixture(t))
	s := open(t, in)
	locked := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(locked), 0o755))
	require.NoError(t, os.Chmod(locked, 0o555))
	for path, want := range map[string]error{
		filepath.Join(t.TempDir(), "absent", "out.db"): fs.ErrNotExist,
		filepath.Join(in, "out.db"):                    unix.ENOTDIR,
		filepath.Join(locked, "out.db"):                fs.ErrPermission,
	} {
		err := asNobody(t, func() error {
			_, err := Write(context.Background(), path, s, seq(put("/new", "x")), WriteConfig{})
			return err
		})
		require.ErrorIs(t, err, want)
		require.ErrorContains(t, err, filepath.Base(filepath.Dir(path)))
	}
	nothingIn(t, locked)
}

// TestFaultyPlans: a plan that fails, early or late, or is another the second time.
func TestFaultyPlans(t *testing.T) {
	in := copyOf(t, fixture(t))
	s := open(t, in)
	broken := errors.New("the plan broke")
	plan := []Change{put("/1", "a"), put("/2", "b"), put("/3", "c")}
	failing := func(at int) iter.Seq2[Change, error] {
		n := 0
		return func(yield func(Change, error) bool) {
			for _, c := range plan {
				if n == at {
					yield(Change{}, broken)
					return
				}
				n++
				if !yield(c, nil) {
					return
				}
			}
		}
	}
	for at := range 6 {
		fails(t, s, failing(at), broken)
	}
	for name, second := range map[string][]Change{
		"fewer":         plan[:2],
		"none":          nil,
		"more":          append(plan[:3:3], put("/4", "d")),
		"another value": {plan[0], put("/2", "B"), plan[2]},
		"another key":   {plan[0], put("/X", "b"), plan[2]},
		"another order": {plan[1], plan[0], plan[2]},
		"no deletion":   {plan[0], plan[1], del("/3")},
		"a lease":       {plan[0], plan[1], {Key: []byte("/3"), Value: []byte("c"), Lease: 5}},
	} {
		t.Run(name, func(t *testing.T) {
			passes := 0
			fails(t, s, func(yield func(Change, error) bool) {
				passes++
				if passes == 1 {
					seq(plan...)(yield)
				} else {
					seq(second...)(yield)
				}
			}, ErrVerify)
		})
	}
}

// TestCancelledInSecondPass: between what was written and what it is compared with.
func TestCancelledInSecondPass(t *testing.T) {
	s := open(t, copyOf(t, rebuilt(t, fixture(t), 4096, withKeys(2000))))
	n := 0
	ctx, cancel := context.WithCancel(context.Background())
	path := filepath.Join(t.TempDir(), "out.db")
	_, err := Write(ctx, path, s, func(yield func(Change, error) bool) {
		for c, err := range fewChanges {
			if n++; n == 400 {
				cancel()
			}
			if !yield(c, err) {
				return
			}
		}
	}, WriteConfig{})
	require.ErrorIs(t, err, context.Canceled)
	nothingIn(t, filepath.Dir(path))
	write(t, s, fewChanges)
}
