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
	Last     *Record  // the last Put before it; nil if a compaction has removed that
}

// Deleted yields each key that begins with prefix and whose latest record is a tombstone that the
// file still holds, in the order in which they were deleted. A compaction removes tombstones with
// what they deleted, but for one at the very revision of the compaction, so the window is that of
// Kept, in Kubernetes some minutes. Memory is a few bytes a deletion.
func (s *Snapshot) Deleted(ctx context.Context, prefix []byte) iter.Seq2[*Deletion, error] {
	return indexed(ctx, s, func(x *index, yield func(*Deletion, error) bool) {
		last, err := x.deletions(ctx, prefix)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, ordinal := range slices.Sorted(maps.Keys(last)) {
			d, err := x.deletion(ordinal, last[ordinal])
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
	})
}

// deletions returns the ordinals of the tombstones that are the latest record of their key, each
// with that of the last Put before it or, if there is none, with its own. Only records that were
// superseded are read.
func (x *index) deletions(ctx context.Context, prefix []byte) (map[uint32]uint32, error) {
	last := map[uint32]uint32{}
	may := x.under(prefix)
	var latest Record
	dead := func(ordinal uint32) bool { return !x.isLive(ordinal) && may(ordinal) }
	for rec, err := range x.scan(ctx, dead) {
		if err != nil {
			return nil, err
		}
		if len(rec.Key) == 0 || !bytes.HasPrefix(rec.Key, prefix) {
			continue
		}
		at, _, err := x.find(rec.Key, &latest)
		if err != nil {
			return nil, err
		}
		if !latest.Tombstone {
			continue
		}
		if _, known := last[at]; !known || !rec.Tombstone {
			last[at] = rec.ordinal
		}
	}
	return last, nil
}

// deletion decodes the tombstone with the given ordinal and the Put before it.
func (x *index) deletion(tombstone, last uint32) (*Deletion, error) {
	d := &Deletion{}
	var rec, put Record
	err := x.read(func() error {
		if err := x.at(tombstone, &rec); err != nil {
			return err
		}
		return x.at(last, &put)
	})
	d.Key, d.Revision = rec.Key, rec.Revision
	if !put.Tombstone {
		d.Last = &put
	}
	return d, err
}
