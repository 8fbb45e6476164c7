package snapshot

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Lease is a lease to be granted: its keys go away when it has not been renewed for TTL seconds.
type Lease struct {
	ID  int64 // positive
	TTL int64 // seconds, from 1 to 9 000 000 000
}

const (
	leaseBucket = "lease"
	// maxLeaseTTL is the most that a server grants, in seconds (etcd server/lease/lessor.go, MaxLeaseTTL).
	maxLeaseTTL = 9_000_000_000

	// Field numbers of leasepb.Lease (etcd server/lease/leasepb/lease.proto). Its third, RemainingTTL, is left out by a grant.
	fieldLeaseID  = 1
	fieldLeaseTTL = 2
)

// entry is what a server stores for the lease (etcd server/storage/schema/lease.go).
func (l Lease) entry() (element, error) {
	switch {
	case l.ID <= 0:
		return element{}, fmt.Errorf("%w: lease id %d is not positive", ErrConflict, l.ID)
	case l.TTL <= 0 || l.TTL > maxLeaseTTL:
		return element{}, fmt.Errorf("lease %d: a time to live of %d seconds is not one that a server grants", l.ID, l.TTL)
	}
	return element{
		key:   binary.BigEndian.AppendUint64(nil, uint64(l.ID)),
		value: appendIntField(appendIntField(nil, fieldLeaseID, l.ID), fieldLeaseTTL, l.TTL),
	}, nil
}

// grantEntries returns the entries of leases in the order of the bucket.
func grantEntries(leases []Lease) ([]element, error) {
	grants := make([]element, len(leases))
	for i, l := range leases {
		var err error
		if grants[i], err = l.entry(); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(grants, func(a, b element) int { return bytes.Compare(a.key, b.key) })
	for i := 1; i < len(grants); i++ {
		if bytes.Equal(grants[i-1].key, grants[i].key) {
			return nil, fmt.Errorf("%w: lease %d is granted twice", ErrConflict, binary.BigEndian.Uint64(grants[i].key))
		}
	}
	return grants, nil
}

// leaseSource is the lease bucket with grants between what it has; s may have none.
func (s *Snapshot) leaseSource(ctx context.Context, grants []element) bucketSource {
	src := bucketSource{name: leaseBucket}
	old := s.bucket(leaseBucket)
	if old == nil {
		old = &bucket{name: leaseBucket, inline: page(make([]byte, pageHeaderSize))}
	}
	src.sequence = old.sequence
	src.entries = func() iter.Seq2[element, error] { return merged(s.elements(ctx, old), grants) }
	return src
}

// merged yields the elements of old and of more in the order of their keys; both are sorted, and no key may be in both.
func merged(old iter.Seq2[element, error], more []element) iter.Seq2[element, error] {
	return func(yield func(element, error) bool) {
		for el, err := range old {
			for err == nil && len(more) > 0 && bytes.Compare(more[0].key, el.key) < 0 {
				if !yield(more[0], nil) {
					return
				}
				more = more[1:]
			}
			if err == nil && len(more) > 0 && bytes.Equal(more[0].key, el.key) {
				err = fmt.Errorf("%w: the file has a lease %d already", ErrConflict, binary.BigEndian.Uint64(el.key))
			}
			if !yield(el, err) || err != nil {
				return
			}
		}
		for _, el := range more {
			if !yield(el, nil) {
				return
			}
		}
	}
}

// withLeaseBucket returns the buckets of s, and an empty one for leases where grants need it and s has none.
func (s *Snapshot) withLeaseBucket(grants []element) []bucket {
	if len(grants) == 0 || s.bucket(leaseBucket) != nil {
		return s.buckets
	}
	at, _ := slices.BinarySearchFunc(s.buckets, leaseBucket, func(b bucket, name string) int { return strings.Compare(b.name, name) })
	return slices.Insert(slices.Clone(s.buckets), at, bucket{name: leaseBucket})
}
