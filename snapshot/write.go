package snapshot

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"

	"github.com/etcdshift/etcdshift/publish"
)

// Write makes a new snapshot at path: the records of src with changes on top, each at a revision of its own, exactly as if a
// server had been given them one after the other. Old pages are copied byte for byte; new leaves and a new right edge of the
// tree follow them. The file appears under its name when it was read back, found right and synced, and when the digest of
// src was found right; on any error nothing is left. path must not exist (fs.ErrExist). An src with anything that Verify would
// find is refused (ErrDamaged).
//
// changes is ranged over twice and must yield the same both times. Without changes the output is src byte for byte, or, for a raw
// database file, its image with both metas of the newest transaction, and a digest. Memory is bounded but for a few bytes a change.
func Write(ctx context.Context, path string, src *Snapshot, changes iter.Seq2[Change, error]) (WriteResult, error) {
	f, err := publish.Create(path)
	if err != nil {
		return WriteResult{}, err
	}
	defer func() { _ = f.Discard() }()
	var res WriteResult
	err = src.guard(func() error {
		res, err = writeTo(ctx, f.File(), path, src, changes)
		return err
	})
	if err == nil {
		_, err = src.Digest(ctx)
	}
	if now := src.unchanged(); now != nil && !errors.Is(err, ErrChanged) {
		if err != nil { // what else went wrong came of that
			now = fmt.Errorf("%w: %v", now, err)
		}
		err = src.wrap(now)
	}
	if err != nil {
		return WriteResult{}, err
	}
	if err := f.Publish(); err != nil {
		return WriteResult{}, err
	}
	return res, nil
}

func writeTo(ctx context.Context, f *os.File, path string, src *Snapshot, changes iter.Seq2[Change, error]) (WriteResult, error) {
	if err := src.sound(ctx); err != nil {
		return WriteResult{}, err
	}
	a, err := newAppender(ctx, src)
	if err != nil {
		return WriteResult{}, err
	}
	w := &pageWriter{out: f, pageSize: src.meta.pageSize, next: src.meta.highWater}
	m, err := src.layOut(ctx, w, a, changes)
	if err != nil {
		return WriteResult{}, outputError(path, err)
	}
	sum, err := src.copyTo(ctx, f, m)
	if err != nil {
		return WriteResult{}, outputError(path, err)
	}
	if err := src.checkOutput(ctx, f, path, a.n, changes); err != nil {
		return WriteResult{}, outputError(path, err)
	}
	info, err := f.Stat()
	if err != nil {
		return WriteResult{}, outputError(path, err)
	}
	return WriteResult{Revision: a.rev, Keys: a.keys, Bytes: info.Size(), SHA256: fmt.Sprintf("%x", sum), Appended: a.n}, nil
}

// outputError names the output once: the file under construction may have another name, or none.
func outputError(path string, err error) error {
	return fmt.Errorf("write %s: %w", path, reason(err))
}

// layOut writes the new pages behind the old ones and returns the metas that make them count. Without any change the meta of a
// snapshot is nil: its metas stay. A raw file gets new ones all the same, because one of its own is older, or torn.
func (s *Snapshot) layOut(ctx context.Context, w *pageWriter, a *appender, changes iter.Seq2[Change, error]) (*meta, error) {
	b := s.bucket("key")
	lb := &leafBuilder{w: w}
	for el, err := range a.records(ctx, changes) {
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
	if a.n == 0 && !s.raw {
		return nil, nil
	}
	m := s.meta
	if a.n > 0 {
		if err := lb.flush(); err != nil {
			return nil, err
		}
		root, err := s.newKeyRoot(w, b, lb.leaves)
		if err != nil {
			return nil, err
		}
		header := le.AppendUint64(le.AppendUint64(nil, root), b.sequence)
		if m.root, err = s.replaceBucket(w, b.name, header); err != nil {
			return nil, err
		}
	}
	m.freelist, m.highWater, m.txid = noFreelist, w.next, m.txid+1
	return &m, w.flush()
}

// addInline gives the records of an inline bucket leaves of their own: the root leaf must not grow with what is appended.
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
	var err error
	for len(leaves) > 1 {
		if leaves, err = w.branches(leaves); err != nil {
			return 0, err
		}
	}
	return leaves[0].child, nil
}
