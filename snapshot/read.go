package snapshot

import (
	"bytes"
	"context"
	"iter"

	"github.com/etcdshift/etcdshift/internal/stream"
)

// indexed is the stream of run, called with the index of s.
func indexed[T any](
	ctx context.Context, s *Snapshot, run func(x *index, yield func(T) error) error,
) iter.Seq2[T, error] {
	return stream.Of(func(yield func(T) error) error {
		x, err := s.index(ctx)
		if err != nil {
			return err
		}
		return run(x, yield)
	})
}

// Live yields the latest record of each key that begins with prefix and is not deleted, in revision
// order (not in key order): the order of the file, so that one pass reads all. An error ends the
// sequence. Records are valid until Close; the Record itself is used again for the next one.
func (s *Snapshot) Live(ctx context.Context, prefix []byte) iter.Seq2[*Record, error] {
	return indexed(ctx, s, func(x *index, yield func(*Record) error) error {
		return x.liveBelow(ctx, prefix, func(rec Scanned) error { return yield(rec.Record) })
	})
}

// Mark chooses the records of Marked by their keys. fn is called with each key while the index is
// built, by the first call that needs it: then it is too late for another Mark.
func (s *Snapshot) Mark(fn func(key []byte) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mark = fn
}

// Marked is Live without a prefix of the records that Mark chose, and reads no others. Where Mark
// came too late, it is Live.
func (s *Snapshot) Marked(ctx context.Context) iter.Seq2[*Record, error] {
	return indexed(ctx, s, func(x *index, yield func(*Record) error) error {
		want := func(ordinal uint32) bool { return x.marked[ordinal/64]&(1<<(ordinal%64)) != 0 && x.isLive(ordinal) }
		return x.scan(ctx, want, func(rec Scanned) error { return yield(rec.Record) })
	})
}

// liveBelow calls fn with the records of Live.
func (x *index) liveBelow(ctx context.Context, prefix []byte, fn func(Scanned) error) error {
	may := x.under(prefix)
	want := func(ordinal uint32) bool { return x.isLive(ordinal) && may(ordinal) }
	return x.scan(ctx, want, func(rec Scanned) error {
		if !bytes.HasPrefix(rec.Key, prefix) {
			return nil
		}
		return fn(rec)
	})
}

// Newest yields the last n records of Live without a prefix, in its order, and reads no others.
func (s *Snapshot) Newest(ctx context.Context, n int) iter.Seq2[*Record, error] {
	if live, ok := s.newest(ctx, n); ok {
		return stream.Of(func(yield func(*Record) error) error {
			for _, rec := range live {
				if err := yield(rec); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return indexed(ctx, s, func(x *index, yield func(*Record) error) error {
		first := uint32(x.total())
		for ; first > 0 && n > 0; first-- {
			if x.isLive(first - 1) {
				n--
			}
		}
		want := func(ordinal uint32) bool { return ordinal >= first && x.isLive(ordinal) }
		return x.scan(ctx, want, func(rec Scanned) error { return yield(rec.Record) })
	})
}

// History yields every record of one key that the file still holds, oldest first, tombstones
// included, but none that a compaction removed. Errors and validity are those of Live.
func (s *Snapshot) History(ctx context.Context, key []byte) iter.Seq2[*Record, error] {
	return indexed(ctx, s, func(x *index, yield func(*Record) error) error {
		return x.scan(ctx, x.under(key), func(rec Scanned) error {
			if !bytes.Equal(rec.Key, key) {
				return nil
			}
			return yield(rec.Record)
		})
	})
}

// Records yields every record of the file in revision order, superseded ones, tombstones and the
// empty-key records of --bump-revision included. Errors and validity are those of Live.
func (s *Snapshot) Records(ctx context.Context) iter.Seq2[*Record, error] {
	return stream.Of(func(yield func(*Record) error) error {
		return stream.Each(s.Scan(ctx), func(rec Scanned) error { return yield(rec.Record) })
	})
}

// Scanned is a record, and whether it is the live value of its key.
type Scanned struct {
	*Record
	Live   bool
	Stored int // bytes of the entry in the key bucket: revision key and KeyValue

	ordinal uint32
}

// Scan yields the records of Records, and whether each is the latest of its key and no deletion.
// Errors and validity are those of Live.
func (s *Snapshot) Scan(ctx context.Context) iter.Seq2[Scanned, error] {
	return indexed(ctx, s, func(x *index, yield func(Scanned) error) error {
		return x.scan(ctx, func(uint32) bool { return true }, yield)
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

// Revision is the current revision of the store: the answer of a server started on the file.
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
