package graft

import (
	"bytes"
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
	rest := func(sum *archive.Rest) func(rec *snapshot.Record) error {
		return func(rec *snapshot.Record) error {
			it := r.byKey[string(rec.Key)]
			switch {
			case it != nil && sum == after:
				if found++; !r.changed[string(rec.Key)] {
					return r.checkItem(ctx, out, it, rec, leases[rec.Lease])
				}
			case it == nil && !r.changed[string(rec.Key)] && len(rec.Key) > 0:
				sum.Add(rec)
			}
			return nil
		}
	}
	err = cmp.Or(stream.Each(r.view.Reader().Snapshot().Live(ctx, nil), rest(before)),
		stream.Each(out.Snapshot().Live(ctx, nil), rest(after)))
	switch was, is := before.Sum(), after.Sum(); {
	case err != nil:
		return err
	case found != len(r.items):
		return fmt.Errorf("%w: %d records of the archive are there, and not %d", snapshot.ErrVerify, found,
			len(r.items))
	case was != is:
		return fmt.Errorf("%w: of all other live records there are %d with digest %s, and not %d with %s",
			snapshot.ErrVerify, is.Keys, is.SHA256, was.Keys, was.SHA256)
	}
	return nil
}

// checkItem compares a record of the output with the archive.
func (r *run) checkItem(ctx context.Context, out *inspect.Reader, it *item, rec *snapshot.Record, ttl int64) error {
	from, err := r.Archive.Get(ctx, it.from)
	if err != nil {
		return err
	}
	got := &inspect.Entry{Key: rec.Key, Stored: rec.Value}
	if err := out.Decrypt(ctx, got); err != nil {
		return err
	}
	switch same := bytes.Equal(got.Value, from.Value); {
	case from.Undecryptable != nil && !bytes.Equal(got.Stored, from.Stored), from.Undecryptable == nil && !same:
		return fmt.Errorf("%w: key %q: the value is not that of the archive", snapshot.ErrVerify, it.at)
	case r.carrier.TTL(from.Lease) != ttl:
		return fmt.Errorf("%w: key %q: the lease has a TTL of %d s, and not of %d", snapshot.ErrVerify, it.at, ttl,
			r.carrier.TTL(from.Lease))
	}
	return nil
}
