package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

// Write makes a sound snapshot of the sure records, published by out under the name path. With
// unsure it also has the newest record of each key of SalvageReport.Unsure. The output is compacted
// at the last lost revision, and at least at the compact revision of the files: it has no state
// that is known to be incomplete. check, which may be nil, is called as in [WriteConfig].
func (r *Remains) Write(
	ctx context.Context, path string, out Output, unsure bool, check func(ctx context.Context, out *Snapshot) error,
) (res WriteResult, err error) {
	err = r.Guard(func() error {
		keep, err := r.selected(ctx, unsure)
		if err != nil {
			return errors.Join(err, out.Discard())
		}
		res, err = Begin(path, out, nil).Write(ctx, nil, WriteConfig{remains: &selection{r, keep}, Check: check})
		return err
	})
	for _, f := range r.files {
		if now := f.unchanged(); now != nil {
			err = cmp.Or(f.wrap(now), err)
		}
	}
	return res, err
}

// selection is the content of an output of Remains.
type selection struct {
	*Remains
	keep bits // pieces
}

// selected returns the pieces of an output: all sure records above its compact revision, and up to
// it the last value of each key. A record whose next record is lost is left out, together with all
// before: a later record shows that its numbers do not follow.
func (r *Remains) selected(ctx context.Context, unsure bool) (bits, error) {
	keep := make(bits, (len(r.pieces)+63)/64)
	before := make([]int32, len(r.pieces)) // the record of the same key before, -1 for none
	latest := r.newTable()
	var rec, last Record
	for n, p := range r.pieces {
		if p.unsure && !(unsure && r.chosen.has(uint32(n))) {
			continue
		}
		if err := cmp.Or(ctx.Err(), r.parse(p, &rec)); err != nil {
			return nil, err
		}
		keep.set(uint32(n))
		old := latest.replace(rec.Key, int32(n))
		before[n] = old
		if old >= 0 && p.Main > r.lowest {
			if err := r.parse(r.pieces[old], &last); err != nil {
				return nil, err
			}
			if mvcc.Follows(&last, &rec) != nil {
				for at := old; at >= 0; at = before[at] {
					keep.clear(uint32(at))
				}
				before[n] = -1
			}
		} else if old >= 0 {
			keep.clear(uint32(old))
		}
	}
	for n, p := range r.pieces {
		if keep.has(uint32(n)) && p.Main <= r.lowest {
			if err := r.parse(p, &rec); err != nil {
				return nil, err
			}
			if rec.Tombstone {
				keep.clear(uint32(n))
			}
		}
	}
	return keep, nil
}

// entries yields the records.
func (s *selection) entries(ctx context.Context) entries {
	return stream.Of(func(yield func(bolt.Element) error) error {
		for n, p := range s.pieces {
			if !s.keep.has(uint32(n)) {
				continue
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			k, v := mvcc.SplitEntry(s.bytesOf(p))
			if err := yield(bolt.Element{Key: k, Value: v}); err != nil {
				return err
			}
		}
		return nil
	})
}

// write writes the file of d.
func (s *selection) write(ctx context.Context, d *Draft) (res WriteResult, err error) {
	contents := map[string]entries{}
	for _, name := range mvcc.Buckets() {
		contents[name] = bolt.Seq()
	}
	for name, list := range s.log.contents(s.base.other) {
		contents[name] = bolt.Seq(list...)
	}
	contents["key"] = s.entries(ctx)
	if s.lowest > 0 {
		contents[mvcc.MetaBucket] = compactedAt(contents[mvcc.MetaBucket], s.lowest)
	}
	x, err := createOf(ctx, d, contents)
	if err != nil {
		return res, err
	}
	if x.revision() != max(s.LastRevision, s.lowest, 1) && s.CompactRevision != nil {
		return res, fmt.Errorf("%w: revision %d, want %d", ErrVerify, x.revision(), s.LastRevision)
	}
	return WriteResult{FileInfo: FileInfo{Revision: x.revision(), Keys: x.alive}, Appended: x.total()}, nil
}
