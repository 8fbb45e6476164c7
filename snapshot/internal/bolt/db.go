package bolt

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/etcdshift/etcdshift/internal/stream"
)

// DB is the image of a database. Open checks the pages above the leaves, Page checks a leaf.
type DB struct {
	Meta
	Image   []byte   // HighWater pages
	Old     *DB      // its pages, but not its metas, are those of Image; nil for none
	Buckets []Bucket // of the root bucket, sorted by name

	Free        uint64 // pages in use by neither the metas nor the tree of the root
	Lost        uint64 // free pages missing from a stored free list
	FreelistErr error  // the fault of the stored free list

	used []uint64 // a bit for each page of the metas and the tree of the root
}

// Bucket is a top-level bucket, such as "key".
type Bucket struct {
	Name     string
	Root     uint64   // page of the tree; 0 for an inline bucket
	Sequence uint64   // a counter unused by etcd
	Inline   Page     // the only leaf of an inline bucket
	Leaves   []uint64 // pages in key order; nil for an inline bucket
}

// Limits of the buckets in memory. etcd has ten buckets (server/storage/schema/bucket.go).
const (
	maxBuckets    = 1 << 14
	maxBucketName = 1 << 10 // bytes
)

// Open finds the buckets of an image and checks every page above the leaves. The pages of old,
// which may be nil, are read there: in a new mapping each first access costs a fault.
func Open(ctx context.Context, image []byte, m Meta, old *DB) (*DB, error) {
	db := &DB{Meta: m, Image: image, Old: old}
	w := walk{db: db, used: make([]uint64, (m.HighWater+63)/64)}
	_ = w.claim(0, 2) // the metas
	leaves, err := w.tree(ctx, m.Root, 0, nil)
	if err != nil {
		return nil, fmt.Errorf("root bucket: %w", err)
	}
	for _, id := range leaves {
		p, err := db.Page(id)
		if err != nil {
			return nil, fmt.Errorf("root bucket: %w", err)
		}
		for i, el := range p.Elements() {
			b, err := parseBucket(el)
			if err != nil {
				return nil, fmt.Errorf("page %d: element %d: %w", id, i, err)
			}
			if err := w.add(ctx, b); err != nil {
				return nil, err
			}
		}
	}
	db.Free, db.used = m.HighWater-w.pages, w.used
	if m.Freelist != NoFreelist {
		w.used = slices.Clone(w.used)
		db.FreelistErr = w.freelist(m.Freelist)
		db.Lost = m.HighWater - w.pages
	}
	return db, nil
}

// parseBucket decodes an element of the root bucket.
func parseBucket(el Element) (b Bucket, err error) {
	switch key, value := el.Key, el.Value; {
	case len(key) > maxBucketName:
		return b, fmt.Errorf("%w: a bucket's name has %d bytes", ErrDamaged, len(key))
	case el.Flags&FlagBucket == 0:
		return b, fmt.Errorf("%w: %q is not a bucket", ErrDamaged, key)
	case len(value) < BucketHeaderSize:
		return b, fmt.Errorf("%w: bucket %q has a header of %d bytes", ErrDamaged, key, len(value))
	}
	b.Name, b.Root, b.Sequence = string(el.Key), le.Uint64(el.Value), le.Uint64(el.Value[8:])
	if b.Root != 0 {
		return b, nil
	}
	b.Inline = Page(el.Value[BucketHeaderSize:])
	if err = b.Inline.Check(); err != nil {
		err = fmt.Errorf("%w: inline bucket %q: %w", ErrDamaged, b.Name, err)
	} else if !b.Inline.IsLeaf() {
		err = fmt.Errorf("%w: inline bucket %q is not a leaf", ErrDamaged, b.Name)
	}
	return b, err
}

// Bucket returns the bucket named name, or nil.
func (db *DB) Bucket(name string) *Bucket {
	i := slices.IndexFunc(db.Buckets, func(b Bucket) bool { return b.Name == name })
	if i < 0 {
		return nil
	}
	return &db.Buckets[i]
}

// Page returns page id with its overflow pages, after a check.
func (db *DB) Page(id uint64) (Page, error) {
	p, err := db.Extent(id)
	if err != nil {
		return nil, err
	}
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("%w: page %d: %w", ErrDamaged, id, err)
	}
	return p, nil
}

