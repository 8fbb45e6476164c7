package snapshot

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"os"
	"slices"
)

// checkOutput opens the written file as any other and proves that it holds the records of s and the changes, and nothing else.
// That its old pages are equal to those of s is known from the copy; so a leaf that both trees have in the same place holds
// the same records, and only new leaves have to be read.
func (s *Snapshot) checkOutput(ctx context.Context, f *os.File, path string, appended int, changes iter.Seq2[Change, error]) error {
	out, err := openFile(ctx, f, path, Config{SkipDigest: true})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrVerify, err)
	}
	defer func() { _ = out.Close() }()
	if out.raw {
		return fmt.Errorf("%w: its size is not that of a snapshot", ErrVerify)
	}
	if len(out.buckets) != len(s.buckets) {
		return fmt.Errorf("%w: %d buckets, want %d", ErrVerify, len(out.buckets), len(s.buckets))
	}
	for i := range s.buckets {
		if s.buckets[i].name == "key" && appended > 0 {
			continue
		}
		if err := sameBucket(&s.buckets[i], &out.buckets[i]); err != nil {
			return err
		}
	}
	if appended == 0 {
		return nil
	}
	if err := out.checkBranches(ctx, out.bucket("key")); err != nil {
		return fmt.Errorf("%w: %w", ErrVerify, err)
	}
	return s.checkRecords(ctx, out, changes)
}

func sameBucket(old, now *bucket) error {
	same := old.name == now.name && old.root == now.root && old.sequence == now.sequence &&
		bytes.Equal(old.inline, now.inline) && slices.Equal(old.leaves, now.leaves)
	if !same {
		return fmt.Errorf("%w: bucket %q is not as it was", ErrVerify, old.name)
	}
	return nil
}

// checkRecords compares the key buckets: the old leaves first, then the records of the new ones with what the changes store.
func (s *Snapshot) checkRecords(ctx context.Context, out *Snapshot, changes iter.Seq2[Change, error]) error {
	old, now := s.bucket("key"), out.bucket("key")
	kept := s.keptLeaves(now)
	if old.root != 0 && !slices.Equal(s.leavesWithRecords(old), now.leaves[:kept]) {
		return fmt.Errorf("%w: the old leaves are not where they were", ErrVerify)
	}
	want, stop := iter.Pull2(s.expected(ctx, old, changes))
	defer stop()
	n := 0
	for got, err := range out.entriesFrom(ctx, now, kept) {
		if err != nil {
			return fmt.Errorf("%w: %w", ErrVerify, err)
		}
		w, err, more := want()
		switch {
		case err != nil:
			return err
		case !more:
			return fmt.Errorf("%w: there are more than the %d records that were to be written", ErrVerify, n)
		case got.flags != w.flags || !bytes.Equal(got.key, w.key) || !bytes.Equal(got.value, w.value):
			return fmt.Errorf("%w: new record %d is not what was to be written", ErrVerify, n)
		}
		n++
	}
	if _, err, more := want(); err != nil || more {
		return fmt.Errorf("%w: only %d of the new records are there (%v)", ErrVerify, n, err)
	}
	return nil
}

// expected yields what the new leaves must hold: the records of an inline bucket, which were given leaves, and the appended ones.
func (s *Snapshot) expected(ctx context.Context, old *bucket, changes iter.Seq2[Change, error]) iter.Seq2[element, error] {
	return func(yield func(element, error) bool) {
		for i := range old.inline.records() {
			flags, k, v := old.inline.leaf(i)
			if !yield(element{flags: flags, key: k, value: v}, nil) {
				return
			}
		}
		a, err := newAppender(ctx, s)
		if err != nil {
			yield(element{}, err)
			return
		}
		a.records(ctx, changes)(yield)
	}
}

// leavesWithRecords are the leaves of b but for the single empty one of an empty bucket, which an appended tree drops.
func (s *Snapshot) leavesWithRecords(b *bucket) []uint64 {
	if len(b.leaves) == 1 {
		if p, err := s.page(b.leaves[0]); err == nil && p.count() == 0 {
			return nil
		}
	}
	return b.leaves
}

// keptLeaves is how many of now's leaves lie among the old pages.
func (s *Snapshot) keptLeaves(now *bucket) int {
	n := 0
	for n < len(now.leaves) && now.leaves[n] < s.meta.highWater {
		n++
	}
	return n
}

// entriesFrom yields the entries of bucket b from the given leaf on.
func (s *Snapshot) entriesFrom(ctx context.Context, b *bucket, leaf int) iter.Seq2[element, error] {
	return func(yield func(element, error) bool) {
		for i := leaf; i < b.leafCount(); i++ {
			if err := ctx.Err(); err != nil {
				yield(element{}, err)
				return
			}
			p, err := s.guardedLeaf(b, i)
			if err != nil {
				yield(element{}, err)
				return
			}
			for j := range p.count() {
				flags, k, v := p.leaf(j)
				if !yield(element{flags: flags, key: k, value: v}, nil) {
					return
				}
			}
		}
	}
}

// checkBranches checks that each branch page of bucket b has, for each child, a key that is not after the child's first and
// after everything below the child before it: what a server's binary search relies on. Only branches and the ends of leaves
// are read.
func (s *Snapshot) checkBranches(ctx context.Context, b *bucket) error {
	if b.root == 0 {
		return nil
	}
	_, _, err := s.keyRange(ctx, b.root, 0)
	return err
}

// keyRange returns the first and last key below page id, nil for an empty leaf.
func (s *Snapshot) keyRange(ctx context.Context, id uint64, depth int) (first, last []byte, err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	p, err := s.page(id)
	if err != nil || p.count() == 0 || depth > maxDepth {
		return nil, nil, err
	}
	if p.isLeaf() {
		_, first, _ = p.leaf(0)
		_, last, _ = p.leaf(p.count() - 1)
		return first, last, nil
	}
	for i := range p.count() {
		key, child := p.branch(i)
		from, to, err := s.keyRange(ctx, child, depth+1)
		if err != nil {
			return nil, nil, err
		}
		if bytes.Compare(key, from) > 0 || (last != nil && bytes.Compare(last, key) >= 0) {
			return nil, nil, fmt.Errorf("%w: page %d: element %d does not lead to the keys of page %d", ErrDamaged, id, i, child)
		}
		if first == nil {
			first = from
		}
		last = to
	}
	return first, last, nil
}
