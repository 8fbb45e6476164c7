package compare

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot"
)

// Lease is a lease of etcd that differs.
type Lease struct {
	Op     Op     `json:"op"`               // Added, Removed or, of another time to live, Changed
	ID     string `json:"lease"`            // in hexadecimal
	OldTTL int64  `json:"oldTTL,omitempty"` // seconds
	NewTTL int64  `json:"newTTL,omitempty"`
}

// Leases compares the granted leases by their ids. Servers grant new ones all the time: it is all
// noise. Snapshots compares the leases of records.
func Leases(ctx context.Context, old, new *snapshot.Snapshot) (out []Lease, err error) {
	before, err := old.Leases(ctx)
	if err != nil {
		return nil, err
	}
	after, err := new.Leases(ctx)
	return leasesOf(before, after), err
}

// leasesOf compares leases, seconds to live by id.
func leasesOf(before, after map[int64]int64) (out []Lease) {
	ids := maps.Clone(before)
	maps.Copy(ids, after)
	for _, id := range slices.SortedFunc(maps.Keys(ids),
		func(a, b int64) int { return cmp.Compare(uint64(a), uint64(b)) }) {
		was, had := before[id]
		is, has := after[id]
		if had != has || was != is {
			out = append(out, Lease{Op: opOf(had, has), ID: leaseID(id), OldTTL: was, NewTTL: is})
		}
	}
	return out
}

// leaseID returns an id as etcdctl prints it, "" for none.
func leaseID(id int64) string {
	if id == 0 {
		return ""
	}
	return fmt.Sprintf("%x", uint64(id))
}

// leaseDiffers reports whether two records have different leases, or one with another time to live.
func (c *comparison) leaseDiffers(old, new *snapshot.Record) bool {
	return old.Lease != new.Lease || c.sides[0].leases[old.Lease] != c.sides[1].leases[new.Lease]
}

// leaseChange is the change of the lease of a record.
func (c *comparison) leaseChange(old, new *snapshot.Record) Change {
	return Change{
		Path: Path{{Field: "(lease)"}}, // no field of the object
		Op:   opOf(old.Lease != 0, new.Lease != 0),
		Old:  c.sides[0].describeLease(old.Lease), New: c.sides[1].describeLease(new.Lease),
	}
}

// describeLease names a lease and its time to live, nil for none.
func (s side) describeLease(id int64) any {
	if id == 0 {
		return nil
	}
	if ttl, known := s.leases[id]; known {
		return fmt.Sprintf("%s (%d s)", leaseID(id), ttl)
	}
	return leaseID(id) + " (not granted)"
}

// Staged yields what changes of a snapshot make different, in their order: as Snapshots would
// compare the snapshot with a changed one, but for revisions of changed records, which are 0. A
// change is read before the next one. leases are those that are granted besides.
func Staged(ctx context.Context, in *inspect.Reader, changes iter.Seq2[snapshot.Change, error],
	granted []snapshot.Lease, o Options,
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
func leasesWith(
	ctx context.Context, in *inspect.Reader, granted []snapshot.Lease,
) (before, after map[int64]int64, err error) {
	if before, err = in.Snapshot().Leases(ctx); err != nil {
		return nil, nil, err
	}
	after = maps.Clone(before)
	for _, l := range granted {
		after[l.ID] = l.TTL
	}
	return before, after, nil
}
