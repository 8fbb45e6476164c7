package snapshot

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
	return w.above(cur)
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
