package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"os"
)

// bucketSource is a bucket to be written: entries yields its elements in key order, the same each time.
type bucketSource struct {
	name     string
	sequence uint64
	entries  func() iter.Seq2[element, error]
}

// inlineShare is the part of a page that an inline bucket takes at most (bbolt bucket.go, maxInlineBucketSize).
const inlineShare = 4

// bucket writes the pages of src and returns the value that the root bucket has for it: a header, or the whole of a bucket that is
// small enough to be inline. The key bucket never is: a file has four pages at least.
func (w *pageWriter) bucket(src bucketSource) ([]byte, error) {
	lb := &leafBuilder{w: w, size: pageHeaderSize}
	for el, err := range src.entries() {
		if err == nil {
			err = lb.add(el)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(lb.leaves) == 0 && lb.size <= w.pageSize/inlineShare && src.name != "key" {
		p := make([]byte, lb.size)
		fillPage(p, 0, flagLeaf, 1, lb.cur)
		return append(bucketHeader(0, src.sequence), p...), nil
	}
	root, err := lb.root()
	return bucketHeader(root, src.sequence), err
}

// root ends the last leaf and returns the root of the tree above all of them; of no entries, an empty leaf.
func (b *leafBuilder) root() (uint64, error) {
	if len(b.leaves) == 0 && len(b.cur) == 0 {
		return b.w.emit(flagLeaf, nil)
	}
	if err := b.flush(); err != nil {
		return 0, err
	}
	return b.w.above(b.leaves)
}

// above writes the branches above kids, of which there is at least one, and returns the topmost page.
func (w *pageWriter) above(kids []element) (uint64, error) {
	var err error
	for len(kids) > 1 {
		if kids, err = w.branches(kids); err != nil {
			return 0, err
		}
	}
	return kids[0].child, nil
}

// writeNew writes a file of new pages alone to f: the buckets of sources, which are sorted by name, with the page size, root sequence
// and transaction of m. It reads the file back, compares it with sources and returns its digest.
func writeNew(ctx context.Context, f *os.File, path string, m meta, sources []bucketSource) (sum [sha256.Size]byte, err error) {
	w := &pageWriter{out: f, pageSize: m.pageSize, next: 2}
	root := &leafBuilder{w: w, size: pageHeaderSize}
	for _, src := range sources {
		header, err := w.bucket(src)
		if err == nil {
			err = root.add(element{flags: bucketLeafFlag, key: []byte(src.name), value: header})
		}
		if err != nil {
			return sum, err
		}
	}
	if m.root, err = root.root(); err != nil {
		return sum, err
	}
	m.freelist, m.highWater = noFreelist, w.next
	if err := w.flush(); err != nil {
		return sum, err
	}
	metas := make([]byte, 2*m.pageSize)
	m.over(metas, 0)
	if _, err := f.WriteAt(metas, 0); err != nil {
		return sum, err
	}
	h, image := sha256.New(), int64(m.highWater)*int64(m.pageSize)
	if err := hashRange(ctx, h, f, 0, image, make([]byte, copyBlock)); err != nil {
		return sum, err
	}
	if sum, err = sealed(f, h, image); err != nil {
		return sum, err
	}
	return sum, checkRewritten(ctx, f, path, sources)
}

// checkRewritten opens the written file as any other and proves that it holds what sources yield and nothing else.
func checkRewritten(ctx context.Context, f *os.File, path string, sources []bucketSource) error {
	out, err := openFile(ctx, f, path, Config{SkipDigest: true})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrVerify, err)
	}
	defer func() { _ = out.Close() }()
	switch {
	case out.raw:
		return fmt.Errorf("%w: its size is not that of a snapshot", ErrVerify)
	case len(out.buckets) != len(sources):
		return fmt.Errorf("%w: %d buckets, want %d", ErrVerify, len(out.buckets), len(sources))
	case out.reachable != out.meta.highWater-2:
		return fmt.Errorf("%w: %d of %d pages are in use", ErrVerify, out.reachable, out.meta.highWater-2)
	}
	for i, src := range sources {
		if err := out.checkBucket(ctx, &out.buckets[i], src); err != nil {
			return err
		}
	}
	if err := out.sound(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrVerify, err)
	}
	return nil
}

// checkBucket compares bucket b with what src yields.
func (s *Snapshot) checkBucket(ctx context.Context, b *bucket, src bucketSource) error {
	if b.name != src.name || b.sequence != src.sequence {
		return fmt.Errorf("%w: bucket %q is not what was to be written", ErrVerify, src.name)
	}
	return (&cursor{s: s, b: b}).compare(src.entries())
}

// renewBuckets writes the root bucket anew, with the given values in place of the old ones or beside them, and returns its root page.
func (s *Snapshot) renewBuckets(w *pageWriter, renewed []element) (uint64, error) {
	lb := &leafBuilder{w: w, size: pageHeaderSize}
	add := func(key, value []byte) error {
		return lb.add(element{flags: bucketLeafFlag, key: key, value: value})
	}
	for i := range s.buckets {
		b := &s.buckets[i]
		for len(renewed) > 0 && string(renewed[0].key) < b.name {
			if err := add(renewed[0].key, renewed[0].value); err != nil {
				return 0, err
			}
			renewed = renewed[1:]
		}
		value := append(bucketHeader(b.root, b.sequence), b.inline...)
		if len(renewed) > 0 && string(renewed[0].key) == b.name {
			value, renewed = renewed[0].value, renewed[1:]
		}
		if err := add([]byte(b.name), value); err != nil {
			return 0, err
		}
	}
	for _, el := range renewed {
		if err := add(el.key, el.value); err != nil {
			return 0, err
		}
	}
	return lb.root()
}

// bucketHeader is the value of a bucket that is not inline, and the front of one that is, with root 0.
func bucketHeader(root, sequence uint64) []byte {
	return le.AppendUint64(le.AppendUint64(nil, root), sequence)
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
