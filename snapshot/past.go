package snapshot

import (
	"bytes"
	"context"
	"fmt"
)

// kept is ErrCompacted or ErrFuture for a revision that a server would refuse.
func (x *index) kept(rev int64) error {
	oldest, newest, err := x.oldest(), x.revision(), ErrFuture
	if oldest <= rev && rev <= newest {
		return nil
	}
	if rev < oldest {
		err = ErrCompacted
	}
	return x.wrap(fmt.Errorf("%w: %d was asked for, the file keeps %d to %d", err, rev, oldest, newest))
}

// liveAt calls fn with the records of LiveAt.
func (x *index) liveAt(ctx context.Context, prefix []byte, rev int64, fn func(Scanned) error) error {
	if err := x.kept(rev); err != nil {
		return err
	}
	if rev >= x.last.Main {
		return x.liveBelow(ctx, prefix, fn)
	}
	p, err := newPast(ctx, x, prefix, rev)
	if err != nil {
		return err
	}
	want := func(ordinal uint32) bool { return p.within(0, ordinal) }
	return x.scan(ctx, want, func(rec Scanned) error {
		live, err := p.holds(rec)
		if err != nil || !live {
			return err
		}
		return fn(rec)
	})
}

// past is the store at an earlier revision. A finished compaction leaves one record of each key, so
// that the records above it alone tell which records were superseded by then.
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
	return p, x.scan(ctx, want, func(rec Scanned) error {
		if !p.names(rec) {
			return nil
		}
		return x.read(func() error {
			_, _, err := p.latest.replace(rec.Key, rec.ordinal, &p.other)
			return err
		})
	})
}

// within reports whether a record from first on may be one of those asked for.
func (p *past) within(first, ordinal uint32) bool {
	return ordinal >= first && ordinal < p.end && p.may(ordinal)
}

// names reports whether the record has a key, and one that begins with the prefix.
func (p *past) names(rec Scanned) bool {
	return len(rec.Key) > 0 && bytes.HasPrefix(rec.Key, p.prefix)
}

// holds reports whether rec, which lies below p.end, is the live record of its key.
func (p *past) holds(rec Scanned) (bool, error) {
	if rec.Tombstone || !p.names(rec) {
		return false, nil
	}
	if rec.Live {
		return true, nil
	}
	at, found, err := p.latest.find(rec.Key, &p.other)
	return !found || at == rec.ordinal, err
}
