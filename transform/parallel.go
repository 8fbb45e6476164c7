package transform

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
)

// Parallel calls work for 0 to n-1 on all processors, and returns the errors of all when they are
// done. work may read values of entries, but must not use the view.
func (v *View) Parallel(ctx context.Context, n int, work func(i int) error) error {
	workers := min(n, runtime.GOMAXPROCS(0))
	errs := make([]error, workers)
	var next atomic.Int64
	var done sync.WaitGroup
	for w := range workers {
		done.Go(func() {
			errs[w] = v.src.Guard(func() error { // faults of the mapped file are caught by the goroutine that meets them
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
	done.Wait()
	return errors.Join(errs...)
}
