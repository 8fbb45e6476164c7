package transform

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
)

// Parallel calls work for 0 to n-1, on as many goroutines as there are processors, and returns when all are done, with the
// errors of all. work may read values of entries, but must not use the view.
func (v *View) Parallel(ctx context.Context, n int, work func(i int) error) error {
	workers := min(n, runtime.GOMAXPROCS(0))
	errs := make([]error, workers)
	var next atomic.Int64
	var done sync.WaitGroup
	for w := range workers {
		done.Go(func() {
			errs[w] = v.src.Guard(func() error { // faults of the mapped file are caught on the goroutine that meets them
				for {
					i := int(next.Add(1)) - 1
					if i >= n {
						return nil
					}
					if err := ctx.Err(); err != nil {
						return err
					}
					if err := work(i); err != nil {
						return err
					}
				}
			})
		})
	}
	done.Wait()
	return errors.Join(errs...)
}
