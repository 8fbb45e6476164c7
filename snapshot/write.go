package snapshot

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"

	"github.com/etcdshift/etcdshift/publish"
)

// WriteConfig is what Write does beside appending changes. Its zero value adds nothing.
type WriteConfig struct {
	// Leases are granted beside those that the file has, as a server would store them. An id that is not positive, is there
	// already or is granted twice is ErrConflict.
	Leases []Lease
	// Scrub, where it is set, makes the output a file of new pages alone, in which no byte of a key that it names is left: every
	// record of one is left out, of whatever revision, superseded ones and tombstones too. All other records and all other
	// buckets are what they were, and the changes are appended; one of a key that is scrubbed must be a deletion, and leaves no
	// record. So that the revision never goes back the file ends with one record without key and value at the next
	// revision, as "etcdutl snapshot restore --bump-revision" leaves one. It must say the same of a key each time.
	Scrub func(key []byte) bool
	// Check, where it is set, is called with the output, read back and compared, before that gets its name; with an error of it,
	// nothing is left. The digest of out was not computed again.
	Check func(ctx context.Context, out *Snapshot) error
}

// Write makes a new snapshot at path: the records of src with changes on top, each at a revision of its own, exactly as if a
// server had been given them one after the other. Old pages are copied byte for byte; new leaves and a new right edge of the
// tree follow them. The file appears under its name when it was read back, found right and synced, and when the digest of
// src was found right; on any error nothing is left. path must not exist (fs.ErrExist). An src with anything that Verify would
// find is refused (ErrDamaged).
//
// changes is ranged over twice and must yield the same both times. Without changes, leases and scrubbing the output is src byte
// for byte, or, for a raw database file, its image with both metas of the newest transaction, and a digest. Memory is bounded but
// for a few bytes a change.
func Write(ctx context.Context, path string, src *Snapshot, changes iter.Seq2[Change, error], cfg WriteConfig) (WriteResult, error) {
	f, err := publish.Create(path)
	if err != nil {
		return WriteResult{}, err
	}
	defer func() { _ = f.Discard() }()
	var res WriteResult
	err = src.guard(func() error {
		res, err = writeTo(ctx, f.File(), path, src, changes, cfg)
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

func writeTo(ctx context.Context, f *os.File, path string, src *Snapshot, changes iter.Seq2[Change, error], cfg WriteConfig) (res WriteResult, err error) {
	if err := src.sound(ctx); err != nil {
		return WriteResult{}, err
	}
	grants, err := grantEntries(cfg.Leases)
	if err != nil {
		return WriteResult{}, outputError(path, err)
	}
	if cfg.Scrub != nil {
		res, err = src.scrubTo(ctx, f, path, changes, grants, cfg.Scrub)
	} else {
		res, err = src.appendTo(ctx, f, path, changes, grants)
	}
	if err == nil {
		err = checkWith(ctx, f, path, cfg.Check)
	}
	if err != nil {
		return WriteResult{}, outputError(path, err)
	}
	info, err := f.Stat()
	if err != nil {
		return WriteResult{}, outputError(path, err)
	}
	res.Bytes = info.Size()
	return res, nil
}

// outputError names the output once: the file under construction may have another name, or none.
func outputError(path string, err error) error {
	return fmt.Errorf("write %s: %w", path, reason(err))
}

// checkWith calls check with the written file.
func checkWith(ctx context.Context, f *os.File, path string, check func(context.Context, *Snapshot) error) error {
	if check == nil {
		return nil
	}
	out, err := openFile(ctx, f, path, Config{SkipDigest: true})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrVerify, err)
	}
	defer func() { _ = out.Close() }()
	return check(ctx, out)
}

// appendTo writes s with the changes and the leases on top to f and reads that back.
func (s *Snapshot) appendTo(ctx context.Context, f *os.File, path string, changes iter.Seq2[Change, error], grants []element) (WriteResult, error) {
	a, err := newAppender(ctx, s)
	if err != nil {
		return WriteResult{}, err
	}
	w := &pageWriter{out: f, pageSize: s.meta.pageSize, next: s.meta.highWater}
	m, err := s.layOut(ctx, w, a, changes, grants)
	if err != nil {
		return WriteResult{}, err
	}
	sum, err := s.copyTo(ctx, f, m)
	if err != nil {
		return WriteResult{}, err
	}
	if err := s.checkOutput(ctx, f, path, a.n, changes, grants); err != nil {
		return WriteResult{}, err
	}
	return WriteResult{Revision: a.rev, Keys: a.keys, SHA256: fmt.Sprintf("%x", sum), Appended: a.n}, nil
}

// layOut writes the new pages behind the old ones and returns the metas that make them count. Without any change the meta of a
// snapshot is nil: its metas stay. A raw file gets new ones all the same, because one of its own is older, or torn.
func (s *Snapshot) layOut(ctx context.Context, w *pageWriter, a *appender, changes iter.Seq2[Change, error], grants []element) (*meta, error) {
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
	if a.n == 0 && len(grants) == 0 && !s.raw {
		return nil, nil
	}
	var renewed []element
	if a.n > 0 {
		if err := lb.flush(); err != nil {
			return nil, err
		}
		root, err := s.newKeyRoot(w, b, lb.leaves)
		if err != nil {
			return nil, err
		}
		renewed = append(renewed, element{key: []byte(b.name), value: bucketHeader(root, b.sequence)})
	}
	if len(grants) > 0 {
		header, err := w.bucket(s.leaseSource(ctx, grants))
		if err != nil {
			return nil, err
		}
		renewed = append(renewed, element{key: []byte(leaseBucket), value: header})
	}
	m := s.meta
	if len(renewed) > 0 {
		var err error
		if m.root, err = s.renewBuckets(w, renewed); err != nil {
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
	return w.above(leaves)
}
