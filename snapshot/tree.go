package snapshot

import (
	"bytes"
	"fmt"
)

// appendTree returns the root of a tree that holds what the tree below root holds and behind it the given leaves. Old pages stay
// as they are; only the branches on the right edge are written anew. The old pages they replace become free: a server finds
// them when it rebuilds its free list.
func (s *Snapshot) appendTree(w *pageWriter, root uint64, leaves []element) (uint64, error) {
	spine, err := s.rightSpine(root)
	if err != nil {
		return 0, err
	}
	last := spine[len(spine)-1]
	cur := leaves
	if last.count() > 0 { // the root leaf of an empty bucket has nothing to keep
		_, first, _ := last.leaf(0)
		cur = append([]element{{key: first, child: last.id()}}, leaves...)
	}
	for l := len(spine) - 2; l >= 0; l-- {
		if cur, err = w.branches(rightEdge(spine[l], cur)); err != nil {
			return 0, err
		}
	}
	for len(cur) > 1 {
		if cur, err = w.branches(cur); err != nil {
			return 0, err
		}
	}
	return cur[0].child, nil
}

// rightSpine returns the pages from root down to the last leaf.
func (s *Snapshot) rightSpine(root uint64) ([]page, error) {
	var spine []page
	for id := root; ; {
		p, err := s.page(id)
		if err != nil {
			return nil, s.wrap(err)
		}
		spine = append(spine, p)
		if p.isLeaf() {
			return spine, nil
		}
		_, id = p.branch(p.count() - 1)
	}
}

// rightEdge returns the elements of branch p with its last child replaced by kids. The first of them keeps the key that the
// branch has for it.
func rightEdge(p page, kids []element) []element {
	n := p.count()
	out := make([]element, 0, n+len(kids))
	for i := range n {
		key, child := p.branch(i)
		out = append(out, element{key: key, child: child})
	}
	kids[0].key = out[n-1].key
	return append(out[:n-1], kids...)
}

// replaceBucket returns the root of the tree below the root page with the header of the named bucket replaced. A root of several
// levels, or with overflow pages, stays what it is: the one leaf and the branches above it are written anew.
func (s *Snapshot) replaceBucket(w *pageWriter, name string, header []byte) (uint64, error) {
	type step struct {
		p page
		i int
	}
	var path []step
	p, err := s.page(s.meta.root)
	for err == nil && p.isBranch() {
		i := lastNotAfter(p, []byte(name))
		path = append(path, step{p, i})
		_, child := p.branch(i)
		p, err = s.page(child)
	}
	var elems []element
	if err == nil {
		elems, err = replaceElement(p, name, header)
	}
	if err != nil {
		return 0, s.wrap(err)
	}
	id, err := w.emit(flagLeaf, elems)
	for l := len(path) - 1; err == nil && l >= 0; l-- {
		elems := make([]element, path[l].p.count())
		for i := range elems {
			elems[i].key, elems[i].child = path[l].p.branch(i)
		}
		elems[path[l].i].child = id
		id, err = w.emit(flagBranch, elems)
	}
	return id, err
}

// lastNotAfter returns the child of branch p below which key lies.
func lastNotAfter(p page, key []byte) int {
	at := 0
	for i := range p.count() {
		if k, _ := p.branch(i); bytes.Compare(k, key) <= 0 {
			at = i
		}
	}
	return at
}

func replaceElement(p page, name string, value []byte) ([]element, error) {
	elems := make([]element, p.count())
	found := false
	for i := range elems {
		elems[i].flags, elems[i].key, elems[i].value = p.leaf(i)
		if string(elems[i].key) == name {
			elems[i].value, found = value, true
		}
	}
	if !found {
		return nil, fmt.Errorf("%w: bucket %q is not below the branch that should lead to it", ErrDamaged, name)
	}
	return elems, nil
}
