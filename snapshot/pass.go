package snapshot

import (
	"context"
	"sync"
)

// pass is work on its own goroutine. It begins with start, wait or stop.
type pass[T any] struct {
	start  func()
	done   chan struct{}
	cancel context.CancelFunc
	result T
	err    error
}

func newPass[T any](fn func(ctx context.Context) (T, error)) *pass[T] {
	ctx, cancel := context.WithCancel(context.Background())
	p := &pass[T]{done: make(chan struct{}), cancel: cancel}
	p.start = sync.OnceFunc(func() {
		go func() {
			defer close(p.done)
			p.result, p.err = fn(ctx)
		}()
	})
	return p
}

// stop ends the work.
func (p *pass[T]) stop() {
	p.cancel()
	p.start()
	<-p.done
}

func (p *pass[T]) wait(ctx context.Context) (none T, err error) {
	p.start()
	select {
	case <-p.done:
		return p.result, p.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}
