package transform

import (
	"context"
	"iter"

	"github.com/etcdshift/etcdshift/internal/stream"
)

// Parallel is [snapshot.Snapshot.Parallel] of the input. work may read values of entries, but must
// not use the view.
func (v *View) Parallel(ctx context.Context, n int, work func(i int) error) error {
	return v.src.Parallel(ctx, n, work)
}

// Batches of Pick.
const (
	pickEntries = 1024
	pickBytes   = 4 << 20 // of values
)

// Pick yields the entries of [View.Below] for which want is true, in their order. It asks want
// about many entries at once, in parallel, before it yields one of them: want must not use the
// view, and nothing may be staged for an entry that is still to come.
func (v *View) Pick(ctx context.Context, prefix string, want func(e *Entry) bool) iter.Seq2[*Entry, error] {
	return stream.Of(func(yield func(*Entry) error) error {
		var batch []*Entry
		size := 0
		pick := func() error {
			picked := make([]bool, len(batch))
			err := v.Parallel(ctx, len(batch), func(i int) error {
				picked[i] = want(batch[i])
				return nil
			})
			for i, e := range batch {
				if err == nil && picked[i] {
					err = yield(e)
				}
			}
			batch, size = batch[:0], 0
			return err
		}
		err := stream.Each(v.Below(ctx, prefix), func(e *Entry) error {
			batch = append(batch, e)
			if size += len(e.Value); len(batch) < pickEntries && size < pickBytes {
				return nil
			}
			return pick()
		})
		if err == nil {
			err = pick()
		}
		return err
	})
}
