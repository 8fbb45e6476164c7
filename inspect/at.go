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
