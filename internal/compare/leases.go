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

// leaseField stands for the lease of a record, which is no field of the object in it.
const leaseField = "(lease)"

// Lease is what became of a lease of etcd between two snapshots.
type Lease struct {
	Op     Op     `json:"op"`               // Added, Removed or, of another time to live, Changed
	ID     string `json:"lease"`            // in hexadecimal
	OldTTL int64  `json:"oldTTL,omitempty"` // seconds
	NewTTL int64  `json:"newTTL,omitempty"`
}

// Leases compares the leases that two snapshots have granted, by their ids; records that hold none are in Snapshots. Servers grant new ones
// all the time: it is all noise.
func Leases(ctx context.Context, old, new *snapshot.Snapshot) (out []Lease, err error) {
	before, err := old.Leases(ctx)
	if err != nil {
		return nil, err
	}
	after, err := new.Leases(ctx)
	if err != nil {
		return nil, err
	}
	ids := map[int64]bool{}
	for _, leases := range []map[int64]int64{before, after} {
		for id := range leases {
			ids[id] = true
		}
	}
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

// leaseID is an id as etcdctl prints it.
func leaseID(id int64) string { return fmt.Sprintf("%x", uint64(id)) }

// leaseDiffers tells whether two records of a key hold different leases, or a lease that has another time to live now.
func (c *comparison) leaseDiffers(old, new *snapshot.Record) bool {
	return old.Lease != new.Lease || c.leasesOld[old.Lease] != c.leasesNew[new.Lease]
}

// leaseChange is the change of the lease of a record.
func (c *comparison) leaseChange(old, new *snapshot.Record) differ.Change {
	out := differ.Change{Path: differ.Path{{Field: leaseField}}, Op: differ.Changed}
	if old.Lease == 0 {
		out.Op = differ.Added
	} else {
		out.Old = describeLease(old.Lease, c.leasesOld)
	}
	if new.Lease == 0 {
		out.Op = differ.Removed
	} else {
		out.New = describeLease(new.Lease, c.leasesNew)
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
