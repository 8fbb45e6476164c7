package compare

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/etcdshift/etcdshift/internal/differ"
	"github.com/etcdshift/etcdshift/snapshot"
)

// leaseField is the path of a record's lease, which is no field of the object.
const leaseField = "(lease)"

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
	if err != nil {
		return nil, err
	}
	ids := maps.Clone(before)
	maps.Copy(ids, after)
	for _, id := range slices.SortedFunc(maps.Keys(ids), func(a, b int64) int { return cmp.Compare(uint64(a), uint64(b)) }) {
		was, had := before[id]
		is, has := after[id]
		l := Lease{Op: Changed, ID: leaseID(id), OldTTL: was, NewTTL: is}
		switch {
		case !had:
			l.Op = Added
		case !has:
			l.Op = Removed
		case was == is:
			continue
		}
		out = append(out, l)
	}
	return out, nil
}

// leaseID returns an id as etcdctl prints it.
func leaseID(id int64) string { return fmt.Sprintf("%x", uint64(id)) }

// leaseDiffers reports whether two records have different leases, or one with another time to live.
func (c *comparison) leaseDiffers(old, new *snapshot.Record) bool {
	return old.Lease != new.Lease || c.old.leases[old.Lease] != c.new.leases[new.Lease]
}

// leaseChange is the change of the lease of a record.
func (c *comparison) leaseChange(old, new *snapshot.Record) differ.Change {
	out := differ.Change{Path: differ.Path{{Field: leaseField}}, Op: differ.Changed}
	if old.Lease == 0 {
		out.Op = differ.Added
	} else {
		out.Old = describeLease(old.Lease, c.old.leases)
	}
	if new.Lease == 0 {
		out.Op = differ.Removed
	} else {
		out.New = describeLease(new.Lease, c.new.leases)
	}
	return out
}

// describeLease names a lease and its time to live.
func describeLease(id int64, leases map[int64]int64) string {
	if ttl, known := leases[id]; known {
		return fmt.Sprintf("%s (%d s)", leaseID(id), ttl)
	}
	return leaseID(id) + " (not granted)"
}
