package inspect

import (
	"iter"
	"runtime"
	"sync"

	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot"
)

// aheadSize is the number of items that one goroutine takes at a time.
const aheadSize = 128

// batch is some items of ahead.
type batch[T any] struct {
	items []T
	ready int   // of them, once done is closed
	err   error // a fault of the mapped file
	done  chan struct{}
}

// run runs work on the items.
func (b *batch[T]) run(s *snapshot.Snapshot, work func(*T)) {
	defer close(b.done)
	b.err = s.Guard(func() error {
		for b.ready = range b.items {
			work(&b.items[b.ready])
		}
		b.ready = len(b.items)
		return nil
	})
}

// ahead makes items of the elements of seq and yields them in that order, after work has run on
// each. It runs on all processors, some hundred items ahead of the caller, and must not use what is
// not safe for that. An item is used again for a later one.
func ahead[S, T any](s *snapshot.Snapshot, seq iter.Seq2[S, error], item func(S) T, work func(*T)) iter.Seq2[*T, error] {
	return stream.Of(func(yield func(*T) error) error {
		var running sync.WaitGroup
		defer running.Wait()
		var waiting []*batch[T]
		var spare []T // of a batch that was yielded
		next := &batch[T]{}
		start := func() {
			b := next
			b.ready, b.done = 0, make(chan struct{})
			running.Go(func() { b.run(s, work) })
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
		ended := stream.Each(seq, func(element S) error {
			if next.items = append(next.items, item(element)); len(next.items) < aheadSize {
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
