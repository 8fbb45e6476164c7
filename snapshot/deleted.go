package snapshot

import (
	"bytes"
	"cmp"
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
// file still holds, in the order of the deletions. A compaction removes tombstones older than its
// revision, so the window is that of Kept, in Kubernetes some minutes. Memory is a few bytes a
// deletion.
func (s *Snapshot) Deleted(ctx context.Context, prefix []byte) iter.Seq2[*Deletion, error] {
	return indexed(ctx, s, func(x *index, yield func(*Deletion) error) error {
		last, err := x.deletions(ctx, prefix)
		if err != nil {
			return err
		}
		for _, ordinal := range slices.Sorted(maps.Keys(last)) {
			d, err := x.deletion(ordinal, last[ordinal])
			if err = cmp.Or(err, ctx.Err()); err == nil {
				err = yield(d)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// deletions returns the ordinals of the tombstones that are the latest record of their key, each
// with the ordinal of the last Put before it or, without one, with its own. Only superseded records
// are read.
func (x *index) deletions(ctx context.Context, prefix []byte) (map[uint32]uint32, error) {
	last := map[uint32]uint32{}
	may := x.under(prefix)
	var latest Record
	dead := func(ordinal uint32) bool { return !x.isLive(ordinal) && may(ordinal) }
	return last, x.scan(ctx, dead, func(rec Scanned) error {
		if len(rec.Key) == 0 || !bytes.HasPrefix(rec.Key, prefix) {
			return nil
		}
		at, _, err := x.find(rec.Key, &latest)
		if err != nil || !latest.Tombstone {
			return err
		}
		if _, known := last[at]; !known || !rec.Tombstone {
			last[at] = rec.ordinal
		}
		return nil
	})
}

// deletion decodes the tombstone with the given ordinal and the Put before it.
func (x *index) deletion(tombstone, last uint32) (*Deletion, error) {
	var rec, put Record
	err := x.read(func() error {
		return cmp.Or(x.at(tombstone, &rec), x.at(last, &put))
	})
	d := &Deletion{Key: rec.Key, Revision: rec.Revision}
	if !put.Tombstone {
		d.Last = &put
	}
	return d, err
}
