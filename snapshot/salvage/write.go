package salvage

import (
	"cmp"
	"context"
	"errors"
	"iter"

	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

// Write makes a sound snapshot of the sure records, published by out under the name path. With
// unsure it also has the newest record of each key of Report.Unsure. The output is compacted
// at the last lost revision, and at least at the compact revision of the files: it has no state
// that is known to be incomplete. check, which may be nil, is called as in [WriteConfig].
func (r *Remains) Write(
	ctx context.Context, path string, out snapshot.Output, unsure bool,
	check func(ctx context.Context, out *snapshot.Snapshot) error,
) (res snapshot.WriteResult, err error) {
	err = r.Guard(func() error {
		keep, err := r.selected(ctx, unsure)
		if err != nil {
			return errors.Join(err, out.Discard())
		}
		c := &snapshot.Content{Buckets: r.buckets(ctx, keep), Compacted: r.lowest}
		if r.CompactRevision != nil {
			c.Revision = max(r.LastRevision, r.lowest, 1)
		}
		last := func(ctx context.Context, s *snapshot.Snapshot) (err error) { // before the output gets its name
			if check != nil {
				err = check(ctx, s)
			}
			return cmp.Or(err, unchanged(r))
		}
		res, err = snapshot.Begin(path, out, nil).Write(ctx, nil, snapshot.WriteConfig{Build: c, Check: last})
		return err
	})
	if err != nil { // perhaps because of a change
		err = cmp.Or(unchanged(r), err)
	}
	return res, err
}

// unchanged returns an error (snapshot.ErrChanged) if a file or the log differs from what was read.
func unchanged(r *Remains) error {
	for _, f := range r.files {
		if err := f.Unchanged(); err != nil {
			return err
		}
	}
	if r.log != nil && r.log.log.Changed() {
		return &snapshot.FileError{Path: r.log.path, Err: snapshot.ErrChanged}
	}
	return nil
}

// selected returns the pieces of an output: all sure records above its compact revision, and up to
// it the last value of each key. A record whose next record is lost is left out, together with all
// before: a later record shows that its numbers do not follow.
func (r *Remains) selected(ctx context.Context, unsure bool) ([]bool, error) {
	keep := make([]bool, len(r.pieces))
	before := make([]int32, len(r.pieces)) // the record of the same key before, -1 for none
	latest := r.newTable()
	var rec, last snapshot.Record
	for n, p := range r.pieces {
		if p.unsure && !(unsure && r.chosen[n]) {
			continue
		}
		if err := cmp.Or(ctx.Err(), r.parse(p, &rec)); err != nil {
			return nil, err
		}
		keep[n] = true
		old := latest.Replace(rec.Key, int32(n))
		before[n] = old
		if old >= 0 && p.Main > r.lowest {
			if err := r.parse(r.pieces[old], &last); err != nil {
				return nil, err
			}
			if mvcc.Follows(&last, &rec) != nil {
				for at := old; at >= 0; at = before[at] {
					keep[at] = false
				}
				before[n] = -1
			}
		} else if old >= 0 {
			keep[old] = false
		}
	}
	for n, p := range r.pieces {
		if keep[n] && p.Main <= r.lowest {
			if err := r.parse(p, &rec); err != nil {
				return nil, err
			}
			if rec.Tombstone {
				keep[n] = false
			}
		}
	}
	return keep, nil
}

// buckets returns the content of an output.
func (r *Remains) buckets(ctx context.Context, keep []bool) map[string]iter.Seq2[snapshot.Entry, error] {
	all := map[string]iter.Seq2[snapshot.Entry, error]{}
	for name, list := range r.log.contents(r.base.other) {
		entry := func(el bolt.Element) snapshot.Entry { return snapshot.Entry{Key: el.Key, Value: el.Value} }
		all[name] = stream.Map(bolt.Seq(list...), entry)
	}
	all["key"] = stream.Of(func(yield func(snapshot.Entry) error) error {
		for n, p := range r.pieces {
			if !keep[n] {
				continue
			}
			k, v := mvcc.SplitEntry(r.bytesOf(p))
			if err := cmp.Or(ctx.Err(), yield(snapshot.Entry{Key: k, Value: v})); err != nil {
				return err
			}
		}
		return nil
	})
	return all
}
