package snapshot

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// caller is the caller of a writer. caller calls tick before each change and record, for each key
// passed to Scrub, and for the check of the output.
type caller struct {
	changes iter.Seq2[Change, error]
	tick    func() error
	check   func(context.Context, *Snapshot) error
}

// plain returns a caller with changes only.
func plain(changes iter.Seq2[Change, error]) caller {
	return caller{changes, func() error { return nil }, func(context.Context, *Snapshot) error { return nil }}
}

// ticking yields the elements of all, with a tick before each.
func ticking[T any](c *caller, all iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for one, err := range all {
			if !yield(one, cmp.Or(c.tick(), err)) {
				return
			}
		}
	}
}

// writer makes an output from s, with changes if possible.
type writer func(ctx context.Context, path string, s *Snapshot, c caller) (WriteResult, error)

// writers returns all ways to make a file.
func writers() map[string]writer {
	granted := []Lease{{ID: 12345, TTL: 60}}
	with := func(cfg WriteConfig) writer {
		return func(ctx context.Context, path string, s *Snapshot, c caller) (WriteResult, error) {
			cfg := cfg
			cfg.Check = func(ctx context.Context, out *Snapshot) error { return cmp.Or(c.tick(), c.check(ctx, out)) }
			if scrub := cfg.Scrub; scrub != nil {
				tick, failed := c.tick, error(nil) // Scrub cannot return an error: the next change returns it
				c.tick = func() error { return cmp.Or(failed, tick()) }
				cfg.Scrub = func(key []byte) bool {
					failed = cmp.Or(failed, tick())
					return scrub(key)
				}
			}
			return Write(ctx, path, s, ticking(&c, c.changes), cfg)
		}
	}
	return map[string]writer{
		"append":           with(WriteConfig{}),
		"append and grant": with(WriteConfig{Leases: granted}),
		"scrub":            with(WriteConfig{Scrub: without("/k/001"), Leases: granted}),
		"compact":          with(WriteConfig{Compact: &Compaction{Keep: 100}, Leases: granted}),
		"build": func(ctx context.Context, path string, s *Snapshot, c caller) (res WriteResult, err error) {
			err = s.Guard(func() error {
				content := Content{Records: ticking(&c, s.Live(ctx, nil)), Revision: 1 << 40,
					Leases: granted, Notes: aNote()}
				res, err = Build(ctx, path, content, func(ctx context.Context, out *Snapshot) error {
					return cmp.Or(c.tick(), c.check(ctx, out))
				})
				return err
			})
			return res, err
		},
	}
}

func aNote() map[string][]byte { return map[string][]byte{"n": []byte("note")} }

// fewChanges yields changes that every writer accepts for a file of withKeys or withLargeKeys.
func fewChanges(yield func(Change, error) bool) {
	for i := range 300 {
		if !yield(Change{Key: fmt.Appendf(nil, "/k/%06d", i), Value: []byte("new"), Prior: int64(i + 30)}, nil) {
			return
		}
	}
}

// run is one run of a writer, to be spoiled.
type run struct {
	in, out string
	cancel  func()
}

// fault spoils a run; want is the error of the writer.
type fault struct {
	spoil func(r run) error
	want  error
}

var errBroken = errors.New("the source broke")

func everyFault() map[string]fault {
	all := map[string]fault{
		"cancelled":  {func(r run) error { r.cancel(); return nil }, context.Canceled},
		"broken":     {func(run) error { return errBroken }, errBroken},
		"panic":      {func(run) error { panic("a bug") }, nil},
		"name taken": {func(r run) error { return os.WriteFile(r.out, []byte("theirs"), 0o600) }, fs.ErrExist},
	}
	for how, meddle := range meddlers() {
		all[how] = fault{func(r run) error { return meddle(r.in) }, ErrChanged}
	}
	return all
}

// TestEveryWriter checks that after any fault at any moment no file is left, that the error
// describes the fault, and that another run works. A panic of the caller reaches the caller.
func TestEveryWriter(t *testing.T) {
	b := rebuilt(t, fixture(t), 4096, withKeys(3000))
	mapped := deletedMappings(t)
	for how, write := range writers() {
		total, c := 0, plain(fewChanges)
		c.tick = func() error { total++; return nil }
		must(write(t.Context(), filepath.Join(t.TempDir(), "out.db"), open(t, copyOf(t, b)), c))(t)
		for name, f := range everyFault() {
			for _, at := range []int{1, total/2 - 1, total/2 + 1, total - 2, total} { // the last tick is in the check
				t.Run(fmt.Sprintf("%s/%s at %d", how, name, at), func(t *testing.T) {
					spoiled(t, how, write, b, name, f, at)
				})
			}
		}
	}
	require.Equal(t, mapped, deletedMappings(t), "no output is left mapped")
}

