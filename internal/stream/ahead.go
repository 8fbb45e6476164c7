package stream

import (
	"iter"
	"runtime"
	"sync"
)

// aheadSize is the number of items that one goroutine takes at a time. The first takes one, the
// next twice as many: the reader gets the first items soon, however long the work takes.
const aheadSize = 128

// aheadBytes is how many bytes of values one goroutine takes at a time: some may be copies in
// memory, and what is decoded takes several times as much.
const aheadBytes = 1 << 20

// batch is some items of Ahead.
type batch[T any] struct {
	items []T
	ready int   // of them, once done is closed
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

// Ahead makes items of the elements of seq and yields them in that order, after work has run on
// each. It runs on all processors, some hundred items ahead of the caller, and must not use what is
// not safe for that. item tells the bytes of the value too: of large ones fewer are ahead. An item
// is used again for a later one. Each batch runs under guard, such as snapshot.Snapshot.Guard.
func Ahead[S, T any](
	guard func(func() error) error, seq iter.Seq2[S, error], item func(S) (T, int), work func(*T),
) iter.Seq2[*T, error] {
	return Of(func(yield func(*T) error) error {
		var running sync.WaitGroup
		defer running.Wait()
		var waiting []*batch[T]
		var spare []T // of a batch that was yielded
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
