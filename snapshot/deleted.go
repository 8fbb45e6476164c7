package snapshot

import (
	"bytes"
	"context"
	"iter"
	"maps"
	"slices"
)

// Deletion is a key that was deleted and not created again. Its bytes are valid until Close.
type Deletion struct {
	Key      []byte
	Revision Revision // of the tombstone
	Last     *Record  // the last Put before it; nil where a compaction has removed that
}

// Deleted yields each key that begins with prefix and whose latest record is a tombstone that the file still holds, in the order in
// which they were deleted. A compaction removes tombstones with what they deleted, but for one at the very revision of the
// compaction, so the window is that of Kept, in Kubernetes some minutes. Memory is a few bytes a deletion.
func (s *Snapshot) Deleted(ctx context.Context, prefix []byte) iter.Seq2[*Deletion, error] {
	return func(yield func(*Deletion, error) bool) {
		x, err := s.index(ctx)
		var last map[uint32]uint32
		if err == nil {
			last, err = s.deletions(ctx, x, prefix)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		for _, ordinal := range slices.Sorted(maps.Keys(last)) {
			d, err := s.deletion(x, ordinal, last[ordinal])
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(d, nil) {
				return
			}
		}
	}
}

// deletions returns the ordinals of the tombstones that are the latest record of their key, each with that of the last Put before it
// or, where there is none, with its own. Only records that were superseded are read.
func (s *Snapshot) deletions(ctx context.Context, x *index, prefix []byte) (last map[uint32]uint32, err error) {
	last = map[uint32]uint32{}
	may := x.under(prefix)
	var latest Record
	dead := func(ordinal uint32) bool { return !x.isLive(ordinal) && may[x.of[ordinal]] }
	s.scan(ctx, x, dead, func(ordinal uint32, r *Record, scanErr error) bool {
		if err = scanErr; err != nil || len(r.Key) == 0 || !bytes.HasPrefix(r.Key, prefix) {
			return err == nil
		}
		var at uint32
		err = s.wrap(s.guard(func() (err error) {
			at, _, err = s.find(&x.table, x, s.bucket("key"), r.Key, &latest)
			return err
		}))
		if err != nil || !latest.Tombstone {
			return err == nil
		}
		if _, known := last[at]; !known || !r.Tombstone {
			last[at] = ordinal
		}
		return true
	})
	return last, err
}

// deletion decodes the tombstone with the given ordinal and the Put before it.
func (s *Snapshot) deletion(x *index, tombstone, last uint32) (*Deletion, error) {
	d := &Deletion{}
	var rec, put Record
	err := s.guard(func() error {
		if err := s.at(x, s.bucket("key"), tombstone, &rec); err != nil {
			return err
		}
		return s.at(x, s.bucket("key"), last, &put)
	})
	d.Key, d.Revision = rec.Key, rec.Revision
	if !put.Tombstone {
		d.Last = &put
	}
	return d, s.wrap(err)
}
