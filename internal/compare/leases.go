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

// Lease is a changed lease of etcd.
type Lease struct {
	Op     Op     `json:"op"`               // Added, Removed or, for another time to live, Changed
	ID     string `json:"lease"`            // in hexadecimal
	OldTTL int64  `json:"oldTTL,omitempty"` // seconds
	NewTTL int64  `json:"newTTL,omitempty"`
}

// Leases compares the granted leases by ID. All differences are noise: servers grant new leases all
// the time. Snapshots compares the leases of records.
func Leases(ctx context.Context, old, new *snapshot.Snapshot) (out []Lease, err error) {
	before, err := old.Leases(ctx)
	if err != nil {
		return nil, err
	}
	after, err := new.Leases(ctx)
	return leasesOf(before, after), err
}

// leasesOf compares leases, given as seconds to live by ID.
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

// leaseID returns an ID as etcdctl prints it, "" for none.
func leaseID(id int64) string {
	if id == 0 {
		return ""
	}
	return fmt.Sprintf("%x", uint64(id))
}

// leaseDiffers reports whether two records have different leases, or a different time to live.
func (c *comparison) leaseDiffers(old, new *snapshot.Record) bool {
	return old.Lease != new.Lease || c.sides[0].leases[old.Lease] != c.sides[1].leases[new.Lease]
}

// leaseChange returns the change of a record's lease.
func (c *comparison) leaseChange(old, new *snapshot.Record) Change {
	return Change{
		Path: Path{{Field: "(lease)"}}, // not a field of the object
		Op:   opOf(old.Lease != 0, new.Lease != 0),
		Old:  c.sides[0].describeLease(old.Lease), New: c.sides[1].describeLease(new.Lease),
	}
}

// describeLease returns the ID of a lease and its time to live; nil if id is 0.
func (s side) describeLease(id int64) any {
	if id == 0 {
		return nil
	}
	if ttl, known := s.leases[id]; known {
		return fmt.Sprintf("%s (%d s)", leaseID(id), ttl)
	}
	return leaseID(id) + " (not granted)"
}

// Staged yields the differences between a snapshot and its changed form, in order: the result of
// Snapshots on the changed snapshot, but with revision 0 for changed records. Each change is read
// before the next one. granted holds additional leases.
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

// staged compares the record of a key with its change. It returns nil if nothing differs.
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

// Granted returns the leases granted in addition to those of a snapshot, in the form of Leases.
func Granted(ctx context.Context, in *inspect.Reader, granted []snapshot.Lease) ([]Lease, error) {
	before, after, err := leasesWith(ctx, in, granted)
	return leasesOf(before, after), err
}

// leasesWith returns leases, as seconds to live by ID: those of a snapshot, and with granted ones.
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