func spoiled(t *testing.T, how string, write writer, b []byte, name string, f fault, at int) {
	r := run{in: victim(t, b), out: filepath.Join(t.TempDir(), "out.db")}
	s := open(t, r.in)
	ctx, cancel := context.WithCancel(t.Context())
	r.cancel = cancel
	n, c := 0, plain(fewChanges)
	c.tick = func() error {
		if n++; n == at {
			return f.spoil(r)
		}
		return nil
	}
	c.check = func(ctx context.Context, _ *Snapshot) error { return ctx.Err() }
	var err error
	make := func() { _, err = write(ctx, r.out, s, c) }
	if name == "panic" {
		require.PanicsWithValue(t, "a bug", make)
		nothingIn(t, filepath.Dir(r.out))
		must(write(t.Context(), r.out, s, plain(fewChanges)))(t)
		return
	}
	make()
	switch _, meddled := meddlers()[name]; {
	case name == "name taken":
		require.Equal(t, "theirs", string(must(os.ReadFile(r.out))(t)))
		require.NoError(t, os.Remove(r.out))
	case meddled && how == "build":
		if err == nil { // the changed bytes were not read again
			require.NoError(t, os.Remove(r.out))
		} else if !errors.Is(err, ErrVerify) { // different bytes in the second pass; Build does not know the file
			require.ErrorIs(t, err, ErrChanged)
		}
		nothingIn(t, filepath.Dir(r.out))
		return
	case meddled:
		require.ErrorContains(t, err, r.in)
	}
	require.ErrorIs(t, err, f.want)
	nothingIn(t, filepath.Dir(r.out))
}

// TestEveryWriterCancelled cancels at many moments: no file is left, and the input can still be
// read and written.
func TestEveryWriterCancelled(t *testing.T) {
	in := copyOf(t, rebuilt(t, fixture(t), 4096, withLargeKeys(2000)))
	for how, write := range writers() {
		t.Run(how, func(t *testing.T) {
			r := rand.New(rand.NewPCG(3, 3))
			s := open(t, in)
			cancelled := 0
			for i := range 30 {
				ctx, cancel := context.WithCancel(t.Context())
				path := filepath.Join(t.TempDir(), "out.db")
				timer := time.AfterFunc(time.Duration(r.IntN(1+i*1500))*time.Microsecond, cancel)
				_, err := write(ctx, path, s, plain(fewChanges))
				if timer.Stop(); err != nil {
					require.ErrorIs(t, err, context.Canceled)
					nothingIn(t, filepath.Dir(path))
					cancelled++
				}
				cancel()
			}
			require.NotZero(t, cancelled)
			must(write(t.Context(), filepath.Join(t.TempDir(), "out.db"), s, plain(fewChanges)))(t)
		})
	}
}

// TestEveryWriterDiskFull writes to file systems of several sizes that are too small, and to a full
// device.
func TestEveryWriterDiskFull(t *testing.T) {
	s := open(t, copyOf(t, rebuilt(t, fixture(t), 4096, withKeys(3000))))
	for how, write := range writers() {
		res := must(write(t.Context(), filepath.Join(t.TempDir(), "whole.db"), s, plain(fewChanges)))(t)
		for _, size := range []int64{4096, res.Bytes / 2, res.Bytes - 8192, res.Bytes - 4096} {
			dir := t.TempDir()
			if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size&^4095)); err != nil {
				t.Skipf("no file system of a chosen size: %v", err)
			}
			t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
			path := filepath.Join(dir, "out.db")
			_, err := write(t.Context(), path, s, plain(fewChanges))
			require.ErrorIs(t, err, unix.ENOSPC, "%s: %d bytes", how, size)
			require.ErrorContains(t, err, path)
			nothingIn(t, dir)
			var stat unix.Statfs_t
			require.NoError(t, unix.Statfs(dir, &stat))
			require.Equal(t, stat.Blocks, stat.Bfree, "what was written is given back")
		}
	}
}

