package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

// Verify yields the errors of an open file, none if a restore will serve exactly its content.
// Verify checks the digest, every reachable page, the free list, the order of every bucket, the
// branches to each leaf, each entry that a server decodes at the start, and the numbers of each
// record against the previous record. etcdutl checks only the digest, and a server trusts the rest.
//
// Each error wraps [ErrDigest] or [ErrDamaged]; [ClassOf] returns the effect on a server. A failed
// read, or damage that hides the rest, ends Verify.
func Verify(ctx context.Context, s *Snapshot) iter.Seq[error] {
	return func(yield func(error) bool) {
		c := checker{s: s, yield: yield}
		digest := func(ctx context.Context) error {
			_, err := s.digest.wait(ctx)
			return err
		}
		for _, check := range []func(context.Context) error{c.buckets, c.records, digest} {
			c.found(s.guard(func() error { return check(ctx) }))
			if c.stopped || ctx.Err() != nil {
				return
			}
		}
		c.found(s.FreeList())
	}
}

// Odd yields oddities that a restore, a server and Verify accept: odd numbers in the meta bucket,
// odd leases, unreadable members, alarms, deletions of absent keys, lost pages, no live key, a
// version with which only a newer etcd starts. An error of Verify in these buckets ends Odd.
func Odd(ctx context.Context, s *Snapshot) iter.Seq[error] {
	return func(yield func(error) bool) {
		c := checker{s: s, yield: yield, odd: true}
		if s.db.FreelistErr == nil && s.db.Lost > 0 {
			c.found(fmt.Errorf("%w: %w: %d pages are neither in use nor free", ErrFreeList, mvcc.ErrOdd, s.db.Lost))
		}
		for _, name := range mvcc.Buckets() {
			if s.db.Bucket(name) == nil && name != mvcc.MetaBucket {
				c.found(fmt.Errorf("bucket %q: %w: it is not there, and a server makes it", name, mvcc.ErrOdd))
			}
		}
		for i := range s.db.Buckets {
			if s.db.Buckets[i].Name == "key" {
				continue
			}
			err := s.guard(func() error { return c.entries(ctx, &s.db.Buckets[i]) })
			if err != nil || c.stopped { // Verify reports the error
				return
			}
		}
		_ = s.guard(func() error { return c.records(ctx) })
		if x, err := s.index(ctx); err == nil && x.alive == 0 {
			c.found(fmt.Errorf("%w: no key is live: a cluster restored from the file is empty", mvcc.ErrOdd))
		}
	}
}

// checker yields the errors of s, or the oddities.
type checker struct {
	s       *Snapshot
	yield   func(error) bool
	odd     bool
	stopped bool
}

func (c *checker) found(err error) {
	if err != nil && !c.stopped && errors.Is(err, mvcc.ErrOdd) == c.odd {
		c.stopped = !c.yield(c.s.wrap(err))
	}
}

// entries checks the entries of bucket b. A read error is returned.
func (c *checker) entries(ctx context.Context, b *bolt.Bucket) error {
	for el, err := range c.s.db.Entries(ctx, b) {
		if err != nil || c.stopped {
			return err
		}
		c.found(mvcc.CheckEntry(b.Name, el.Key, el.Value))
	}
	return nil
}

// buckets checks every bucket except the records themselves, and continues after a damaged bucket.
func (c *checker) buckets(ctx context.Context) error {
	db := c.s.db
	if db.Bucket(mvcc.MetaBucket) == nil {
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
		if errors.Is(err, ErrDamaged) {
			c.found(fmt.Errorf("bucket %q: %w", b.Name, err))
			err = nil
		}
		if err != nil || c.stopped {
			return err
		}
	}
	return nil
}

// records compares each record with the previous record of its key. The scan for the index tells
// whether errors exist; only then another scan finds all of them.
func (c *checker) records(ctx context.Context) error {
	if x, err := c.s.index(ctx); err == nil && (c.odd && !x.odd || !c.odd && x.unsound == nil) {
		return nil
	}
	x := newIndex(&c.s.records)
	x.seen = func(before, rec *Record) {
		c.found(mvcc.CheckRecord(before, rec))
		c.found(x.gone(before, rec))
	}
	return cmp.Or(x.fill(ctx), x.checkRevisionsLeft())
}

// Sound returns the error (ErrDamaged) with which Write rejects s, so that no output inherits
// damage. Sound checks the revisions and version of every record, and all other buckets, but not
// the digest.
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
	err = s.read(func() error { return c.buckets(ctx) })
	return cmp.Or(err, first)
}
