package compare

import (
	"context"
	"iter"
	"maps"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot"
)

// Staged yields what changes of a snapshot make different, in their order: as Snapshots would
// compare the snapshot with a changed one, but for revisions of changed records, which are 0. A
// change is read before the next one. leases are those that are granted besides.
func Staged(ctx context.Context, in *inspect.Reader, changes iter.Seq2[snapshot.Change, error], granted []snapshot.Lease, o Options,
) iter.Seq2[*Object, error] {
	return stream.Of(func(yield func(*Object) error) error {
		c := comparison{sides: [2]side{{Reader: in}, {Reader: in}}, options: o, hide: o.hiding(ctx, in)}
		before, after, err := leasesWith(ctx, in, granted)
		if err != nil {
			return err
		}
		for i := range c.sides {
			if c.sides[i].layouts, err = in.Layouts(ctx); err != nil {
				return err
			}
		}
		c.sides[0].leases, c.sides[1].leases = before, after
		return stream.Each(changes, func(change snapshot.Change) error {
			object, err := c.staged(ctx, change)
			if err == nil && object != nil {
				err = yield(object)
			}
			return err
		})
	})
}

// staged compares the record of a key with its change. It returns nil where nothing differs.
func (c *comparison) staged(ctx context.Context, change snapshot.Change) (*Object, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	old, err := c.sides[0].Snapshot().Get(ctx, change.Key)
	if err != nil {
		return nil, err
	}
	var new *snapshot.Record
	if !change.Delete {
		new = &snapshot.Record{Key: change.Key, Value: change.Value, Lease: change.Lease}
	}
	if old != nil && new != nil && c.equal(old, new) {
		return nil, nil
	}
	return c.object(ctx, change.Key, [2]*snapshot.Record{old, new})
}

// Granted are leases granted besides those of a snapshot, as Leases lists them.
func Granted(ctx context.Context, in *inspect.Reader, granted []snapshot.Lease) ([]Lease, error) {
	before, after, err := leasesWith(ctx, in, granted)
	return leasesOf(before, after), err
}

// leasesWith returns leases, seconds to live by id: those of a snapshot, and with granted ones.
func leasesWith(ctx context.Context, in *inspect.Reader, granted []snapshot.Lease) (before, after map[int64]int64, err error) {
	if before, err = in.Snapshot().Leases(ctx); err != nil {
		return nil, nil, err
	}
	after = maps.Clone(before)
	for _, l := range granted {
		after[l.ID] = l.TTL
	}
	return before, after, nil
}
