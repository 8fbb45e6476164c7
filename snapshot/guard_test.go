package snapshot

import (
	"context"
	"errors"
	"iter"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestCancelledScan checks that a cancelled scan does not affect the next scan.
func TestCancelledScan(t *testing.T) {
	s := open(t, copyOf(t, fixture(t)))
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := s.Keys(gone)
	require.ErrorIs(t, err, context.Canceled)
	for _, err := range s.Live(gone, nil) {
		require.ErrorIs(t, err, context.Canceled)
	}
	n := must(s.Keys(context.Background()))(t)
	require.NotZero(t, n)
}

// TestConcurrentReaders checks concurrent reads; run the test with -race.
func TestConcurrentReaders(t *testing.T) {
	s := open(t, copyOf(t, fixture(t)))
	ctx := context.Background()
	want := modelOf(t, open(t, copyOf(t, fixture(t))))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for rec, err := range s.Live(ctx, nil) {
				if err != nil || want[string(rec.Key)] != string(rec.Value) {
					t.Errorf("%s: %v", rec.Key, err)
				}
				got, err := s.Get(ctx, rec.Key)
				if err != nil || got.ModRevision != rec.ModRevision {
					t.Errorf("%s: %v", rec.Key, err)
				}
			}
			if _, err := s.Status(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// meddlers returns changes that another program could make to an open file.
func meddlers() map[string]func(path string) error {
	return map[string]func(path string) error{
		"cut": func(path string) error { return os.Truncate(path, 8192) },
		"emptied": func(path string) error {
			return os.Truncate(path, 0)
		},
		"overwritten": func(path string) error {
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			return os.WriteFile(path, []byte(strings.Repeat("\xff", int(info.Size()))), 0o600)
		},
		"touched": func(path string) error { return os.Chtimes(path, time.Now(), time.Now()) },
	}
}

// TestChangedWhileRead checks that a file cut, overwritten or touched by another program is
// ErrChanged, for every kind of read.
func TestChangedWhileRead(t *testing.T) {
	reads := map[string]func(s *Snapshot) error{
		"live": func(s *Snapshot) error { return last(s.Live(context.Background(), nil)) },
		"get": func(s *Snapshot) error {
			_, err := s.Get(context.Background(), []byte("/k/000077"))
			return err
		},
		"status": func(s *Snapshot) error {
			_, err := s.Status(context.Background())
			return err
		},
		"verify": func(s *Snapshot) (err error) {
			for e := range Verify(context.Background(), s) {
				err = errors.Join(err, e)
			}
			return err
		},
	}
	b := rebuilt(t, fixture(t), 4096, withKeys(3000))
	for how, meddle := range meddlers() {
		for what, read := range reads {
			t.Run(how+"/"+what, func(t *testing.T) {
				path := victim(t, b)
				s := open(t, path)
				must(s.Keys(context.Background()))(t)
				must(s.Digest(context.Background()))(t)
				require.NoError(t, meddle(path))
				if err := read(s); err != nil {
					require.ErrorIs(t, err, ErrChanged)
					require.ErrorContains(t, err, path)
				} else {
					require.Equal(t, "touched", how)
				}
			})
		}
	}
}

func last(records iter.Seq2[*Record, error]) (err error) {
	for _, err = range records {
	}
	return err
}

// TestGuardLetsBugsThrough checks that guard does not catch a panic in an unchanged file.
func TestGuardLetsBugsThrough(t *testing.T) {
	s := open(t, copyOf(t, fixture(t)))
	require.Panics(t, func() {
		_ = s.guard(func() error {
			var none []byte
			_ = none[len(s.path)]
			return nil
		})
	})
	require.PanicsWithValue(t, "a bug", func() { _ = s.guard(func() error { panic("a bug") }) })
}

// TestGuardTakesAnyPanicAfterAChange checks that guard turns any panic of a decoder into ErrChanged
// if the file has changed.
func TestGuardTakesAnyPanicAfterAChange(t *testing.T) {
	path := victim(t, fixture(t))
	s := open(t, path)
	err := s.guard(func() error {
		require.NoError(t, os.Truncate(path, 4096))
		panic("data changing underfoot?")
	})
	require.ErrorIs(t, err, ErrChanged)
}
