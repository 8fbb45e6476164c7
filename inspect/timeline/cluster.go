package timeline

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/etcdshift/etcdshift/inspect/compare"
	"github.com/etcdshift/etcdshift/snapshot"
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

// SameCluster tells whether two snapshots are of one cluster: whether they have a live record in common, which those of a cluster
// that was restored in between have too. Member ids would not tell: etcd makes them of the members' addresses and the cluster's
// token, so that a cluster that was set up anew has the old ones.
func SameCluster(ctx context.Context, a, b *snapshot.Snapshot) (bool, error) {
	for rec, err := range a.Live(ctx, nil) {
		if err != nil {
			return false, err
		}
		other, err := b.Get(ctx, rec.Key)
		if err != nil {
			return false, err
		}
		if other != nil && other.Revision == rec.Revision && bytes.Equal(other.Value, rec.Value) {
			return true, nil
		}
	}
	return false, nil
}
