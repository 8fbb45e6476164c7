package snapshot

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
)

// Verify yields what is wrong with an open file, nothing if a restore of it will serve exactly what
// it holds: the digest, every reachable page, the free list, the order of every bucket, the way to
// each leaf, each entry that a server decodes when it starts, and each record's numbers against
// those of the record before it. etcdutl checks only the digest, and a server trusts the rest (or
// dies of it).
//
// Each error wraps [ErrDigest] or [ErrDamaged], or says that the file could not be read to the end,
// which ends the sequence. Damage that hides what lies behind it ends the sequence too.
func Verify(ctx context.Context, s *Snapshot) iter.Seq[error] {
	return func(yield func(error) bool) {
		c := checker{s: s, yield: yield}
		for _, check := range []func(context.Context) error{c.buckets, c.records, c.digest} {
			c.found(s.guard(func() error { return check(ctx) }))
			if c.stopped || ctx.Err() != nil {
				return
			}
		}
		c.found(s.FreeList())
	}
}

// Odd yields what etcd never writes, and a restore and a server accept; Verify passes over it: odd
// numbers in the meta bucket, odd leases, members that cannot be read, pages that are neither in
// use nor free. What Verify finds ends it early.
func Odd(ctx context.Context, s *Snapshot) iter.Seq[error] {
	return func(yield func(error) bool) {
		c := checker{s: s, yield: yield, odd: true}
		if s.db.FreelistErr == nil && s.db.Lost > 0 {
			c.found(fmt.Errorf("%w: %w: %d pages are neither in use nor free", ErrFreeList, errOdd, s.db.Lost))
		}
		for i := range s.db.Buckets {
			err := s.guard(func() error { return c.entries(ctx, &s.db.Buckets[i]) })
			if err != nil || c.stopped { // Verify tells
				return
			}
		}
	}
}

// checker yields what is wrong with s, or what is odd.
type checker struct {
	s       *Snapshot
	yield   func(error) bool
	odd     bool
	stopped bool
}

func (c *checker) found(err error) {
	if err != nil && !c.stopped && errors.Is(err, errOdd) == c.odd {
		c.stopped = !c.yield(c.s.wrap(err))
	}
}

func (c *checker) digest(ctx context.Context) error {
	_, err := c.s.digest.wait(ctx)
	return err
}

// entries reads bucket b. What keeps it from being read is returned.
func (c *checker) entries(ctx context.Context, b *bolt.Bucket) error {
	for el, err := range c.s.db.Entries(ctx, b) {
		if err != nil || c.stopped {
			return err
		}
		c.found(checkEntry(b.Name, el.Key, el.Value))
	}
	return nil
}

// buckets reads every bucket but the records themselves. One damaged bucket does not keep the
// others from being read.
func (c *checker) buckets(ctx context.Context) error {
	db := c.s.db
	if db.Bucket(metaBucket) == nil {
		c.found(fmt.Errorf("%w: there is no meta bucket, without which etcdutl cannot restore", ErrDamaged))
	}
	if err := db.CheckBranches(ctx, db.Root); err != nil {
		c.found(fmt.Errorf("root bucket: %w", err))
	}
	for i := range db.Buckets {
		b := &db.Buckets[i]
		err := db.CheckBranches(ctx, b.Root)
		if err == nil && b.Name != "key" {
			err = c.entries(ctx, b)
		}
		switch {
		case err == nil:
		case errors.Is(err, ErrDamaged):
			c.found(fmt.Errorf("bucket %q: %w", b.Name, err))
		default:
			return err
		}
		if c.stopped {
			break
		}
	}
	return nil
}

// records scans the key bucket with an index of its own and compares each record with the one
// before it of its key.
func (c *checker) records(ctx context.Context) error {
	x := newIndex(c.s)
	x.seen = func(before, rec *Record) { c.found(checkRecord(before, rec)) }
	if err := x.fill(ctx); err != nil {
		return err
	}
	return x.room()
}

// Sound says why Write would refuse to change s (ErrDamaged); nil if it would not. It reads every
// record's numbers and the small buckets, and leaves the digest to Digest. What is written must be
// found sound by Verify, so damage of the input is refused, not passed on.
func (s *Snapshot) Sound(ctx context.Context) error {
	x, err := s.index(ctx)
	if err != nil {
		return err
	}
	if x.unsound != nil {
		return s.wrap(x.unsound)
	}
	var first error
	c := checker{s: s, yield: func(err error) bool {
		first = err
		return false
	}}
	if err := s.read(func() error { return c.buckets(ctx) }); err != nil {
		return err
	}
	return first
}
