package snapshot

import (
	"bytes"
	"context"
	"iter"
)

// indexed yields what fn yields, which is given the index of s.
func indexed[T any](
	ctx context.Context, s *Snapshot, fn func(x *index, yield func(T, error) bool),
) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		x, err := s.index(ctx)
		if err != nil {
			var none T
			yield(none, err)
			return
		}
		fn(x, yield)
	}
}

// Live yields the latest record of each key that begins with prefix and is not deleted, in revision
// order (not in key order): the order in which the file holds them, so that the whole is one pass.
// An error ends the sequence. Records are valid until Close; the Record itself is used again for
// the next one.
func (s *Snapshot) Live(ctx context.Context, prefix []byte) iter.Seq2[*Record, error] {
	return indexed(ctx, s, func(x *index, yield func(*Record, error) bool) {
		may := x.under(prefix)
		want := func(ordinal uint32) bool { return x.isLive(ordinal) && may(ordinal) }
		for rec, err := range x.scan(ctx, want) {
			if err == nil && !bytes.HasPrefix(rec.Key, prefix) {
				continue
			}
			if !yield(rec.Record, err) {
				return
			}
		}
	})
}

// History yields every record of one key that the file still holds, oldest first, tombstones
// included. What a compaction removed is gone. Errors and validity are those of Live.
func (s *Snapshot) History(ctx context.Context, key []byte) iter.Seq2[*Record, error] {
	return indexed(ctx, s, func(x *index, yield func(*Record, error) bool) {
		for rec, err := range x.scan(ctx, x.under(key)) {
			if err == nil && !bytes.Equal(rec.Key, key) {
				continue
			}
			if !yield(rec.Record, err) {
				return
			}
		}
	})
}

// Records yields every record of the file in revision order, superseded ones, tombstones and the
// empty-key records of --bump-revision included. Errors and validity are those of Live.
func (s *Snapshot) Records(ctx context.Context) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		for rec, err := range s.Scan(ctx) {
			if !yield(rec.Record, err) {
				return
			}
		}
	}
}

// Scanned is a record, and whether it is the live value of its key.
type Scanned struct {
	*Record
	Live   bool
	Stored int // bytes of the entry in the key bucket: revision key and KeyValue
}

// Scan yields what Records yields, and says of each whether it is the latest of its key and no
// deletion. Errors and validity are those of Live.
func (s *Snapshot) Scan(ctx context.Context) iter.Seq2[Scanned, error] {
	return indexed(ctx, s, func(x *index, yield func(Scanned, error) bool) {
		for rec, err := range x.scan(ctx, func(uint32) bool { return true }) {
			scanned := Scanned{Record: rec.Record}
			if err == nil {
				scanned.Live, scanned.Stored = x.isLive(rec.ordinal), rec.size()
			}
			if !yield(scanned, err) {
				return
			}
		}
	})
}

// Get returns the latest record of key, nil if there is none or it is deleted.
func (s *Snapshot) Get(ctx context.Context, key []byte) (*Record, error) {
	x, err := s.index(ctx)
	if err != nil {
		return nil, err
	}
	rec := new(Record)
	_, found, err := x.find(key, rec)
	if err != nil || !found || rec.Tombstone {
		return nil, err
	}
	return rec, nil
}

// Revision is the current revision of the store: what a server started on the file would answer.
func (s *Snapshot) Revision(ctx context.Context) (int64, error) {
	_, newest, err := s.Kept(ctx)
	return newest, err
}

// Keys is the number of live keys.
func (s *Snapshot) Keys(ctx context.Context) (int, error) {
	x, err := s.index(ctx)
	if err != nil {
		return 0, err
	}
	return x.alive, nil
}
