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
		may := x.under(prefix)
		want := func(ordinal uint32) bool { return x.isLive(ordinal) && may[x.of[ordinal]] }
		s.scan(ctx, x, want, func(_ uint32, r *Record, err error) bool {
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
	return s.matching(ctx, key, func(r *Record) bool { return bytes.Equal(r.Key, key) })
}

// Records yields every record of the file in revision order, superseded ones, tombstones and the empty-key records of
// --bump-revision included. Errors and validity are those of Live.
func (s *Snapshot) Records(ctx context.Context) iter.Seq2[*Record, error] {
	return s.matching(ctx, nil, func(*Record) bool { return true })
}

// matching yields the records that want names, all of which have keys that begin with prefix.
func (s *Snapshot) matching(ctx context.Context, prefix []byte, want func(*Record) bool) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		x, err := s.index(ctx) // checks each record and their order
		if err != nil {
			yield(nil, err)
			return
		}
		may := x.under(prefix)
		s.scan(ctx, x, func(ordinal uint32) bool { return may[x.of[ordinal]] }, func(_ uint32, r *Record, err error) bool {
			if err == nil && !want(r) {
				return true
			}
			return yield(r, err)
		})
	}
}

// wanted says by its ordinal whether a record is to be decoded, visit takes it, or an error, which ends the scan.
type (
	wanted func(ordinal uint32) bool
	visit  func(ordinal uint32, r *Record, err error) bool
)

// scan decodes the records that are wanted in revision order until yield returns false. Leaves without any are not touched.
func (s *Snapshot) scan(ctx context.Context, x *index, want wanted, yield visit) {
	b := s.bucket("key")
	rec := new(Record)
	for leaf := range b.leafCount() {
		if leaf%256 == 0 && ctx.Err() != nil {
			yield(0, nil, ctx.Err())
			return
		}
		first, end := x.start[leaf], x.end(leaf)
		for first < end && !want(first) {
			first++
		}
		if first < end && !s.scanLeaf(b, x, leaf, first, rec, want, yield) {
			return
		}
	}
}

// scanLeaf is scan for one leaf, from the record with ordinal first on, which is wanted.
func (s *Snapshot) scanLeaf(b *bucket, x *index, leaf int, first uint32, rec *Record, want wanted, yield visit) bool {
	p, err := s.guardedLeaf(b, leaf)
	if err != nil {
		yield(0, nil, s.wrap(err))
		return false
	}
	for i := first; i < x.end(leaf); i++ {
		if i != first && !want(i) {
			continue
		}
		err := s.guard(func() error {
			j := int(i - x.start[leaf])
			if j >= p.count() {
				return ErrChanged
			}
			_, k, v := p.leaf(j)
			return parseRecord(k, v, rec)
		})
		if err != nil {
			yield(i, nil, s.wrap(s.leafError(b, leaf, err)))
			return false
		}
		if !yield(i, rec, nil) {
			return false
		}
	}
	return true
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
		at, found, err := s.find(&x.table, x, s.bucket("key"), key, &r)
		if found {
			rec, ordinal = &r, at
		}
		return err
	})
	return rec, ordinal, s.wrap(err)
}
