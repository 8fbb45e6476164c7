package transform

import (
	"context"
	"iter"
	"sync"

	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
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

// Visit calls look with each entry of [View.Live], on several goroutines at once, and yields the
// results with true in the order of Live. The next entry is read into the same Entry unless look
// returned true. look must not use the view, and the caller must not stage changes of later
// entries.
func Visit[T any](ctx context.Context, v *View, prefix []byte, look func(e *Entry) (T, bool)) iter.Seq2[T, error] {
	spare := sync.Pool{New: func() any { return new(Entry) }}
	visit := func(rec *snapshot.Record, found []T) ([]T, error) {
		e := spare.Get().(*Entry)
		if there, err := v.fill(ctx, rec, e); err != nil {
			return found, err
		} else if there {
			if one, yes := look(e); yes {
				return append(found, one), nil
			}
		}
		spare.Put(e)
		return found, nil
	}
	return stream.Of(func(yield func(T) error) error {
		if _, err := v.Layouts(ctx); err != nil { // parse the keys
			return err
		}
		if err := stream.Each(snapshot.Visit(ctx, v.src, prefix, visit), yield); err != nil {
			return err
		}
		return stream.Each(v.created(ctx, prefix), func(e *Entry) error {
			if one, yes := look(e); yes {
				return yield(one)
			}
			return nil
		})
	})
}

// Pick yields the entries of [View.Below] for which want is true. Calls of want are parallel, as in
// [Visit].
func (v *View) Pick(ctx context.Context, prefix string, want func(e *Entry) bool) iter.Seq2[*Entry, error] {
	below := keys.Layout(keys.Kubernetes{Prefix: prefix})
	return Visit(ctx, v, []byte(prefix+"/"), func(e *Entry) (*Entry, bool) {
		return e, e.Layout() == below && want(e)
	})
}
