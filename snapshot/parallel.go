package snapshot

import (
	"context"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// Parallel calls work for 0 to n-1 on all processors, in about that order, until one fails. work
// may read keys and values of records.
func (s *Snapshot) Parallel(ctx context.Context, n int, work func(i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range min(n, runtime.GOMAXPROCS(0)) {
		g.Go(func() error {
			return s.Guard(func() error { // each goroutine catches its own faults of the mapped file
				for i := next.Add(1); i <= int64(n); i = next.Add(1) {
					if err := ctx.Err(); err != nil {
						return err
					}
					if err := work(int(i) - 1); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
	return g.Wait()
}
