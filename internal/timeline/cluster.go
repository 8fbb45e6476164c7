package timeline

import (
	"cmp"
	"context"
	"slices"

	"github.com/etcdshift/etcdshift/snapshot"
)

// Sort puts snapshots in the order of their revisions.
func Sort[S interface{ Snapshot() *snapshot.Snapshot }](ctx context.Context, sides []S) error {
	var failed error
	slices.SortStableFunc(sides, func(a, b S) int {
		x, err := a.Snapshot().Revision(ctx)
		y, other := b.Snapshot().Revision(ctx)
		failed = cmp.Or(failed, err, other)
		return cmp.Compare(x, y)
	})
	return failed
}
