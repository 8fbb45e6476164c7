package snapshot

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"
)

// checkOutput proves that out holds the records of s and the changes of e, the leases of s and the grants, and nothing else. That
// its old pages are equal to those of s is known from the copy; so a leaf that both trees have in the same place holds the same
// records, and only new leaves have to be read.
func (s *Snapshot) checkOutput(ctx context.Context, out *Snapshot, appended int, e edit) error {
	want := s.withLeaseBucket(e.grants)
	if len(out.buckets) != len(want) {
		return fmt.Errorf("%w: %d buckets, want %d", ErrVerify, len(out.buckets), len(want))
	}
	for i := range want {
		var err error
		switch {
		case want[i].name == "key" && appended > 0:
		case want[i].name == leaseBucket && len(e.grants) > 0:
			err = out.checkBucket(&out.buckets[i], s.leaseSource(ctx, e.grants))
		default:
			err = sameBucket(&want[i], &out.buckets[i])
		}
		if err != nil {
			return err
		}
	}
	if appended == 0 && len(e.grants) == 0 {
		return nil
	}
	if err := out.checkWays(ctx); err != nil {
		return s.blame(ctx, err)
	}
	if appended == 0 {
		return nil
	}
	return s.checkRecords(ctx, out, e.changes)
}

// blame says whether what is wrong with the output is as old as s, whose name the error then has.
func (s *Snapshot) blame(ctx context.Context, err error) error {
	if old := s.checkWays(ctx); old != nil {
		return s.wrap(old)
	}
	return fmt.Errorf("%w: %w", ErrVerify, err)
}

// checkWays checks the way to each bucket, to each record and to each lease.
func (s *Snapshot) checkWays(ctx context.Context) error {
	err := s.checkBranches(ctx, s.meta.root)
	for _, name := range []string{"key", leaseBucket} {
		if b := s.bucket(name); b != nil && err == nil {
			err = s.checkBranches(ctx, b.root)
		}
	}
	return err
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
	return (&cursor{s: out, b: now, leaf: kept}).compare(s.expected(ctx, old, changes))
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

// leavesWithRecords are the leaves of b but for a last one that is empty, which an appended tree drops: that of an empty bucket.
func (s *Snapshot) leavesWithRecords(b *bucket) []uint64 {
	last := len(b.leaves) - 1
	if p, err := s.page(b.leaves[last]); err == nil && p.count() == 0 {
		return b.leaves[:last]
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

// cursor goes through the entries of bucket b from the given leaf on. It is pulled, and not an iterator, because iter.Pull would
// run on a goroutine of its own, where guard does not reach.
type cursor struct {
	s          *Snapshot
	b          *bucket
	leaf, elem int
	p          page // leaf, nil before its first entry
	el         element
}

// next returns the next entry, nil behind the last. It is valid until the next call.
func (c *cursor) next() (*element, error) {
	for c.leaf < c.b.leafCount() {
		if c.p == nil {
			p, err := c.s.leafPage(c.b, c.leaf)
			if err != nil {
				return nil, err
			}
			c.p, c.elem = p, 0
		}
		if c.elem < c.p.count() {
			flags, k, v := c.p.leaf(c.elem)
			c.elem++
			c.el = element{flags: flags, key: k, value: v}
			return &c.el, nil
		}
		c.p = nil
		c.leaf++
	}
	return nil, nil
}

// elements yields the entries of b, whose order was checked before.
func (s *Snapshot) elements(ctx context.Context, b *bucket) iter.Seq2[element, error] {
	return func(yield func(element, error) bool) {
		c := cursor{s: s, b: b}
		for n := 0; ; n++ {
			el, err := c.next()
			if err == nil && n%1024 == 0 {
				err = ctx.Err()
			}
			switch {
			case err != nil:
				yield(element{}, err)
				return
			case el == nil || !yield(*el, nil):
				return
			}
		}
	}
}

// checkBranches checks that each branch page of the tree below root has, for each child, a key that is not after the child's first
// and after everything below the child before it: what a server's binary search relies on. Only branches and the ends of leaves
// are read. An inline bucket, with root 0, has none.
func (s *Snapshot) checkBranches(ctx context.Context, root uint64) error {
	if root == 0 {
		return nil
	}
	_, _, err := s.keyRange(ctx, root, 0)
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
		if (from != nil && bytes.Compare(key, from) > 0) || (last != nil && bytes.Compare(last, key) >= 0) {
			return nil, nil, fmt.Errorf("%w: page %d: element %d does not lead to the keys of page %d", ErrDamaged, id, i, child)
		}
		if first == nil {
			first = from
		}
		if to != nil {
			last = to
		}
	}
	return first, last, nil
}
