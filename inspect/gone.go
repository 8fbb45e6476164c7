package inspect

import (
	"context"
	"errors"
	"iter"
)

// ErrCompactedAway is the Err of a deleted object whose last value a compaction has removed.
var ErrCompactedAway = errors.New("deleted, and a compaction has removed its last value")

// DeletedObject is an object as it was before it was deleted.
type DeletedObject struct {
	*Object
	Revision int64 // at which it was deleted
}

// DeletedObjects yields the objects of a type that are gone, in the order in which they were deleted, as far back as the snapshot
// tells; see Deleted. An object that cannot be read, or is not there any more, is yielded with its Err.
func (r *Reader) DeletedObjects(ctx context.Context, t *Type, in Selection) iter.Seq2[*DeletedObject, error] {
	return func(yield func(*DeletedObject, error) bool) {
		layouts, err := r.Layouts(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, dir := range layouts.Dirs(t.Resource) {
			for d, err := range r.Deleted(ctx, dir) {
				if err != nil {
					yield(nil, err)
					return
				}
				key, _, err := layouts.Parse(d.Key)
				if err != nil || key.Resource != t.Resource || !in.holds(key) {
					continue
				}
				o := &Object{Entry: &Entry{Key: d.Key}, Type: t, Parsed: key, Err: ErrCompactedAway}
				if d.Last != nil {
					o = NewObject(t, d.Last)
				}
				if !yield(&DeletedObject{o, d.Revision}, nil) {
					return
				}
			}
		}
	}
}
