package transform

import (
	"context"
	"runtime"

	"golang.org/x/sync/errgroup"
)

// Parallel calls work for 0 to n-1 on all processors, in about that order, until one fails. work
// may read values of entries, but must not use the view.
func (v *View) Parallel(ctx context.Context, n int, work func(i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range n {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return v.src.Guard(func() error { return work(i) }) // each goroutine catches its own faults of the mapped file
		})
	}
	return g.Wait()
}
