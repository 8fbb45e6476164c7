package graft

import (
	"cmp"
	"context"
	"fmt"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/archive"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot"
)

// check proves that the output has each item with the value and TTL of the archive, and all other
// records of the input but the changed ones as they were. Errors wrap snapshot.ErrVerify.
func (r *run) check(ctx context.Context, out *inspect.Reader) error {
	leases, err := out.Snapshot().Leases(ctx)
	if err != nil {
		return err
	}
	before, after, found := archive.NewRest(), archive.NewRest(), 0
	add := func(sum *archive.Rest, rec *snapshot.Record) {
		if r.byKey[string(rec.Key)] == nil && !r.changed[string(rec.Key)] && len(rec.Key) > 0 {
			sum.Add(rec)
		}
	}
	err = cmp.Or(
		stream.Each(r.view.Reader().Snapshot().Live(ctx, nil), func(rec *snapshot.Record) error {
			add(before, rec)
			return nil
		}),
		stream.Each(out.Snapshot().Live(ctx, nil), func(rec *snapshot.Record) error {
			add(after, rec)
			if r.byKey[string(rec.Key)] != nil {
				found++
			}
			if r.changed[string(rec.Key)] {
				return nil
			}
			_, err := r.carrier.Check(ctx, out, rec, leases)
			return err
		}))
	if err == nil && found != len(r.items) {
		err = fmt.Errorf("%w: %d records of the archive are there, and not %d", snapshot.ErrVerify, found, len(r.items))
	}
	return cmp.Or(err, before.Sum().Check(after.Sum()))
}
