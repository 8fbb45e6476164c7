package compare

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
)

// Same is the answer of SameCluster.
type Same string

// The answers.
const (
	Yes     Same = "yes"
	No      Same = "no"
	Unknown Same = "unknown"
)

// SameCluster reports whether two snapshots are of one cluster, and the reason for doubt. The uid
// of namespace kube-system identifies a cluster, the uid of the LogicalCluster system:shard a shard
// of kcp: a restore keeps both. Otherwise a common live record decides. IDs of etcd are useless: a
// restore changes the cluster ID, and member IDs derive from addresses, which a new cluster may
// reuse.
func SameCluster(ctx context.Context, a, b *inspect.Reader) (same Same, why string, err error) {
	var found [2][]name
	for i, side := range []*inspect.Reader{a, b} {
		if found[i], err = names(ctx, side); err != nil {
			return "", "", err
		}
	}
	same = Unknown
	for _, n := range found[0] {
		for _, other := range found[1] {
			switch {
			case n == other:
				return Yes, "", nil
			case n.object == other.object && same == Unknown:
				same, why = No, fmt.Sprintf("%s has the uid %s in one and %s in the other", n.object, n.uid, other.uid)
			}
		}
	}
	if same == No {
		return same, why, nil
	}
	shared, empty, err := inCommon(ctx, a, b)
	switch {
	case err != nil:
		return "", "", err
	case shared:
		same = Yes
	case !empty: // an empty snapshot contradicts nothing
		why = "they have no record in common, and hold nothing that names the cluster"
	}
	return same, why, nil
}

// name is an object whose uid identifies the cluster.
type name struct{ object, uid string }

func names(ctx context.Context, side *inspect.Reader) (found []name, err error) {
	layouts, err := side.Layouts(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range layouts.Storages() {
		object, key := "namespace kube-system", keys.Key{Resource: schema.GroupResource{Resource: "namespaces"},
			Name: "kube-system"}
		switch s.Flavour {
		case keys.FlavourKCPShard:
			object = "LogicalCluster of system:shard"
			key = keys.Key{Resource: schema.GroupResource{Group: "core.kcp.io", Resource: "logicalclusters"},
				Custom: true, Cluster: "system:shard", Name: "cluster"}
		case keys.FlavourKCPCache, keys.FlavourOpenShift: // copies of other servers' objects
			continue
		}
		e, err := side.Get(ctx, s.Layout.Format(key))
		if err != nil {
			return nil, err
		}
		if e == nil || e.Undecryptable != nil {
			continue
		}
		if meta, err := encoding.ReadMeta(e.Value); err == nil && meta.UID != "" {
			found = append(found, name{object, meta.UID})
		}
	}
	return found, nil
}

// inCommon reports whether the snapshots have a common live record, and whether one is empty.
func inCommon(ctx context.Context, a, b *inspect.Reader) (shared, empty bool, err error) {
	count, err := b.Snapshot().Keys(ctx)
	if err != nil || count == 0 {
		return false, true, err
	}
	empty = true
	for rec, err := range a.Snapshot().Live(ctx, nil) {
		if err != nil {
			return false, false, err
		}
		empty = false
		other, err := b.Snapshot().Get(ctx, rec.Key)
		if err != nil {
			return false, false, err
		}
		if other != nil && other.Revision == rec.Revision && bytes.Equal(other.Value, rec.Value) {
			return true, false, nil
		}
	}
	return false, empty, nil
}

// Sort sorts snapshots by revision.
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
