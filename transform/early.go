package transform

import (
	"context"
	"iter"
	"sync"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
)

// beside is work on the input that goes on beside the plan.
type beside struct {
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// stop ends it; the snapshot may then be closed.
func (b *beside) stop() {
	if b.cancel != nil {
		b.cancel()
	}
	b.running.Wait()
}

// Early is a [View.Pick] that is begun before its entries are needed.
type Early struct {
	view   *View
	prefix string
	want   func(e *Entry) bool
	picked [][]byte // keys, in the order of their entries
	err    error
	done   chan struct{}
}

// PickEarly begins a Pick of the stored entries on another goroutine. want must not use the view,
// and answer the same at any time. The layouts must be known.
func (v *View) PickEarly(ctx context.Context, prefix string, want func(e *Entry) bool) *Early {
	early := &Early{view: v, prefix: prefix, want: want, done: make(chan struct{})}
	if v.encrypter != nil { // values are decrypted one at a time
		close(early.done)
		return early
	}
	ctx, cancel := context.WithCancel(ctx)
	v.beside.stop()
	v.beside.cancel = cancel
	reader := *v.reader // a reader is for one goroutine
	v.beside.running.Go(func() {
		defer close(early.done)
		early.err = early.pick(ctx, &reader)
	})
	return early
}

// pick asks want about all stored entries.
func (e *Early) pick(ctx context.Context, reader *inspect.Reader) error {
	own := keys.Layout(keys.Kubernetes{Prefix: e.prefix})
	want := func(entry *Entry) bool { return entry.Layout() == own && e.want(entry) }
	return stream.Each(e.view.Ask(reader.Live(ctx, []byte(e.prefix+"/")), want), func(a *Asked) error {
		if a.Yes {
			e.picked = append(e.picked, a.Key)
		}
		return nil
	})
}

// All yields what [View.Pick] would.
func (e *Early) All(ctx context.Context) iter.Seq2[*Entry, error] {
	<-e.done
	v := e.view
	if v.encrypter != nil || v.plan.updates > 0 { // whose values differ
		return v.Pick(ctx, e.prefix, e.want)
	}
	return stream.Of(func(yield func(*Entry) error) error {
		if e.err != nil {
			return e.err
		}
		for _, key := range e.picked {
			entry, err := v.Get(ctx, key)
			if err == nil && entry != nil {
				err = yield(entry)
			}
			if err != nil {
				return err
			}
		}
		return stream.Each(v.created(ctx, []byte(e.prefix+"/")), func(entry *Entry) error {
			if entry.Layout() != keys.Layout(keys.Kubernetes{Prefix: e.prefix}) || !e.want(entry) {
				return nil
			}
			return yield(entry)
		})
	})
}
