package snapshot

import (
	"bytes"
	"context"
	"iter"
)

// Live yields the latest record of each key that begins with prefix and is not deleted, in revision order (not in key
// order): the order in which the file holds them, so that the whole is one pass. An error ends the sequence. Records are
// valid until Close; the Record itself is used again for the next one.
func (s *Snapshot) Live(ctx context.Context, prefix []byte) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		x, err := s.index(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		s.scan(ctx, func(leaf, elem int) bool { return x.isLive(leaf, elem) }, func(r *Record, err error) bool {
			if err == nil && !bytes.HasPrefix(r.Key, prefix) {
				return true
			}
			return yield(r, err)
		})
	}
}

// History yields every record of one key that the file still holds, oldest first, tombstones included. What a compaction
// removed is gone. Errors and validity are those of Live.
func (s *Snapshot) History(ctx context.Context, key []byte) iter.Seq2[*Record, error] {
	return s.matching(ctx, func(r *Record) bool { return bytes.Equal(r.Key, key) })
}

// Records yields every record of the file in revision order, superseded ones, tombstones and the empty-key records of
// --bump-revision included. Errors and validity are those of Live.
func (s *Snapshot) Records(ctx context.Context) iter.Seq2[*Record, error] {
	return s.matching(ctx, func(*Record) bool { return true })
}

func (s *Snapshot) matching(ctx context.Context, want func(*Record) bool) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		if _, err := s.index(ctx); err != nil { // checks each record and their order
			yield(nil, err)
			return
		}
		s.scan(ctx, nil, func(r *Record, err error) bool {
			if err == nil && !want(r) {
				return true
			}
			return yield(r, err)
		})
	}
}

// scan decodes the records that want names (all when nil) in revision order until yield returns false.
func (s *Snapshot) scan(ctx context.Context, want func(leaf, elem int) bool, yield func(*Record, error) bool) {
	b := s.bucket("key")
	var rec Record
	for i := range b.leafCount() {
		if i%256 == 0 && ctx.Err() != nil {
			yield(nil, ctx.Err())
			return
		}
		p, err := s.guardedLeaf(b, i)
		if err != nil {
			yield(nil, s.wrap(err))
			return
		}
		for j := range p.count() {
			if want != nil && !want(i, j) {
				continue
			}
			err := s.guard(func() error {
				_, k, v := p.leaf(j)
				return parseRecord(k, v, &rec)
			})
			if err != nil {
				yield(nil, s.wrap(s.leafError(b, i, err)))
				return
			}
			if !yield(&rec, nil) {
				return
			}
		}
	}
}

func (s *Snapshot) guardedLeaf(b *bucket, i int) (p page, err error) {
	err = s.guard(func() error {
		p, err = s.leafPage(b, i)
		return err
	})
	return p, err
}

// Get returns the latest record of key, nil when there is none or it is deleted.
func (s *Snapshot) Get(ctx context.Context, key []byte) (*Record, error) {
	rec, _, err := s.latest(ctx, key)
	if err != nil || rec == nil || rec.Tombstone {
		return nil, err
	}
	return rec, nil
}

// latest is Get with tombstones, and with the ordinal of the record.
func (s *Snapshot) latest(ctx context.Context, key []byte) (rec *Record, ordinal uint32, err error) {
	x, err := s.index(ctx)
	if err != nil {
		return nil, 0, err
	}
	err = s.guard(func() error {
		var r Record
		sl, err := s.find(x, s.bucket("key"), x.hash(key), key, &r)
		if err == nil && sl.used() {
			rec, ordinal = &r, sl.ordinal()
		}
		return err
	})
	return rec, ordinal, s.wrap(err)
}
