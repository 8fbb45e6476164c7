package snapshot

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"sort"
)

// Kept returns the revisions at which the file still holds the whole store, both included: those that a server started on it would
// answer for. A compaction that was only scheduled counts, because a server ends it before it answers.
func (s *Snapshot) Kept(ctx context.Context) (oldest, newest int64, err error) {
	x, err := s.index(ctx)
	if err != nil {
		return 0, 0, err
	}
	return x.oldest(), x.revision(), nil
}

// oldest is the compact revision as a server would start with; an empty store is at revision 1.
func (x *index) oldest() int64 { return max(x.finished, x.scheduled, 1) }

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
	return fmt.Errorf("%w: %d was asked for, the file keeps %d to %d", is, rev, x.oldest(), x.revision())
}

// LiveAt is Live as it was at revision rev: for each key its latest record at or below rev, unless that is a tombstone. The error
// wraps ErrCompacted or ErrFuture for a revision that the file does not keep; see Kept.
//
// Only keys with a record between the compaction and rev are kept in memory, 16 bytes each.
func (s *Snapshot) LiveAt(ctx context.Context, prefix []byte, rev int64) iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		x, err := s.index(ctx)
		if err == nil {
			err = s.wrap(x.kept(rev))
		}
		if err != nil {
			yield(nil, err)
			return
		}
		if rev >= x.last.Main {
			s.Live(ctx, prefix)(yield)
			return
		}
		p, err := s.newPast(ctx, x, prefix, rev)
		if err != nil {
			yield(nil, err)
			return
		}
		before := func(ordinal uint32) bool { return ordinal < p.end && p.may[x.of[ordinal]] }
		s.scan(ctx, x, before, func(ordinal uint32, r *Record, err error) bool {
			live := false
			if err == nil {
				live, err = s.holds(p, x, ordinal, r)
			}
			if err != nil {
				yield(nil, err)
				return false
			}
			return !live || yield(r, nil)
		})
	}
}

// past is the store at an earlier revision. A finished compaction leaves one record of each key, so which records have been
// superseded by then is known from those above it alone.
type past struct {
	prefix []byte
	may    []bool // by folder
	first  uint32 // ordinal of the first record that may supersede another
	end    uint32 // ordinal behind the last record of the revision
	latest table  // of the keys with a record in [first, end)
	other  Record // used again for each comparison
}

func (s *Snapshot) newPast(ctx context.Context, x *index, prefix []byte, rev int64) (*past, error) {
	p := &past{prefix: prefix, may: x.under(prefix), latest: newTable()}
	var err error
	if !x.repeats {
		p.first, err = s.behind(x, x.finished)
	}
	if err == nil {
		p.end, err = s.behind(x, rev)
	}
	if err != nil {
		return nil, err
	}
	inside := func(ordinal uint32) bool { return ordinal >= p.first && ordinal < p.end && p.may[x.of[ordinal]] }
	s.scan(ctx, x, inside, func(ordinal uint32, r *Record, scanErr error) bool {
		if err = scanErr; err == nil && p.names(r) {
			err = s.guard(func() error {
				_, _, err := s.replace(&p.latest, x, s.bucket("key"), r.Key, ordinal, &p.other)
				return err
			})
			err = s.wrap(err)
		}
		return err == nil
	})
	return p, err
}

// names says whether the record is one of those asked for, which that of no key never is.
func (p *past) names(r *Record) bool { return len(r.Key) > 0 && bytes.HasPrefix(r.Key, p.prefix) }

// holds says whether the record with the given ordinal, which is below p.end, is the live one of its key.
func (s *Snapshot) holds(p *past, x *index, ordinal uint32, r *Record) (bool, error) {
	if r.Tombstone || !p.names(r) {
		return false, nil
	}
	if x.isLive(ordinal) {
		return true, nil
	}
	at, found := uint32(0), false
	err := s.guard(func() (err error) {
		at, found, err = s.find(&p.latest, x, s.bucket("key"), r.Key, &p.other)
		return err
	})
	return !found || at == ordinal, s.wrap(err)
}

// behind is the ordinal of the first record above main revision rev.
func (s *Snapshot) behind(x *index, rev int64) (uint32, error) {
	var rec Record
	var at int
	err := s.guard(func() (err error) {
		at = sort.Search(int(x.total), func(i int) bool {
			if e := s.at(x, s.bucket("key"), uint32(i), &rec); e != nil && err == nil {
				err = e
			}
			return rec.Revision.Main > rev
		})
		return err
	})
	return uint32(at), s.wrap(err)
}

// GetAt is Get as it was at revision rev. Errors are those of LiveAt.
func (s *Snapshot) GetAt(ctx context.Context, key []byte, rev int64) (*Record, error) {
	x, err := s.index(ctx)
	if err == nil {
		err = s.wrap(x.kept(rev))
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
