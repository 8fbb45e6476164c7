package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
)

// CheckBranches checks that each branch below root has, for each child, a key that is not after the
// first one below the child and is after all below the child before: what a binary search relies
// on. Only branches and the ends of leaves are read. Root 0, that of an inline bucket, has none.
func (db *DB) CheckBranches(ctx context.Context, root uint64) error {
	if root == 0 {
		return nil
	}
	_, _, err := db.keyRange(ctx, root, 0)
	return err
}

// keyRange returns the first and last key below page id, nil for an empty leaf.
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
	for i := range p.Count() {
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

// CheckTight checks that no byte of the image lies outside of what its pages hold: the metas are
// those of db.Meta, and zeros follow the last element of a page.
func (db *DB) CheckTight(ctx context.Context) error {
	if !bytes.HasPrefix(db.Image, db.Meta.Pages()) {
		return errors.New("the meta pages hold more than the metas")
	}
	for id := uint64(2); id < db.HighWater; {
		if err := ctx.Err(); err != nil {
			return err
		}
		p, err := db.Page(id)
		if err != nil {
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
