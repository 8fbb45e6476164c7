package snapshot

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
)

// Lease is a lease to be granted: its keys go away if it is not renewed for TTL seconds.
type Lease struct {
	ID  int64 // positive
	TTL int64 // seconds, from 1 to 9 000 000 000
}

// entry is what a server stores for the lease (etcd server/storage/schema/lease.go).
func (l Lease) entry() (bolt.Element, error) {
	switch {
	case l.ID <= 0:
		return bolt.Element{}, fmt.Errorf("%w: lease id %d is not positive", errConflict, l.ID)
	case l.TTL <= 0 || l.TTL > maxLeaseTTL:
		return bolt.Element{}, fmt.Errorf("lease %d: a time to live of %d seconds is not one that a server grants", l.ID, l.TTL)
	}
	return bolt.Element{
		Key:   binary.BigEndian.AppendUint64(nil, uint64(l.ID)),
		Value: appendIntField(appendIntField(nil, fieldLeaseID, l.ID), fieldLeaseTTL, l.TTL),
	}, nil
}

// grantEntries returns the entries of leases in the order of the bucket.
func grantEntries(leases []Lease) ([]bolt.Element, error) {
	grants := make([]bolt.Element, len(leases))
	for i, l := range leases {
		var err error
		if grants[i], err = l.entry(); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(grants, func(a, b bolt.Element) int { return bytes.Compare(a.Key, b.Key) })
	for i := 1; i < len(grants); i++ {
		if bytes.Equal(grants[i-1].Key, grants[i].Key) {
			return nil, fmt.Errorf("%w: lease %d is granted twice", errConflict, binary.BigEndian.Uint64(grants[i].Key))
		}
	}
	return grants, nil
}

// merged yields the entries of old and of grants in the order of their keys; both are sorted, and
// no key may be in both.
func merged(old entries, grants []bolt.Element) entries {
	return func(yield func(bolt.Element, error) bool) {
		more := grants
		for el, err := range old {
			for err == nil && len(more) > 0 && bytes.Compare(more[0].Key, el.Key) < 0 {
				if !yield(more[0], nil) {
					return
				}
				more = more[1:]
			}
			if err == nil && len(more) > 0 && bytes.Equal(more[0].Key, el.Key) {
				err = fmt.Errorf("%w: the file has a lease %d already", errConflict, binary.BigEndian.Uint64(el.Key))
			}
			if !yield(el, err) || err != nil {
				return
			}
		}
		bolt.Seq(more...)(yield)
	}
}
