package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
)

// checkNew proves that s, a file of new pages alone, holds what sources yield and not one byte else, and that it is sound.
func (s *Snapshot) checkNew(ctx context.Context, sources []bucketSource) error {
	if len(s.buckets) != len(sources) {
		return fmt.Errorf("%w: %d buckets, want %d", ErrVerify, len(s.buckets), len(sources))
	}
	if free := s.Space().FreePages; free != 0 {
		return fmt.Errorf("%w: %d pages are not in use", ErrVerify, free)
	}
	for i, src := range sources {
		if err := s.checkBucket(&s.buckets[i], src); err != nil {
			return err
		}
	}
	err := s.checkTight(ctx)
	if err == nil {
		err = s.sound(ctx)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrVerify, err)
	}
	return nil
}

// checkBucket compares bucket b with what src yields.
func (s *Snapshot) checkBucket(b *bucket, src bucketSource) error {
	if b.name != src.name || b.sequence != src.sequence {
		return fmt.Errorf("%w: bucket %q is not what was to be written", ErrVerify, src.name)
	}
	return (&cursor{s: s, b: b}).compare(src.entries())
}

// compare compares what lies behind the cursor with want.
func (c *cursor) compare(want iter.Seq2[element, error]) error {
	n := 0
	for want, err := range want {
		if err != nil {
			return err
		}
		got, err := c.next()
		switch {
		case err != nil:
			return fmt.Errorf("%w: %w", ErrVerify, err)
		case got == nil:
			return fmt.Errorf("%w: bucket %q: only %d of the entries are there", ErrVerify, c.b.name, n)
		case got.flags != want.flags || !bytes.Equal(got.key, want.key) || !bytes.Equal(got.value, want.value):
			return fmt.Errorf("%w: bucket %q: entry %d is not what was to be written", ErrVerify, c.b.name, n)
		}
		n++
	}
	if got, err := c.next(); err != nil || got != nil {
		return fmt.Errorf("%w: bucket %q: there are more than the %d entries that were to be written (%v)", ErrVerify, c.b.name, n, err)
	}
	return nil
}

// checkTight proves that no byte of the image lies outside what its pages hold: the metas are what they say, and behind the last
// element of a page there are zeros.
func (s *Snapshot) checkTight(ctx context.Context) error {
	metas := make([]byte, 2*s.meta.pageSize)
	s.meta.over(metas, 0)
	if !bytes.Equal(metas, s.image[:len(metas)]) {
		return errors.New("the meta pages hold more than the metas")
	}
	for id := uint64(2); id < s.meta.highWater; {
		if err := ctx.Err(); err != nil {
			return err
		}
		p, err := s.page(id)
		if err != nil {
			return err
		}
		if !p.tight() {
			return fmt.Errorf("page %d holds more than its elements", id)
		}
		id += uint64(p.overflow()) + 1
	}
	for i := range s.buckets {
		if b := &s.buckets[i]; b.root == 0 && !b.inline.tight() {
			return fmt.Errorf("inline bucket %q holds more than its elements", b.name)
		}
	}
	return nil
}

// tight says whether the elements of p follow each other without a gap, with zeros behind the last.
func (p page) tight() bool {
	end := uint64(pageHeaderSize + p.count()*elementSize)
	for i := range p.count() {
		start, size := p.extent(i)
		if start != end {
			return false
		}
		end += size
	}
	for _, b := range p[end:] {
		if b != 0 {
			return false
		}
	}
	return true
}
