package purge

import (
	"context"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform/kcp/survey"
)

// recorded is where a file has records, of whatever revision, deletions among them.
type recorded map[survey.Place]bool

// readRecorded reads all records of a file.
func readRecorded(ctx context.Context, layouts keys.Layouts, r *inspect.Reader) (recorded, error) {
	all := recorded{}
	for rec, err := range r.Snapshot().Records(ctx) {
		if err != nil {
			return nil, err
		}
		k, _, err := layouts.Parse(rec.Key)
		if err != nil {
			continue
		}
		if at := (survey.PlaceOf(k)); !all[at] {
			all[at.Clone()] = true
		}
	}
	return all, nil
}
