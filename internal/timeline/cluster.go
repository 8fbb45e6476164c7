package timeline

import (
	"cmp"
	"context"
	"slices"

	"github.com/etcdshift/etcdshift/internal/compare"
)

// Sort puts snapshots in the order of their revisions.
func Sort(ctx context.Context, sides []compare.Side) error {
	var failed error
	slices.SortStableFunc(sides, func(a, b compare.Side) int {
		x, err := a.Snapshot.Revision(ctx)
		y, other := b.Snapshot.Revision(ctx)
		failed = cmp.Or(failed, err, other)
		return cmp.Compare(x, y)
	})
	return failed
}
