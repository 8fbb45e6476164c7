package snapshot

import (
	"context"
	"errors"
	"iter"
)

// scrubTo writes s without any record of the keys that e.scrub names, with changes and grants on top, to o and reads that back.
func (s *Snapshot) scrubTo(ctx context.Context, o output, e edit) (WriteResult, error) {
	var a *appender // of the last pass
	sources := make([]bucketSource, 0, len(s.buckets)+1)
	for _, b := range s.withLeaseBucket(e.grants) {
		src := bucketSource{name: b.name, sequence: b.sequence}
		switch {
		case b.name == "key":
			src.entries = func() iter.Seq2[element, error] {
				a = nil
				return s.scrubbed(ctx, e, &a)
			}
		case b.name == leaseBucket && len(e.grants) > 0:
			src = s.leaseSource(ctx, e.grants)
		default:
			src.entries = func() iter.Seq2[element, error] { return s.elements(ctx, &b) }
		}
		sources = append(sources, src)
	}
	m := s.meta
	m.txid++
	out, d, err := writeNew(ctx, o, m, sources)
	if err != nil {
		return WriteResult{}, err
	}
	defer func() { _ = out.Close() }()
	return o.approve(ctx, out, d, WriteResult{Revision: a.rev, Keys: a.keys, Appended: a.n, Scrubbed: a.scrubbed})
}

// scrubbed yields the entries of the key bucket of a scrubbed file. What it counts is in the appender that it makes.
func (s *Snapshot) scrubbed(ctx context.Context, e edit, counted **appender) iter.Seq2[element, error] {
	return func(yield func(element, error) bool) {
		a, err := newAppender(ctx, s)
		if err != nil {
			yield(element{}, err)
			return
		}
		a.scrub, *counted = e.scrub, a
		for _, part := range []iter.Seq2[element, error]{a.left(ctx), a.records(ctx, e.changes), a.last()} {
			for el, err := range part {
				if !yield(el, err) || err != nil {
					return
				}
			}
		}
	}
}

// left yields the entries of src but for the records of keys that are scrubbed, which it counts.
func (a *appender) left(ctx context.Context) iter.Seq2[element, error] {
	return func(yield func(element, error) bool) {
		x, err := a.src.index(ctx)
		if err != nil {
			yield(element{}, err)
			return
		}
		var rec Record
		ordinal := uint32(0)
		for el, err := range a.src.elements(ctx, a.src.bucket("key")) {
			if err == nil {
				err = parseRecord(el.key, el.value, &rec)
			}
			gone := err == nil && len(rec.Key) > 0 && a.scrub(rec.Key)
			if gone {
				a.scrubbed++
				if x.isLive(ordinal) {
					a.keys--
				}
			}
			ordinal++
			if !gone && (!yield(el, err) || err != nil) {
				return
			}
		}
	}
}

// last yields the record without key and value that keeps the revision from going back (etcd
// etcdutl/snapshot/v3_snapshot.go, unsafeBumpBucketsRevision).
func (a *appender) last() iter.Seq2[element, error] {
	return func(yield func(element, error) bool) {
		if a.rev >= maxRevision {
			yield(element{}, errors.New("no revision is left"))
			return
		}
		a.rev++
		yield(element{key: appendRevisionKey(nil, Revision{Main: a.rev}, false)}, nil)
	}
}
