package compare

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

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
	for _, id := range slices.SortedFunc(maps.Keys(ids), func(a, b int64) int { return cmp.Compare(uint64(a), uint64(b)) }) {
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
