package snapshot

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"

	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
)

// entries are entries of a bucket, in the order of their keys.
type entries = iter.Seq2[bolt.Element, error]

// inTurn yields the entries of each part, up to an error.
func inTurn(parts ...entries) entries {
	return stream.Of(func(yield func(bolt.Element) error) error {
		for _, part := range parts {
			if err := stream.Each(part, yield); err != nil {
				return err
			}
		}
		return nil
	})
}

// only yields the entries that want chooses.
func only(from entries, want func(bolt.Element) bool) entries {
	return func(yield func(bolt.Element, error) bool) {
		for el, err := range from {
			if (err != nil || want(el)) && !yield(el, err) {
				return
			}
		}
	}
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
			return nil, fmt.Errorf("lease %d: a time to live of %d seconds is not one that a server grants",
				l.ID, l.TTL)
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

// compactEntries are the compact revisions of a store that is compacted at rev.
func compactEntries(rev int64) []bolt.Element {
	value := appendRevisionKey(nil, Revision{Main: rev}, false)
	return []bolt.Element{{Key: []byte(finishedCompact), Value: value}, {Key: []byte(scheduledCompact), Value: value}}
}
