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

// Ahead makes items of all entries and yields the items in order. work runs on many items in
// parallel before the first of them is yielded: work must not use the view, and the caller must not
// stage changes of later entries.
func Ahead[T any](v *View, all iter.Seq2[*Entry, error], item func(e *Entry) T, work func(*T)) iter.Seq2[*T, error] {
	return stream.Ahead(v.src.Guard, all, func(e *Entry) (T, int) { return item(e), len(e.Value) }, work)
}

// Pick yields the entries of [View.Below] for which want is true. Calls of want are parallel, as in
// [Ahead].
func (v *View) Pick(ctx context.Context, prefix string, want func(e *Entry) bool) iter.Seq2[*Entry, error] {
	type asked struct {
		*Entry
		yes bool
	}
	item := func(e *Entry) asked { return asked{Entry: e} }
	return stream.Of(func(yield func(*Entry) error) error {
		all := Ahead(v, v.Below(ctx, prefix), item, func(a *asked) { a.yes = want(a.Entry) })
		return stream.Each(all, func(a *asked) error {
			if !a.yes {
				return nil
			}
			return yield(a.Entry)
		})
	})
}
