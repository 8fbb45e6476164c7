package snapshot

import (
	"bytes"
	"context"
	"fmt"
	"math/bits"
)

// bucket is one top-level bucket: its leaves in key order, or its inline page.
type bucket struct {
	name     string
	root     uint64   // 0: inline
	sequence uint64   // bbolt's per-bucket counter; etcd does not use it
	inline   page     // the page image in the root leaf, when root is 0
	leaves   []uint64 // page ids; nil for an inline bucket
}

func (b *bucket) leafCount() int {
	if b.root == 0 {
		return 1
	}
	return len(b.leaves)
}

// page returns page id with its overflow pages, judged.
func (s *Snapshot) page(id uint64) (page, error) {
	p, err := s.pageExtent(id)
	if err != nil {
		return nil, err
	}
	if err := p.judge(); err != nil {
		return nil, fmt.Errorf("%w: page %d: %w", ErrDamaged, id, err)
	}
	return p, nil
}

// pageExtent returns page id with its overflow pages after checking that it is the page it says it is and ends within the image.
func (s *Snapshot) pageExtent(id uint64) (page, error) {
	if id < 2 || id >= s.meta.highWater {
		return nil, fmt.Errorf("%w: page %d lies outside the %d pages of the file", ErrDamaged, id, s.meta.highWater)
	}
	ps := uint64(s.meta.pageSize)
	p := page(s.image[id*ps:])
	if p.id() != id {
		return nil, fmt.Errorf("%w: page %d calls itself page %d", ErrDamaged, id, p.id())
	}
	n := uint64(p.overflow()) + 1
	if n > s.meta.highWater-id {
		return nil, fmt.Errorf("%w: page %d: %d overflow pages end beyond the file", ErrDamaged, id, n-1)
	}
	return p[: n*ps : n*ps], nil
}

// walker visits every page that can be reached from the root once, branch pages first: a page met twice is an error, which
// also ends any cycle. Leaves of the key bucket are only claimed here; they are judged when they are first read.
type walker struct {
	s    *Snapshot
	used []uint64 // a bit a page
}

func newWalker(s *Snapshot) *walker {
	w := &walker{s: s, used: make([]uint64, (s.meta.highWater+63)/64)}
	_ = w.claim(0, 2) // the metas
	return w
}

func (w *walker) claim(id, n uint64) error {
	for i := id; i < id+n; i++ {
		if w.used[i/64]&(1<<(i%64)) != 0 {
			return fmt.Errorf("%w: page %d is used twice", ErrDamaged, i)
		}
		w.used[i/64] |= 1 << (i % 64)
	}
	return nil
}

// maxDepth bounds the height of a tree: with two children a branch, which is the fewest bbolt leaves, 64 levels hold more
// pages than a file can have.
const maxDepth = 64

// claimed counts the pages met so far.
func (w *walker) claimed() uint64 {
	n := 0
	for _, word := range w.used {
		n += bits.OnesCount64(word)
	}
	return uint64(n)
}

// tree walks the tree below page id and returns its leaves in key order.
func (w *walker) tree(ctx context.Context, id uint64) (leaves []uint64, err error) {
	err = w.descend(ctx, id, 0, &leaves)
	return leaves, err
}

func (w *walker) descend(ctx context.Context, id uint64, depth int, leaves *[]uint64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if depth > maxDepth {
		return fmt.Errorf("%w: page %d lies deeper than %d levels", ErrDamaged, id, maxDepth)
	}
	p, err := w.s.pageExtent(id)
	if err != nil {
		return err
	}
	if err := w.claim(id, uint64(p.overflow())+1); err != nil {
		return err
	}
	if p.isLeaf() {
		*leaves = append(*leaves, id)
		return nil
	}
	if err := p.judge(); err != nil {
		return fmt.Errorf("%w: page %d: %w", ErrDamaged, id, err)
	}
	for i := range p.count() {
		_, child := p.branch(i)
		if err := w.descend(ctx, child, depth+1, leaves); err != nil {
			return fmt.Errorf("below page %d: %w", id, err)
		}
	}
	return nil
}

