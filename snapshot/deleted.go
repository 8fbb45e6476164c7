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

// Deleted yields each key with the prefix whose latest record is a tombstone, in the order of the
// deletions. A compaction removes tombstones below its revision: the window is that of Kept, in
// Kubernetes some minutes. Memory is a few bytes a deletion.
func (s *Snapshot) Deleted(ctx context.Context, prefix []byte) iter.Seq2[*Deletion, error] {
	return indexed(ctx, s, func(x *index, yield func(*Deletion) error) error {
		last, err := x.deletions(ctx, prefix)
		if err != nil {
			return err
		}
		for _, at := range slices.Sorted(maps.Keys(last)) {
			var tombstone, put Record
			err := x.read(func() error {
				return cmp.Or(x.at(at, &tombstone), x.at(last[at], &put))
			})
			if err = cmp.Or(err, ctx.Err()); err != nil {
				return err
			}
			d := &Deletion{Key: tombstone.Key, Revision: tombstone.Revision}
			if !put.Tombstone {
				d.Last = &put
			}
			if err := yield(d); err != nil {
				return err
			}
		}
		return nil
	})
}

// deletions returns the ordinal of each tombstone that is the latest record of its key, with the
// ordinal of the last Put before it or, without one, its own. Only superseded records are read.
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
