package snapshot

import "context"

// appendTo writes s with the changes and grants of e on top to o and reads that back.
func (s *Snapshot) appendTo(ctx context.Context, o output, e edit) (WriteResult, error) {
	a, err := newAppender(ctx, s)
	if err != nil {
		return WriteResult{}, err
	}
	w := &pageWriter{out: o.file, pageSize: s.meta.pageSize, next: s.meta.highWater}
	m, err := s.layOut(ctx, w, a, e)
	if err != nil {
		return WriteResult{}, err
	}
	d, err := s.copyTo(ctx, o.file, m)
	if err != nil {
		return WriteResult{}, err
	}
	out, err := s.openOutput(ctx, o)
	if err != nil {
		return WriteResult{}, err
	}
	defer func() { _ = out.Close() }()
	if err := out.guard(func() error { return s.checkOutput(ctx, out, a.n, e) }); err != nil {
		return WriteResult{}, err
	}
	return o.approve(ctx, out, d, WriteResult{Revision: a.rev, Keys: a.keys, Appended: a.n})
}

// openOutput opens a copy of s.
func (s *Snapshot) openOutput(ctx context.Context, o output) (*Snapshot, error) {
	out, err := o.open(ctx)
	if err != nil {
		return nil, s.blame(ctx, err)
	}
	return out, nil
}

// layOut writes the new pages behind the old ones and returns the metas that make them count. Without any change the meta of a
// snapshot is nil: its metas stay. A raw file gets new ones all the same, because one of its own is older, or torn; so does one
// whose metas lead to a wrong free list.
func (s *Snapshot) layOut(ctx context.Context, w *pageWriter, a *appender, e edit) (*meta, error) {
	lb, err := s.appendedLeaves(ctx, w, a, e)
	if err != nil {
		return nil, err
	}
	if a.n == 0 && len(e.grants) == 0 && !s.raw && s.FreeList() == nil {
		return nil, nil
	}
	var renewed []element // of the root bucket, sorted
	if a.n > 0 {
		b := s.bucket("key")
		root, err := s.newKeyRoot(w, b, lb.leaves)
		if err != nil {
			return nil, err
		}
		renewed = append(renewed, element{key: []byte(b.name), value: bucketHeader(root, b.sequence)})
	}
	if len(e.grants) > 0 {
		value, err := w.bucket(s.leaseSource(ctx, e.grants))
		if err != nil {
			return nil, err
		}
		renewed = append(renewed, element{key: []byte(leaseBucket), value: value})
	}
	m := s.meta
	if len(renewed) > 0 {
		if m.root, err = s.renewBuckets(w, renewed); err != nil {
			return nil, err
		}
	}
	m.freelist, m.highWater, m.txid = noFreelist, w.next, m.txid+1
	return &m, w.flush()
}

// appendedLeaves writes the leaves with the records of the changes. The records of an inline bucket get leaves of their own before
// them: the root leaf must not grow with what is appended.
func (s *Snapshot) appendedLeaves(ctx context.Context, w *pageWriter, a *appender, e edit) (*leafBuilder, error) {
	b := s.bucket("key")
	lb := &leafBuilder{w: w}
	for el, err := range a.records(ctx, e.changes) {
		if err == nil && a.n == 1 && b.root == 0 {
			err = addInline(lb, b.inline)
		}
		if err == nil {
			err = lb.add(el)
		}
		if err != nil {
			return nil, err
		}
	}
	return lb, lb.flush()
}

func addInline(lb *leafBuilder, p page) error {
	for i := range p.count() {
		flags, k, v := p.leaf(i)
		if err := lb.add(element{flags: flags, key: k, value: v}); err != nil {
			return err
		}
	}
	return nil
}

// newKeyRoot returns the root page of the key bucket with leaves behind what it has.
func (s *Snapshot) newKeyRoot(w *pageWriter, b *bucket, leaves []element) (uint64, error) {
	if b.root != 0 {
		return s.appendTree(w, b.root, leaves)
	}
	return w.above(leaves)
}

// renewBuckets writes the root bucket anew, with the given values in place of the old ones or beside them, and returns its root page.
func (s *Snapshot) renewBuckets(w *pageWriter, renewed []element) (uint64, error) {
	root := newLeafBuilder(w)
	for i, n := 0, 0; i < len(s.buckets) || n < len(renewed); {
		var name string
		var value []byte
		switch {
		case n == len(renewed) || (i < len(s.buckets) && s.buckets[i].name < string(renewed[n].key)):
			b := &s.buckets[i]
			name, value = b.name, append(bucketHeader(b.root, b.sequence), b.inline...)
			i++
		default:
			name, value = string(renewed[n].key), renewed[n].value
			if i < len(s.buckets) && s.buckets[i].name == name {
				i++
			}
			n++
		}
		if err := root.addBucket(name, value); err != nil {
			return 0, err
		}
	}
	return root.root()
}
