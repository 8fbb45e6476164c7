package transform

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// inPlan runs fn as a plan that changes nothing.
func inPlan(t *testing.T, fn func(ctx context.Context, v *View)) {
	t.Helper()
	f := input(t)
	_, err := Run(context.Background(), Options{In: f.in, Out: f.out, DryRun: true, Prefixes: []string{"/registry"}},
		planFunc(func(ctx context.Context, v *View) error {
			fn(ctx, v)
			return nil
		}))
	require.NoError(t, err)
}

// TestParallel checks that every number is processed once, with fewer or more numbers than
// processors.
func TestParallel(t *testing.T) {
	inPlan(t, func(ctx context.Context, v *View) {
		for _, n := range []int{0, 1, 2, runtime.GOMAXPROCS(0) + 1, 1000} {
			done := make([]atomic.Int32, n)
			require.NoError(t, v.Parallel(ctx, n, func(i int) error {
				done[i].Add(1)
				return nil
			}))
			for i := range done {
				require.EqualValues(t, 1, done[i].Load(), "%d of %d", i, n)
			}
		}
	})
}

// TestParallelFails checks that an error is returned and stops its goroutine, and a cancelled
// context stops all.
func TestParallelFails(t *testing.T) {
	inPlan(t, func(ctx context.Context, v *View) {
		broken := errors.New("broken")
		var calls atomic.Int32
		err := v.Parallel(ctx, 1000, func(int) error {
			calls.Add(1)
			return broken
		})
		require.ErrorIs(t, err, broken)
		require.LessOrEqual(t, int(calls.Load()), runtime.GOMAXPROCS(0))

		ctx, cancel := context.WithCancel(ctx)
		calls.Store(0)
		err = v.Parallel(ctx, 1000, func(i int) error {
			calls.Add(1)
			cancel()
			return nil
		})
		require.ErrorIs(t, err, context.Canceled)
		require.Less(t, int(calls.Load()), 1000)
	})
}

// TestPick checks that the wanted entries come in the order of Below, for any number of entries; a
// consumer that stops gets no more, and an error of the consumer ends the sequence.
func TestPick(t *testing.T) {
	inPlan(t, func(ctx context.Context, v *View) {
		for i := range 3079 {
			require.NoError(t, v.Create(ctx, fmt.Appendf(nil, "/registry/pods/a/%05d", i),
				bytes.Repeat([]byte("x"), 1+i*37%9000), 0))
		}
		keysOf := func(seq iter.Seq2[*Entry, error], most int) (out []string) {
			for e, err := range seq {
				require.NoError(t, err)
				if out = append(out, string(e.Key)); len(out) == most {
					break
				}
			}
			return out
		}
		odd := func(e *Entry) bool { return e.Key[len(e.Key)-1]%2 == 1 }
		var want []string
		for e, err := range v.Below(ctx, "/registry") {
			require.NoError(t, err)
			if odd(e) {
				want = append(want, string(e.Key))
			}
		}
		require.Greater(t, len(want), 1024)
		require.Equal(t, want, keysOf(v.Pick(ctx, "/registry", odd), 0))
		require.Equal(t, want[:700], keysOf(v.Pick(ctx, "/registry", odd), 700))
		require.Empty(t, keysOf(v.Pick(ctx, "/registry", func(*Entry) bool { return false }), 0))

		ctx, cancel := context.WithCancel(ctx)
		cancel()
		for _, err := range v.Pick(ctx, "/registry", odd) {
			require.ErrorIs(t, err, context.Canceled)
		}
	})
}