// Extent returns page id with its overflow pages. Extent checks number and end, but no elements.
func (db *DB) Extent(id uint64) (Page, error) {
	if id < 2 || id >= db.HighWater {
		return nil, db.outside(id)
	}
	if db.Old != nil && id < db.Old.HighWater {
		return db.Old.Extent(id)
	}
	ps := uint64(db.PageSize)
	p := Page(db.Image[id*ps:])
	if p.ID() != id {
		return nil, fmt.Errorf("%w: page %d calls itself page %d", ErrDamaged, id, p.ID())
	}
	n := uint64(p.Overflow()) + 1
	if n > db.HighWater-id {
		return nil, fmt.Errorf("%w: page %d: %d overflow pages end beyond the file", ErrDamaged, id, n-1)
	}
	return p[: n*ps : n*ps], nil
}

// uses reports whether page id is part of a tree.
func (db *DB) uses(id uint64) bool { return id < db.HighWater && db.used[id/64]&(1<<(id%64)) != 0 }

func (db *DB) outside(id uint64) error {
	return fmt.Errorf("%w: page %d lies outside the %d pages of the file", ErrDamaged, id, db.HighWater)
}

// Span is a range of offsets in a file, in bytes: From is part of it, To is not.
type Span struct{ From, To int64 }

// Unused returns the parts of the image outside of the metas and the tree: free pages, and the end
// of each page, behind its elements. They hold bytes of earlier transactions.
func (db *DB) Unused(ctx context.Context) ([]Span, error) {
	var spans []Span
	add := func(from, to int64) {
		if from < to {
			spans = append(spans, Span{from, to})
		}
	}
	size := int64(db.PageSize)
	from := 2 * size
	for id := uint64(2); id < db.HighWater; {
		if !db.uses(id) {
			id++
			continue
		}
		p, err := db.Page(id)
		if err := cmp.Or(ctx.Err(), err); err != nil {
			return nil, err
		}
		start := int64(id) * size
		add(from, start)
		id += uint64(p.Overflow()) + 1
		from = int64(id) * size
		add(start+int64(p.end()), from)
	}
	add(from, db.Bytes())
	return spans, nil
}

// LeafCount returns the number of leaves of b.
func (b *Bucket) LeafCount() int {
	if b.Root == 0 {
		return 1
	}
	return len(b.Leaves)
}

// Leaf returns leaf i of b, after a check.
func (db *DB) Leaf(b *Bucket, i int) (Page, error) {
	if b.Root == 0 {
		return b.Inline, nil
	}
	return db.Page(b.Leaves[i])
}

// Cursor reads the entries of a bucket, beginning with the first entry of Leaf. Cursor runs on the
// goroutine of the caller, so the caller can catch the fault of a mapped file; iter.Pull uses
// another goroutine.
type Cursor struct {
	DB     *DB
	Bucket *Bucket
	Leaf   int

	page Page // nil before the first entry of Leaf
	next int
	el   Element
}

// Next returns the next entry, valid until the next call, or nil after the last entry.
func (c *Cursor) Next() (*Element, error) {
	for ; c.Leaf < c.Bucket.LeafCount(); c.Leaf++ {
		if c.page == nil {
			p, err := c.DB.Leaf(c.Bucket, c.Leaf)
			if err != nil {
				return nil, err
			}
			c.page, c.next = p, 0
		}
		if c.next < c.page.Count() {
			c.el.Flags, c.el.Key, c.el.Value = c.page.Leaf(c.next)
			c.next++
			return &c.el, nil
		}
		c.page = nil
	}
	return nil, nil
}

// Entries yields the entries of b in key order. A nil bucket has no entries.
func (db *DB) Entries(ctx context.Context, b *Bucket) iter.Seq2[Element, error] {
	return stream.Of(func(yield func(Element) error) error {
		if b == nil {
			return nil
		}
		var before []byte
		c := Cursor{DB: db, Bucket: b}
		for n := 0; ; n++ {
			el, err := c.Next()
			switch {
			case err != nil:
				return fmt.Errorf("bucket %q: %w", b.Name, err)
			case el == nil:
				return nil
			case el.Flags&FlagBucket != 0:
				return fmt.Errorf("%w: bucket %q holds a bucket of its own", ErrDamaged, b.Name)
			case n > 0 && bytes.Compare(before, el.Key) >= 0:
				return fmt.Errorf("%w: bucket %q: entry %d of leaf %d does not sort after the one before it",
					ErrDamaged, b.Name, c.next-1, c.Leaf)
			case c.next == 1 && ctx.Err() != nil: // at the first entry of a leaf
				return ctx.Err()
			}
			before = el.Key
			if err := yield(*el); err != nil {
				return err
			}
		}
	})
}