// TestEveryWriterChecks checks that the caller's check sees the complete output, with its digest,
// before the publication. If another program then truncates the output, the error does not name the
// input.
func TestEveryWriterChecks(t *testing.T) {
	s := open(t, copyOf(t, rebuilt(t, fixture(t), 4096, withLargeKeys(2000))))
	for how, write := range writers() {
		t.Run(how, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "out.db")
			c := plain(fewChanges)
			var seen Digest
			c.check = func(ctx context.Context, out *Snapshot) error {
				nothingIn(t, filepath.Dir(path))
				require.Equal(t, path, out.Path())
				require.Empty(t, findings(t, out))
				require.Equal(t, "ok", must(out.Status(ctx))(t).Digest)
				seen = must(out.Digest(ctx))(t)
				return nil
			}
			must(write(t.Context(), path, s, c))(t)
			require.Equal(t, [32]byte(seen.File), sumOf(t, path))
			require.True(t, bytes.HasSuffix(must(os.ReadFile(path))(t), seen.Image[:]))

			path = filepath.Join(t.TempDir(), "out.db")
			c.check = func(ctx context.Context, out *Snapshot) error {
				require.NoError(t, out.file.Truncate(8192))
				return cmp.Or(last(out.Records(ctx)), errors.New("it was read"))
			}
			_, err := write(t.Context(), path, s, c)
			require.ErrorContains(t, err, path)
			require.ErrorIs(t, err, ErrChanged)
			nothingIn(t, filepath.Dir(path))
		})
	}
}

// TestSecondPass checks that a caller with different content in the second pass gets an error.
func TestSecondPass(t *testing.T) {
	s := open(t, copyOf(t, built(t, "put /a/1 x\nput /a/2 x\nput /b y\ndel /a/2")))
	refused := func(name string, changes iter.Seq2[Change, error], cfg WriteConfig) {
		path := filepath.Join(t.TempDir(), "out.db")
		_, err := Write(t.Context(), path, s, changes, cfg)
		require.ErrorIs(t, err, ErrVerify, name)
		nothingIn(t, filepath.Dir(path))
	}
	first := []Change{put("/1", "a"), put("/2", "b"), put("/3", "c")}
	for name, second := range map[string][]Change{
		"fewer":         first[:2],
		"none":          nil,
		"more":          append(first[:3:3], put("/4", "d")),
		"another value": {first[0], put("/2", "B"), first[2]},
		"another key":   {first[0], put("/X", "b"), first[2]},
		"another order": {first[1], first[0], first[2]},
		"no deletion":   {first[0], first[1], del("/3")},
		"a lease":       {first[0], first[1], {Key: []byte("/3"), Value: []byte("c"), Lease: 5}},
	} {
		refused(name, firstThen(seq(first...), seq(second...)), WriteConfig{})
	}
	a, b := created(5, "/a", "x"), created(6, "/b", "x")
	for name, second := range map[string]iter.Seq2[*Record, error]{
		"fewer": these(a), "more": these(a, b, created(7, "/c", "x")), "another": these(a, created(6, "/b", "y")),
		"none": these(),
	} {
		refused(name, nil, WriteConfig{Build: &Content{Revision: 9, Records: firstThen(these(a, b), second)}})
	}
	for _, at := range []int{1, 4, 5, 6, 8} { // a Scrub with inconsistent results
		n := 0
		refused(fmt.Sprint(at), seq(), WriteConfig{Scrub: func(key []byte) bool {
			n++
			return (string(key) == "/b") != (n == at)
		}})
	}
}

// firstThen yields first in the first pass, and then in all later passes.
func firstThen[T any](first, then iter.Seq2[T, error]) iter.Seq2[T, error] {
	passes := 0
	return func(yield func(T, error) bool) {
		if passes++; passes == 1 {
			first(yield)
		} else {
			then(yield)
		}
	}
}

// deletedMappings counts the mapped files of this process without a name.
func deletedMappings(t testing.TB) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Skip(err)
	}
	return strings.Count(string(b), "(deleted)")
}

// fails requires that Write ends with want (nil: any error) and leaves its folder unchanged.
func fails(t testing.TB, s *Snapshot, changes iter.Seq2[Change, error], want error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "out.db")
	_, err := Write(t.Context(), path, s, changes, WriteConfig{})
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
