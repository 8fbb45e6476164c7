package stream

import (
	"iter"
	"runtime"
	"sync"
)

// aheadSize is the maximum number of items in a batch. The first batch has one item and each next
// batch twice as many: the reader gets the first items soon, regardless of the work per item.
const aheadSize = 128

// aheadBytes limits the value bytes in a batch: values may be copies in memory, and decoded values
// are several times as large.
const aheadBytes = 1 << 20

// batch is a group of items processed by one goroutine.
type batch[T any] struct {
	items []T
	ready int   // number of finished items, valid after done is closed
	err   error // of guard
	done  chan struct{}
}

// run runs work on the items.
func (b *batch[T]) run(guard func(func() error) error, work func(*T)) {
	defer close(b.done)
	b.err = guard(func() error {
		for b.ready = range b.items {
			work(&b.items[b.ready])
		}
		b.ready = len(b.items)
		return nil
	})
}

// Ahead converts the elements of seq to items and yields them in order, after work has run on each.
// work runs concurrently on all processors, some hundred items ahead of the caller. item also
// returns the size of the value in bytes: fewer large values are processed ahead. Items are reused
// for later elements. Each batch runs under guard, such as snapshot.Snapshot.Guard.
func Ahead[S, T any](
	guard func(func() error) error, seq iter.Seq2[S, error], item func(S) (T, int), work func(*T),
) iter.Seq2[*T, error] {
	return Of(func(yield func(*T) error) error {
		var running sync.WaitGroup
		defer running.Wait()
		var waiting []*batch[T]
		var spare []T // from a yielded batch
		next, size, bytes := &batch[T]{}, 1, 0
		start := func() {
			b := next
			b.ready, b.done = 0, make(chan struct{})
			size, bytes = min(2*size, aheadSize), 0
			running.Go(func() { b.run(guard, work) })
			waiting, next = append(waiting, b), &batch[T]{items: spare[:0]}
			spare = nil
		}
		finish := func() error {
			b := waiting[0]
			waiting = waiting[1:]
			<-b.done
			for i := range b.ready {
				if err := yield(&b.items[i]); err != nil {
					return err
				}
			}
			spare = b.items
			return b.err
		}
		var stopped error
		ended := Each(seq, func(element S) error {
			one, n := item(element)
			next.items = append(next.items, one)
			if bytes += n; len(next.items) < size && bytes < aheadBytes {
				return nil
			}
			if start(); len(waiting) > 2*runtime.GOMAXPROCS(0) {
				stopped = finish()
			}
			return stopped
		})
		if stopped != nil {
			return stopped
		}
		for start(); len(waiting) > 0; {
			if err := finish(); err != nil {
				return err
			}
		}
		return ended
	})
}
