package report

import (
	"context"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/compare"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot"
)

// Difference lists the changes since an older snapshot, counted as by diff.
type Difference struct {
	Old          snapshot.FileInfo `json:"old"`
	SameCluster  compare.Same      `json:"sameCluster"`   // "yes", "no" or "unknown"
	Why          string            `json:"why,omitempty"` // why the common cluster is uncertain
	Summary      []compare.Count   `json:"summary"`       // by resource
	Total        compare.Count     `json:"total"`         // of Summary
	Objects      []Different       `json:"objects"`       // the first of each resource, without noise
	FoldedLeases int               `json:"foldedLeases"`  // etcd leases granted, ended or changed
}

// mostDifferent limits the length of Difference.Objects. Each resource adds at most Most objects.
const mostDifferent = 1000

// Different is an object that differs.
type Different struct {
	Op compare.Op `json:"op"`
	compare.Subject
}

func (out *Report) readBefore(ctx context.Context, r *inspect.Reader, o Options) (err error) {
	if o.Before == nil {
		return nil
	}
	d := &Difference{Objects: []Different{}}
	if d.Old, err = o.Before.Snapshot().Info(ctx); err != nil {
		return err
	}
	if d.SameCluster, d.Why, err = compare.SameCluster(ctx, o.Before, r); err != nil {
		return err
	}
	var summary compare.Summary
	named := map[string]int{} // by resource
	err = stream.Each(compare.Snapshots(ctx, o.Before, r, compare.Options{CountOnly: true}),
		func(object *compare.Object) error {
			if summary.Add(object); !object.Noise && named[object.Resource] < Most && len(d.Objects) < mostDifferent {
				named[object.Resource]++
				d.Objects = append(d.Objects, Different{object.Op, object.Subject})
			}
			return nil
		})
	if err != nil {
		return err
	}
	d.Summary, d.Total, out.Before = summary.Rows(), summary.Total(), d
	leases, err := compare.Leases(ctx, o.Before.Snapshot(), r.Snapshot())
	d.FoldedLeases = len(leases)
	return err
}
