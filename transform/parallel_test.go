package transform

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// inPlan runs fn as a plan that changes nothing.
func inPlan(t *testing.T, fn func(ctx context.Context, v *View)) {
	t.Helper()
	f := input(t)
	_, err := Run(context.Background(), Options{In: f.in, Out: f.out, DryRun: true}, planFunc(func(ctx context.Context, v *View) error {
		fn(ctx, v)
		return nil
	}))
	require.NoError(t, err)
}

// TestParallel: every number is worked on once, whether there are more or fewer of them than
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

// TestParallelFails: an error is returned, and its goroutine takes no more work; a cancelled
// context ends them all.
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
