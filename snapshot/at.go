package snapshot

import (
	"bytes"
	"context"
	"fmt"
	"iter"
)

// Kept returns the revisions at which the file still holds the whole store, both included: those
// that a server started on it would answer for. A compaction that was only scheduled counts,
// because a server ends it before it answers.
func (s *Snapshot) Kept(ctx context.Context) (oldest, newest int64, err error) {
	x, err := s.index(ctx)
	if err != nil {
		return 0, 0, err
	}
	return x.oldest(), x.revision(), nil
}

// kept is ErrCompacted or ErrFuture for a revision that a server would refuse.
func (x *index) kept(rev int64) error {
	var is error
	switch {
	case rev < x.oldest():
		is = ErrCompacted
	case rev > x.revision():
		is = ErrFuture
	default:
		return nil
	}
	return x.wrap(fmt.Errorf("%w: %d was asked for, the file keeps %d to %d",
		is, rev, x.oldest(), x.revision()))
}

// LiveAt is Live as it was at revision rev: for each key its latest record at or below rev, unless
// that is a tombstone. The error wraps ErrCompacted or ErrFuture for a revision outside of Kept.
// Only keys with a record between the compaction and rev are kept in memory, 16 bytes each.
func (s *Snapshot) LiveAt(ctx context.Context, prefix []byte, rev int64) iter.Seq2[*Record, error] {
	return indexed(ctx, s, func(x *index, yield func(*Record, error) bool) {
		if err := x.kept(rev); err != nil {
			yield(nil, err)
			return
		}
		if rev >= x.last.Main {
			s.Live(ctx, prefix)(yield)
			return
		}
		p, err := newPast(ctx, x, prefix, rev)
		if err != nil {
			yield(nil, err)
			return
		}
		want := func(ordinal uint32) bool { return p.within(0, ordinal) }
		for rec, err := range x.scan(ctx, want) {
			live := false
			if err == nil {
				live, err = p.holds(rec)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if live && !yield(rec.Record, nil) {
				return
			}
		}
	})
}

// past is the store at an earlier revision. A finished compaction leaves one record of each key, so
// which records have been superseded by then is known from those above it alone.
type past struct {
	*index
	prefix []byte
	may    func(ordinal uint32) bool
	first  uint32 // ordinal of the first record that may supersede another
	end    uint32 // ordinal behind the last record of the revision
	latest table  // of the keys with a record in [first, end)
	other  Record // used again for each comparison
}

func newPast(ctx context.Context, x *index, prefix []byte, rev int64) (p *past, err error) {
	p = &past{index: x, prefix: prefix, may: x.under(prefix), latest: newTable(x.log)}
	if !x.repeats {
		p.first, err = x.after(x.finished)
	}
	if err == nil {
		p.end, err = x.after(rev)
	}
	if err != nil {
		return nil, err
	}
	want := func(ordinal uint32) bool { return p.within(p.first, ordinal) }
	for rec, err := range x.scan(ctx, want) {
		if err == nil && p.names(rec) {
			err = x.read(func() error {
				_, _, err := p.latest.replace(rec.Key, rec.ordinal, &p.other)
				return err
			})
		}
		if err != nil {
			return nil, err
		}
	}
	return p, nil
}

// within reports whether a record from first on may be one of those asked for.
func (p *past) within(first, ordinal uint32) bool {
	return ordinal >= first && ordinal < p.end && p.may(ordinal)
}

// names reports whether the record is one of those asked for; that of no key never is.
func (p *past) names(rec numbered) bool {
	return len(rec.Key) > 0 && bytes.HasPrefix(rec.Key, p.prefix)
}

// holds reports whether rec, which lies below p.end, is the live record of its key.
func (p *past) holds(rec numbered) (bool, error) {
	if rec.Tombstone || !p.names(rec) {
		return false, nil
	}
	if p.isLive(rec.ordinal) {
		return true, nil
	}
	at, found, err := p.latest.find(rec.Key, &p.other)
	return !found || at == rec.ordinal, err
}

// GetAt is Get as it was at revision rev. Errors are those of LiveAt.
func (s *Snapshot) GetAt(ctx context.Context, key []byte, rev int64) (*Record, error) {
	x, err := s.index(ctx)
	if err == nil {
		err = x.kept(rev)
	}
	if err != nil {
		return nil, err
	}
	last, err := s.Get(ctx, key)
	if err != nil || (last != nil && last.Revision.Main <= rev) {
		return last, err
	}
	var found *Record
	for r, err := range s.History(ctx, key) {
		if err != nil {
			return nil, err
		}
		if len(r.Key) == 0 || r.Revision.Main > rev {
			break
		}
		if found = nil; !r.Tombstone {
			copied := *r
			found = &copied
		}
	}
	return found, nil
}
