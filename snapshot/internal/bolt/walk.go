package bolt

import (
	"context"
	"fmt"
)

// walk visits every page that the root leads to once: a page met twice is an error, which also ends
// any cycle.
type walk struct {
	db    *DB
	used  []uint64 // a bit a page
	pages uint64   // in use
}

// claim marks n pages from id on as used.
func (w *walk) claim(id, n uint64) error {
	for i := id; i < id+n; i++ {
		if w.used[i/64]&(1<<(i%64)) != 0 {
			return fmt.Errorf("%w: page %d is used twice", ErrDamaged, i)
		}
		w.used[i/64] |= 1 << (i % 64)
	}
	w.pages += n
	return nil
}

// maxDepth bounds the height of a tree: with two children a branch, which is the fewest bbolt
// leaves, 64 levels hold more pages than a file can have.
const maxDepth = 64

// tree appends the leaves below page id, in key order.
func (w *walk) tree(ctx context.Context, id uint64, depth int, leaves []uint64) ([]uint64, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if depth > maxDepth {
		return nil, fmt.Errorf("%w: page %d lies deeper than %d levels", ErrDamaged, id, maxDepth)
	}
	p, err := w.db.Extent(id)
	if err == nil {
		err = w.claim(id, uint64(p.Overflow())+1)
	}
	if err != nil {
		return nil, err
	}
	if p.IsLeaf() {
		return append(leaves, id), nil
	}
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("%w: page %d: %w", ErrDamaged, id, err)
	}
	for i := range p.Count() {
		_, child := p.Branch(i)
		if leaves, err = w.tree(ctx, child, depth+1, leaves); err != nil {
			return nil, fmt.Errorf("below page %d: %w", id, err)
		}
	}
	return leaves, nil
}

// add adds the bucket b with the leaves of its tree.
func (w *walk) add(ctx context.Context, b Bucket) (err error) {
	if b.Root != 0 {
		if b.Leaves, err = w.tree(ctx, b.Root, 0, nil); err != nil {
			return fmt.Errorf("bucket %q: %w", b.Name, err)
		}
	}
	known := w.db.Buckets
	if n := len(known); n == maxBuckets {
		return fmt.Errorf("%w: more than %d buckets", ErrDamaged, n)
	} else if n > 0 && known[n-1].Name >= b.Name {
		return fmt.Errorf("%w: bucket %q does not sort after %q", ErrDamaged, b.Name, known[n-1].Name)
	}
	w.db.Buckets = append(known, b)
	return nil
}

// A free-list page has the numbers of free pages, 8 bytes each, behind its header. With 65535
// elements the first is how many follow (FreelistPageCount).
const manyFree = 0xffff

// freelist claims the free-list page id and each page that it names, after the trees. A server
// trusts a stored list: it writes to those pages, and panics if it cannot read the list (db.go,
// loadFreelist).
func (w *walk) freelist(id uint64) error {
	p, err := w.db.Extent(id)
	if err != nil {
		return err
	}
	if p.Flags() != FlagFreelist {
		return fmt.Errorf("%w: page %d is no free-list page (flags %#x)", ErrDamaged, id, p.Flags())
	}
	if err := w.claim(id, uint64(p.Overflow())+1); err != nil {
		return err
	}
	ids, count := p[HeaderSize:], uint64(p.Count())
	if count == manyFree {
		count, ids = le.Uint64(ids), ids[8:]
	}
	if count > uint64(len(ids)/8) {
		return fmt.Errorf("%w: page %d: %d ids do not fit %d bytes", ErrDamaged, id, count, len(p))
	}
	for ; count > 0; count, ids = count-1, ids[8:] {
		free := le.Uint64(ids)
		if free < 2 || free >= w.db.HighWater {
			return w.db.outside(free)
		}
		if w.claim(free, 1) != nil {
			return fmt.Errorf("%w: page %d is named free and is in use, or named twice", ErrDamaged, free)
		}
	}
	return nil
}
