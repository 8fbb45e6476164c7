package snapshot

import (
	"context"
	"errors"
	"fmt"
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

// writer is a way to make an output from s, with changes where it takes them.
type writer func(ctx context.Context, path string, s *Snapshot, changes iter.Seq2[Change, error], check func(context.Context, *Snapshot) error) (WriteResult, error)

// writers are all ways there are to make a file.
func writers() map[string]writer {
	granted := []Lease{{ID: 12345, TTL: 60}}
	with := func(cfg WriteConfig) writer {
		return func(ctx context.Context, path string, s *Snapshot, changes iter.Seq2[Change, error], check func(context.Context, *Snapshot) error) (WriteResult, error) {
			cfg.Check = check
			return Write(ctx, path, s, changes, cfg)
		}
	}
	return map[string]writer{
		"append":           with(WriteConfig{}),
		"append and grant": with(WriteConfig{Leases: granted}),
		"scrub":            with(WriteConfig{Scrub: without("/k/001"), Leases: granted}),
		"compact":          with(WriteConfig{Compact: &Compaction{Keep: 100}, Leases: granted}),
		"build": func(ctx context.Context, path string, s *Snapshot, _ iter.Seq2[Change, error], check func(context.Context, *Snapshot) error) (res WriteResult, err error) {
			err = s.Guard(func() error {
				c := Content{Records: s.Live(ctx, nil), Revision: 1 << 40, Leases: granted, Notes: map[string][]byte{"n": []byte("note")}}
				res, err = Build(ctx, path, c, check)
				return err
			})
			return res, err
		},
	}
}

// fewChanges are some that a file of withKeys or withLargeKeys takes from each writer.
func fewChanges(yield func(Change, error) bool) {
	for i := range 300 {
		if !yield(Change{Key: fmt.Appendf(nil, "/k/%06d", i), Value: []byte("new"), Prior: int64(i + 30)}, nil) {
			return
		}
	}
}

// TestEveryWriterCancelled gives up at many moments: nothing is left, and the file can still be
// read and written on.
func TestEveryWriterCancelled(t *testing.T) {
	in := copyOf(t, rebuilt(t, fixture(t), 4096, withLargeKeys(2000)))
	for how, write := range writers() {
		t.Run(how, func(t *testing.T) {
			r := rand.New(rand.NewPCG(3, 3))
			s := open(t, in)
			cancelled := 0
			for i := range 30 {
				ctx, cancel := context.WithCancel(context.Background())
				path := filepath.Join(t.TempDir(), "out.db")
				timer := time.AfterFunc(time.Duration(r.IntN(1+i*1500))*time.Microsecond, cancel)
				_, err := write(ctx, path, s, fewChanges, nil)
				if timer.Stop(); err != nil {
					require.ErrorIs(t, err, context.Canceled)
					nothingIn(t, filepath.Dir(path))
					cancelled++
				}
				cancel()
			}
			require.NotZero(t, cancelled)
			ctx, cancel := context.WithCancel(context.Background())
			path := filepath.Join(t.TempDir(), "out.db")
			_, err := write(ctx, path, s, fewChanges, func(ctx context.Context, _ *Snapshot) error {
				cancel()
				return ctx.Err()
			})
			require.ErrorIs(t, err, context.Canceled)
			nothingIn(t, filepath.Dir(path))
			must(write(context.Background(), path, s, fewChanges, nil))(t)
		})
	}
}

// TestEveryWriterDiskFull writes to a file system that is too small by more and less, and to a full
// device.
func TestEveryWriterDiskFull(t *testing.T) {
	s := open(t, copyOf(t, rebuilt(t, fixture(t), 4096, withKeys(3000))))
	for how, write := range writers() {
		whole := filepath.Join(t.TempDir(), "whole.db")
		res := must(write(context.Background(), whole, s, fewChanges, nil))(t)
		for _, size := range []int64{4096, res.Bytes / 2, res.Bytes - 8192, res.Bytes - 4096} {
			dir := t.TempDir()
			if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size&^4095)); err != nil {
				t.Skipf("no file system of a chosen size: %v", err)
			}
			t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
			path := filepath.Join(dir, "out.db")
			_, err := write(context.Background(), path, s, fewChanges, nil)
			require.ErrorIs(t, err, unix.ENOSPC, "%s: %d bytes", how, size)
			require.ErrorContains(t, err, path)
			nothingIn(t, dir)
			var stat unix.Statfs_t
			require.NoError(t, unix.Statfs(dir, &stat))
			require.Equal(t, stat.Blocks, stat.Bfree, "what was written is given back")
		}
	}
}

