package bolt

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
)

// walk visits every page below the root once. A second visit is an error, so a cycle ends.
type walk struct {
	db    *DB
	used  []uint64 // one bit for each page
	pages uint64   // pages in use
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

// maxDepth limits the height of a tree. Branches of bbolt have at least two children: no file has
// enough pages for 64 levels.
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

// A free-list page has the numbers of free pages, 8 bytes each, after its header. If its count is
// 65535, the first element is the true count (FreelistPageCount).
const manyFree = 0xffff

// freelist claims the free-list page id and every page in the list, after the trees. A server
// writes to those pages, and panics on an unreadable list (db.go, loadFreelist).
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

// CheckBranches checks the branches below root for binary search: the key of a child is at most the
// first key below the child, and greater than all keys below the previous child. Only branches and
// the ends of leaves are read; below a branch of db.Old, which must be checked already, only the
// first and the last leaf. Root 0, of an inline bucket, has no branches.
func (db *DB) CheckBranches(ctx context.Context, root uint64) error {
	if root == 0 {
		return nil
	}
	_, _, err := db.keyRange(ctx, root, 0)
	return err
}

// keyRange returns the first and last key below page id, or nil for an empty leaf.
func (db *DB) keyRange(ctx context.Context, id uint64, depth int) (first, last []byte, err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	p, err := db.Page(id)
	if err != nil || p.Count() == 0 || depth > maxDepth {
		return nil, nil, err
	}
	if p.IsLeaf() {
		_, first, _ = p.Leaf(0)
		_, last, _ = p.Leaf(p.Count() - 1)
		return first, last, nil
	}
	step := 1
	if db.Old != nil && db.Old.uses(id) {
		step = max(1, p.Count()-1) // to the last element
	}
	for i := 0; i < p.Count(); i += step {
		key, child := p.Branch(i)
		from, to, err := db.keyRange(ctx, child, depth+1)
		if err != nil {
			return nil, nil, err
		}
		if from != nil && bytes.Compare(key, from) > 0 || last != nil && bytes.Compare(last, key) >= 0 {
			return nil, nil, fmt.Errorf("%w: page %d: element %d does not lead to the keys of page %d",
				ErrDamaged, id, i, child)
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

// CheckTight checks that the image has no other bytes than the metas of db.Meta, the elements of
// all pages, and zeros after the last element of each page.
func (db *DB) CheckTight(ctx context.Context) error {
	if !bytes.HasPrefix(db.Image, db.Meta.Pages()) {
		return errors.New("the meta pages hold more than the metas")
	}
	for id := uint64(2); id < db.HighWater; {
		p, err := db.Page(id)
		if err := cmp.Or(ctx.Err(), err); err != nil {
			return err
		}
		if !p.tight() {
			return fmt.Errorf("page %d holds more than its elements", id)
		}
		id += uint64(p.Overflow()) + 1
	}
	for i := range db.Buckets {
		if b := &db.Buckets[i]; b.Root == 0 && !b.Inline.tight() {
			return fmt.Errorf("inline bucket %q holds more than its elements", b.Name)
		}
	}
	return nil
}
