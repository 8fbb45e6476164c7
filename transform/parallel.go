package transform

import (
	"context"
	"iter"

	"github.com/etcdshift/etcdshift/internal/stream"
)

// Parallel is [snapshot.Snapshot.Parallel] of the input. work may read values of entries, but must
// not use the view.
func (v *overlay) Parallel(ctx context.Context, n int, work func(i int) error) error {
	return v.src.Parallel(ctx, n, work)
}

// Ahead makes items of all entries and yields them in order. It runs work on many at once, in
// parallel, before it yields one of them: work must not use the view, and nothing may be staged for
// an entry that is still to come.
func Ahead[T any](v *View, all iter.Seq2[*Entry, error], item func(e *Entry) T, work func(*T)) iter.Seq2[*T, error] {
	return stream.Ahead(v.src.Guard, all, func(e *Entry) (T, int) { return item(e), len(e.Value) }, work)
}

// Asked is an entry with the answer to a question about it.
type Asked struct {
	*Entry
	Yes bool
}

// Ask asks about all entries as [Ahead] does.
func (v *overlay) Ask(all iter.Seq2[*Entry, error], ask func(e *Entry) bool) iter.Seq2[*Asked, error] {
	item := func(e *Entry) (Asked, int) { return Asked{Entry: e}, len(e.Value) }
	return stream.Ahead(v.src.Guard, all, item, func(a *Asked) { a.Yes = ask(a.Entry) })
}

// Pick yields the entries of [View.Below] for which want is true, asked as by [View.Ask].
func (v *overlay) Pick(ctx context.Context, prefix string, want func(e *Entry) bool) iter.Seq2[*Entry, error] {
	return stream.Of(func(yield func(*Entry) error) error {
		return stream.Each(v.Ask(v.Below(ctx, prefix), want), func(a *Asked) error {
			if !a.Yes {
				return nil
			}
			return yield(a.Entry)
		})
	})
}
