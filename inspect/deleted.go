package inspect

import (
	"context"
	"errors"
	"iter"

	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot"
)

// ErrCompactedAway is the Err of a deleted object whose last value a compaction has removed.
var ErrCompactedAway = errors.New("deleted, and a compaction has removed its last value")

// Deletion is a key that was deleted and not created again.
type Deletion struct {
	Key      []byte
	Revision int64  // of the deletion
	Last     *Entry // its last value; nil where a compaction has removed it
}

// Deleted yields the keys that begin with prefix and are deleted at the last revision of the
// snapshot, in the order of the deletions, as far back as the snapshot keeps them. See
// snapshot.Deleted.
func (r *Reader) Deleted(ctx context.Context, prefix []byte) iter.Seq2[*Deletion, error] {
	return stream.Of(func(yield func(*Deletion) error) error {
		return stream.Each(r.deleted(ctx, prefix), func(d *snapshot.Deletion) (err error) {
			out := &Deletion{Key: d.Key, Revision: d.Revision.Main}
			if d.Last != nil {
				if out.Last, err = r.Entry(ctx, d.Last); err != nil {
					return err
				}
			}
			return yield(out)
		})
	})
}

func (r *Reader) deleted(ctx context.Context, prefix []byte) iter.Seq2[*snapshot.Deletion, error] {
	return seen(ctx, r, r.snapshot.Deleted(ctx, prefix), func(d *snapshot.Deletion) []byte { return d.Key })
}

// DeletedObject is an object as it was before its deletion.
type DeletedObject struct {
	*Object
	Revision int64 // of the deletion
}

// DeletedObjects yields the deleted objects of a type: see Deleted. An object that cannot be read,
// or whose last value is gone, is yielded with its Err.
func (r *Reader) DeletedObjects(ctx context.Context, t *Type, in Selection) iter.Seq2[*DeletedObject, error] {
	return stream.Of(func(yield func(*DeletedObject) error) error {
		layouts, err := r.Layouts(ctx)
		if err != nil {
			return err
		}
		for _, dir := range layouts.Dirs(t.Resource) {
			err := stream.Each(r.Deleted(ctx, dir), func(d *Deletion) error {
				key, _, err := layouts.Parse(d.Key)
				if err != nil || key.Resource != t.Resource || !in.Holds(key) {
					return nil
				}
				o := &Object{Entry: &Entry{Key: d.Key}, Type: t, Parsed: key, Err: ErrCompactedAway}
				if d.Last != nil {
					o = NewObject(t, d.Last)
				}
				return yield(&DeletedObject{o, d.Revision})
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}
