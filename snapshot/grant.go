package snapshot

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
)

// Lease is a lease to be granted: its keys go away if it is not renewed for TTL seconds.
type Lease struct {
	ID  int64 // positive
	TTL int64 // seconds, from 1 to 9 000 000 000
}

// grantEntries returns the entries of leases as a server stores them, in the order of the bucket
// (etcd server/storage/schema/lease.go).
func grantEntries(leases []Lease) ([]bolt.Element, error) {
	leases = slices.SortedFunc(slices.Values(leases), func(a, b Lease) int { return cmp.Compare(a.ID, b.ID) })
	grants := make([]bolt.Element, len(leases))
	for i, l := range leases {
		switch {
		case l.ID <= 0:
			return nil, fmt.Errorf("%w: lease id %d is not positive", errConflict, l.ID)
		case l.TTL <= 0 || l.TTL > maxLeaseTTL:
			return nil, fmt.Errorf("lease %d: a time to live of %d seconds is not one that a server grants", l.ID, l.TTL)
		case i > 0 && l.ID == leases[i-1].ID:
			return nil, fmt.Errorf("%w: lease %d is granted twice", errConflict, l.ID)
		}
		grants[i] = bolt.Element{
			Key:   binary.BigEndian.AppendUint64(nil, uint64(l.ID)),
			Value: appendIntField(appendIntField(nil, fieldLeaseID, l.ID), fieldLeaseTTL, l.TTL),
		}
	}
	return grants, nil
}

// merged yields the entries of old and of grants in the order of their keys; both are sorted, and
// no key may be in both.
func merged(old entries, grants []bolt.Element) entries {
	return stream.Of(func(yield func(bolt.Element) error) error {
		more := grants
		err := stream.Each(old, func(el bolt.Element) error {
			for len(more) > 0 && bytes.Compare(more[0].Key, el.Key) < 0 {
				if err := yield(more[0]); err != nil {
					return err
				}
				more = more[1:]
			}
			if len(more) > 0 && bytes.Equal(more[0].Key, el.Key) {
				return fmt.Errorf("%w: the file has a lease %d already", errConflict, binary.BigEndian.Uint64(el.Key))
			}
			return yield(el)
		})
		if err != nil {
			return err
		}
		return stream.Each(bolt.Seq(more...), yield)
	})
}
