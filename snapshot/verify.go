package snapshot

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// Verify yields what is wrong with an open file, nothing when a restore of it will serve exactly what it holds: the digest, every
// reachable page, the free list, the order of every bucket, the way to each leaf, each entry that a server decodes when it starts,
// and each record's numbers against those of the record before it. etcdutl checks only the digest, and a server trusts the rest (or
// dies of it).
//
// Each error wraps ErrDigest or ErrDamaged, or says that the file could not be read to the end, which ends the sequence. Damage
// that hides what lies behind it ends the sequence too.
func Verify(ctx context.Context, s *Snapshot) iter.Seq[error] {
	return func(yield func(error) bool) {
		checks := []func(context.Context, func(error) bool) error{
			s.verifyBuckets, s.verifyRecords, s.verifyDigest, s.verifyFreeList,
		}
		stopped := false
		found := func(err error) bool {
			stopped = stopped || !yield(s.wrap(err))
			return !stopped
		}
		for _, check := range checks {
			err := s.guard(func() error { return check(ctx, found) })
			if err != nil && !stopped {
				found(err)
			}
			if stopped || ctx.Err() != nil {
				return
			}
		}
	}
}

func (s *Snapshot) verifyFreeList(context.Context, func(error) bool) error {
	if errors.Is(s.freeList, errOdd) {
		return nil
	}
	return s.freeList
}

func (s *Snapshot) verifyDigest(ctx context.Context, _ func(error) bool) error {
	_, err := s.digest.wait(ctx)
	return err
}

// Odd yields what etcd never writes, and a restore and a server accept; Verify passes over it: odd numbers in the meta bucket, odd
// leases, members that cannot be read, pages that are neither in use nor free. What Verify finds ends it early.
func (s *Snapshot) Odd(ctx context.Context) iter.Seq[error] {
	return func(yield func(error) bool) {
		if errors.Is(s.freeList, errOdd) && !yield(s.wrap(s.freeList)) {
			return
		}
		for i := range s.buckets {
			more := true
			err := s.guard(func() error {
				return s.checkEntries(ctx, &s.buckets[i], func(err error) bool {
					more = !errors.Is(err, errOdd) || yield(s.wrap(err))
					return more
				})
			})
			if err != nil || !more { // Verify tells
				return
			}
		}
	}
}

// checkEntries reads bucket b, with found told of each entry that etcd does not write: errOdd, or ErrDamaged. What keeps the bucket
// from being read is returned.
func (s *Snapshot) checkEntries(ctx context.Context, b *bucket, found func(error) bool) error {
	check := entryChecks()[b.name]
	more := true
	return s.entries(ctx, b.name, func(k, v []byte) error {
		if !more {
			return nil
		}
		if err := check.of(b.name, k, v); err != nil {
			more = found(err)
		}
		return nil
	})
}

// verifyBuckets reads every bucket but the records themselves. One damaged bucket does not keep the others from being read.
func (s *Snapshot) verifyBuckets(ctx context.Context, found func(error) bool) error {
	if s.bucket("meta") == nil && !found(fmt.Errorf("%w: there is no meta bucket, without which etcdutl cannot restore", ErrDamaged)) {
		return nil
	}
	if err := s.checkBranches(ctx, s.meta.root); err != nil && !found(fmt.Errorf("root bucket: %w", err)) {
		return nil
	}
	for i := range s.buckets {
		b := &s.buckets[i]
		more := true
		err := s.checkBranches(ctx, b.root)
		if err == nil && b.name != "key" {
			err = s.checkEntries(ctx, b, func(err error) bool {
				more = errors.Is(err, errOdd) || found(err)
				return more
			})
		}
		if !more {
			return nil
		}
		if err == nil {
			continue
		}
		if !errors.Is(err, ErrDamaged) {
			return err
		}
		if !found(fmt.Errorf("bucket %q: %w", b.name, err)) {
			return nil
		}
	}
	return nil
}

// verifyRecords scans the key bucket with an index of its own and compares each record with the one before it of its key.
func (s *Snapshot) verifyRecords(ctx context.Context, found func(error) bool) error {
	more := true
	x := newIndex()
	x.follows = func(before, rec *Record) {
		if err := soundAfter(before, rec); err != nil && more {
			more = found(fmt.Errorf("%w: record %s of key %q: %w", ErrDamaged, rec.Revision, clip(rec.Key), err))
		}
	}
	if err := s.fillIndex(ctx, x); err != nil {
		return err
	}
	return x.room()
}

// soundRecord is soundAfter with the record's name.
func soundRecord(before, rec *Record) error {
	if err := soundAfter(before, rec); err != nil {
		return fmt.Errorf("%w: record %s of key %q: %w", ErrDamaged, rec.Revision, rec.Key, err)
	}
	return nil
}

// Sound says why Write would refuse to change s (ErrDamaged); nil where it would not. It reads every record's numbers and the small
// buckets, and leaves the digest to Digest.
func (s *Snapshot) Sound(ctx context.Context) error {
	return s.guard(func() error { return s.sound(ctx) })
}

// sound reads what Write copies without a look: the other buckets, and what the scan found wrong with a record. What is written
// must be found sound by Verify, so damage of the input is refused, not passed on.
func (s *Snapshot) sound(ctx context.Context) error {
	x, err := s.index(ctx)
	if err != nil {
		return err
	}
	if x.unsound != nil {
		return s.wrap(x.unsound)
	}
	var first error
	err = s.verifyBuckets(ctx, func(err error) bool {
		first = err
		return false
	})
	return s.wrap(errors.Join(first, err))
}

// soundAfter checks the numbers of rec against the record before it of the same key, nil when a compaction has removed that one
// or there never was one. A server serves wrong numbers as they are, and optimistic locking breaks.
func soundAfter(before, rec *Record) error {
	if len(rec.Key) == 0 {
		return errors.New("it holds more than the record without a key that --bump-revision leaves, which is empty")
	}
	if rec.Tombstone {
		if rec.CreateRevision != 0 || rec.ModRevision != 0 || rec.Version != 0 || rec.Lease != 0 || len(rec.Value) != 0 {
			return errors.New("a tombstone holds more than its key")
		}
		return nil // one of a key without a record is odd but harmless: compaction may have removed what it deleted
	}
	if rec.ModRevision != rec.Revision.Main {
		return fmt.Errorf("mod_revision is %d", rec.ModRevision)
	}
	create, version := rec.Revision.Main, int64(1)
	switch {
	case before == nil: // a server that starts on the file takes its numbers as they are and counts on from there
		if rec.CreateRevision <= 0 || rec.CreateRevision > rec.ModRevision || rec.Version < 1 {
			return fmt.Errorf("create_revision %d and version %d do not agree", rec.CreateRevision, rec.Version)
		}
		return nil
	case !before.Tombstone:
		create, version = before.CreateRevision, before.Version+1
	}
	if rec.CreateRevision != create || rec.Version != version {
		return fmt.Errorf("create_revision %d and version %d, want %d and %d", rec.CreateRevision, rec.Version, create, version)
	}
	return nil
}

// clip is the beginning of a key, for a message: the key may be longer than anybody would read.
func clip(key []byte) []byte { return key[:min(len(key), 300)] }