// TestEveryWriterChanged: someone changes the input when the output is half made, or before the
// caller's check of it.
func TestEveryWriterChanged(t *testing.T) {
	b := rebuilt(t, fixture(t), 4096, withKeys(3000))
	for how, write := range writers() {
		for name, meddle := range meddlers() {
			t.Run(how+"/"+name, func(t *testing.T) {
				path := victim(t, b)
				s := open(t, path)
				n := 0
				out := filepath.Join(t.TempDir(), "out.db")
				_, err := write(context.Background(), out, s, func(yield func(Change, error) bool) {
					for c, err := range fewChanges {
						if n++; n == 400 { // in the second pass
							require.NoError(t, meddle(path))
						}
						if !yield(c, err) {
							return
						}
					}
				}, func(context.Context, *Snapshot) error {
					if how == "build" { // which takes no changes
						require.NoError(t, meddle(path))
						return last(s.Live(context.Background(), nil))
					}
					return nil
				})
				if how == "build" && name == "touched" {
					require.NoError(t, err, "its records are what they were")
					return
				}
				require.ErrorIs(t, err, ErrChanged)
				require.ErrorContains(t, err, path)
				nothingIn(t, filepath.Dir(out))
			})
		}
	}
}

// TestSourceChanged: someone cuts or overwrites the file while its records are read into another
// one, and while they are compared.
func TestSourceChanged(t *testing.T) {
	b := rebuilt(t, fixture(t), 4096, withKeys(3000))
	for name, meddle := range meddlers() {
		if name == "touched" {
			continue
		}
		for _, at := range []int{1, 2000, 4000} {
			path := victim(t, b)
			s := open(t, path)
			n := 0
			tick := func() {
				if n++; n == at {
					require.NoError(t, meddle(path))
				}
			}
			out := filepath.Join(t.TempDir(), "out.db")
			_, err := Write(context.Background(), out, s, seq(), WriteConfig{Scrub: func([]byte) bool {
				tick()
				return false
			}})
			require.ErrorIs(t, err, ErrChanged, "%s at %d", name, at)
			require.ErrorContains(t, err, path)
			nothingIn(t, filepath.Dir(out))

			path = victim(t, b)
			s, n = open(t, path), 0
			err = s.Guard(func() error {
				_, err := Build(context.Background(), out, Content{Revision: 1 << 40, Records: func(yield func(*Record, error) bool) {
					for rec, err := range s.Records(context.Background()) {
						tick()
						if !yield(rec, err) {
							return
						}
					}
				}}, nil)
				return err
			})
			if err == nil { // it was not read again
				require.NoError(t, os.Remove(out))
				continue
			}
			if !errors.Is(err, ErrVerify) { // other bytes than the first time, of a file that Build knows nothing of
				require.ErrorIs(t, err, ErrChanged)
				require.ErrorContains(t, err, path)
			}
			nothingIn(t, filepath.Dir(out))
		}
	}
}

// TestEveryWriterOutputCut: someone cuts the output short while it is compared, which is no fault
// of the input.
func TestEveryWriterOutputCut(t *testing.T) {
	s := open(t, copyOf(t, rebuilt(t, fixture(t), 4096, withLargeKeys(2000))))
	for how, write := range writers() {
		t.Run(how, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "out.db")
			_, err := write(context.Background(), path, s, fewChanges, func(ctx context.Context, out *Snapshot) error {
				require.NoError(t, out.file.Truncate(8192))
				n := 0
				for rec, err := range out.Records(ctx) {
					if err != nil {
						return err
					}
					n += len(rec.Key)
				}
				return fmt.Errorf("read %d bytes", n)
			})
			require.ErrorContains(t, err, path)
			require.ErrorIs(t, err, ErrChanged)
			nothingIn(t, filepath.Dir(path))
		})
	}
}

// TestEveryWriterPanics: a bug of the caller is the caller's, wherever it is, and leaves nothing
// behind.
func TestEveryWriterPanics(t *testing.T) {
	s := open(t, copyOf(t, rebuilt(t, fixture(t), 4096, withKeys(3000))))
	mapped := deletedMappings(t)
	for how, write := range writers() {
		for _, at := range []int{1, 150, 301, 599, 1000} {
			path := filepath.Join(t.TempDir(), "out.db")
			n := 0
			require.PanicsWithValue(t, "a bug", func() {
				_, _ = write(context.Background(), path, s, func(yield func(Change, error) bool) {
					for c, err := range fewChanges {
						if n++; n == at {
							panic("a bug")
						}
						if !yield(c, err) {
							return
						}
					}
				}, func(context.Context, *Snapshot) error { panic("a bug") })
			}, how)
			nothingIn(t, filepath.Dir(path))
		}
	}
	require.Equal(t, mapped, deletedMappings(t), "no output is left mapped")
}

// deletedMappings counts the mapped files of this process that have no name.
func deletedMappings(t testing.TB) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Skip(err)
	}
	return strings.Count(string(b), "(deleted)")
}