// walk finds the buckets and claims every reachable page.
func (s *Snapshot) walk(ctx context.Context) error {
	w := newWalker(s)
	leaves, err := w.tree(ctx, s.meta.root)
	if err != nil {
		return fmt.Errorf("root bucket: %w", err)
	}
	for _, id := range leaves {
		p, err := s.page(id)
		if err != nil {
			return fmt.Errorf("root bucket: %w", err)
		}
		for i := range p.count() {
			b, err := parseBucket(p.leaf(i))
			if err != nil {
				return fmt.Errorf("page %d: element %d: %w", id, i, err)
			}
			if b.root != 0 {
				if b.leaves, err = w.tree(ctx, b.root); err != nil {
					return fmt.Errorf("bucket %q: %w", b.name, err)
				}
			}
			n := len(s.buckets)
			if n == maxBuckets {
				return fmt.Errorf("%w: more than %d buckets", ErrDamaged, n)
			}
			if n > 0 && s.buckets[n-1].name >= b.name {
				return fmt.Errorf("%w: bucket %q does not sort after %q", ErrDamaged, b.name, s.buckets[n-1].name)
			}
			s.buckets = append(s.buckets, b)
		}
	}
	s.reachable = w.claimed() - 2
	s.freeList = w.freeList()
	if s.bucket("key") == nil {
		return fmt.Errorf("%w: it is a bbolt file without etcd's key bucket", ErrNotSnapshot)
	}
	return nil
}

// Buckets are kept in memory by name. etcd has ten (server/storage/schema/bucket.go); the bounds keep a hostile file from filling
// memory with others.
const (
	maxBuckets    = 1 << 14
	maxBucketName = 1 << 10 // bytes
)

// parseBucket decodes an element of the root bucket's leaves.
func parseBucket(flags uint32, key, value []byte) (bucket, error) {
	if len(key) > maxBucketName {
		return bucket{}, fmt.Errorf("%w: a bucket's name has %d bytes", ErrDamaged, len(key))
	}
	b := bucket{name: string(key)}
	if flags&bucketLeafFlag == 0 {
		return b, fmt.Errorf("%w: %q is not a bucket", ErrDamaged, key)
	}
	if len(value) < bucketHeaderSize {
		return b, fmt.Errorf("%w: bucket %q has a header of %d bytes", ErrDamaged, key, len(value))
	}
	b.root, b.sequence = le.Uint64(value), le.Uint64(value[8:])
	if b.root != 0 {
		return b, nil
	}
	b.inline = page(value[bucketHeaderSize:])
	if err := b.inline.judge(); err != nil {
		return b, fmt.Errorf("%w: inline bucket %q: %w", ErrDamaged, key, err)
	}
	if !b.inline.isLeaf() {
		return b, fmt.Errorf("%w: inline bucket %q is not a leaf", ErrDamaged, key)
	}
	return b, nil
}

// bucket returns the bucket of that name, nil when there is none.
func (s *Snapshot) bucket(name string) *bucket {
	for i := range s.buckets {
		if s.buckets[i].name == name {
			return &s.buckets[i]
		}
	}
	return nil
}

// leafPage returns leaf i of bucket b, judged.
func (s *Snapshot) leafPage(b *bucket, i int) (page, error) {
	if b.root == 0 {
		return b.inline, nil
	}
	return s.page(b.leaves[i])
}

// entries calls fn with every entry of the named bucket in key order; a missing bucket has none.
func (s *Snapshot) entries(ctx context.Context, name string, fn func(k, v []byte) error) error {
	b := s.bucket(name)
	if b == nil {
		return nil
	}
	var before []byte
	for i := range b.leafCount() {
		if err := ctx.Err(); err != nil {
			return err
		}
		p, err := s.leafPage(b, i)
		if err != nil {
			return fmt.Errorf("bucket %q: %w", name, err)
		}
		for j := range p.count() {
			flags, k, v := p.leaf(j)
			if flags&bucketLeafFlag != 0 {
				return fmt.Errorf("%w: bucket %q holds a bucket of its own", ErrDamaged, name)
			}
			if (i > 0 || j > 0) && bytes.Compare(before, k) >= 0 {
				return fmt.Errorf("%w: bucket %q: entry %d of leaf %d does not sort after the one before it", ErrDamaged, name, j, i)
			}
			before = k
			if err := fn(k, v); err != nil {
				return err
			}
		}
	}
	return nil
}
