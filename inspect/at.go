package inspect

import (
	"context"
	"iter"

	"github.com/etcdshift/etcdshift/snapshot"
)

// state is a snapshot at its last revision, or at one before.
type state struct {
	*snapshot.Snapshot
	past     bool
	revision int64 // where past
}

// Live is that of the snapshot, at the revision.
func (s state) Live(ctx context.Context, prefix []byte) iter.Seq2[*snapshot.Record, error] {
	if s.past {
		return s.LiveAt(ctx, prefix, s.revision)
	}
	return s.Snapshot.Live(ctx, prefix)
}

// Get is that of the snapshot, at the revision.
func (s state) Get(ctx context.Context, key []byte) (*snapshot.Record, error) {
	if s.past {
		return s.GetAt(ctx, key, s.revision)
	}
	return s.Snapshot.Get(ctx, key)
}

// At is a reader of the same snapshot as it was at revision rev, which finds the storage prefixes of that time. Reading fails with
// snapshot.ErrCompacted or snapshot.ErrFuture where the file does not keep rev.
func (r *Reader) At(rev int64) *Reader {
	at := *r
	at.snapshot.past, at.snapshot.revision = true, rev
	at.layouts = nil
	return &at
}

// deleted are the deletions of the snapshot that the reader sees.
func (r *Reader) deleted(ctx context.Context, prefix []byte) iter.Seq2[*snapshot.Deletion, error] {
	return seen(ctx, r, r.snapshot.Deleted(ctx, prefix), func(d *snapshot.Deletion) []byte { return d.Key })
}

// Deletion is a key that was deleted and not created again.
type Deletion struct {
	Key      []byte
	Revision int64  // at which it was deleted
	Last     *Entry // its last value; nil where a compaction has removed that
}

// Deleted yields the keys that begin with prefix and are gone at the last revision of the snapshot, in the order in which they were
// deleted, as far back as the snapshot tells. See snapshot.Deleted.
func (r *Reader) Deleted(ctx context.Context, prefix []byte) iter.Seq2[*Deletion, error] {
	return func(yield func(*Deletion, error) bool) {
		for d, err := range r.deleted(ctx, prefix) {
			if err != nil {
				yield(nil, err)
				return
			}
			out := &Deletion{Key: d.Key, Revision: d.Revision.Main}
			if d.Last != nil {
				out.Last, err = r.Entry(ctx, d.Last)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(out, nil) {
				return
			}
		}
	}
}
