package snapshot

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/etcdshift/etcdshift/internal/stream"
)

// indexed returns the stream of run, called with the index of s.
func indexed[T any](
	ctx context.Context, s *records, run func(x *index, yield func(T) error) error,
) iter.Seq2[T, error] {
	return stream.Of(func(yield func(T) error) error {
		x, err := s.index(ctx)
		if err != nil {
			return err
		}
		return run(x, yield)
	})
}

// Live yields the latest record of each key with the prefix, except deleted keys, in revision order
// (not in key order): the order of the file, so that one pass reads all records. An error ends the
// sequence. Keys and values are valid until Close; the Record itself is reused for the next record.
func (s *records) Live(ctx context.Context, prefix []byte) iter.Seq2[*Record, error] {
	return indexed(ctx, s, func(x *index, yield func(*Record) error) error {
		return x.liveBelow(ctx, 0, x.keys.LeafCount(), prefix, func(rec Scanned) error { return yield(rec.Record) })
	})
}

// LiveAt is Live at revision rev: the latest record of each key at or below rev, unless that record
// is a tombstone. The error wraps ErrCompacted or ErrFuture for a revision outside of Kept. Memory
// is 16 bytes for each key with a record between the compaction and rev.
func (s *records) LiveAt(ctx context.Context, prefix []byte, rev int64) iter.Seq2[*Record, error] {
	return indexed(ctx, s, func(x *index, yield func(*Record) error) error {
		return x.liveAt(ctx, prefix, rev, func(rec Scanned) error { return yield(rec.Record) })
	})
}

// visitBytes is the size of the leaves visited by one goroutine at a time.
const visitBytes = 1 << 20

// Visit calls look with each record of Live, on several goroutines at once, and yields the results
// appended by look in the order of Live. The Record itself is reused after look returns.
func Visit[T any](
	ctx context.Context, s *Snapshot, prefix []byte, look func(rec *Record, found []T) ([]T, error),
) iter.Seq2[T, error] {
	return indexed(ctx, &s.records, func(x *index, yield func(T) error) error {
		read := func(p *leafRange[T]) {
			p.err = x.liveBelow(ctx, p.leaf, p.end, prefix, func(rec Scanned) (err error) {
				p.made, err = look(rec.Record, p.made)
				return err
			})
		}
		end := func(leaf int) int {
			for size := 0; leaf < len(x.keys.Leaves) && size < visitBytes; leaf++ {
				p, _ := x.db.Extent(x.keys.Leaves[leaf]) // the index has read the page
				size += len(p)
			}
			return max(leaf, 1) // an inline bucket has one leaf
		}
		return stream.Each(ranges(ctx, &s.records, end, read), func(p *leafRange[T]) error { return p.each(yield) })
	})
}

// liveBelow calls fn with the records of Live in the leaves [first, end).
func (x *index) liveBelow(ctx context.Context, first, end int, prefix []byte, fn func(Scanned) error) error {
	may := x.under(prefix)
	want := func(ordinal uint32) bool { return x.live.has(ordinal) && may(ordinal) }
	return x.scanLeaves(ctx, first, end, want, func(rec Scanned) error {
		if !bytes.HasPrefix(rec.Key, prefix) {
			return nil
		}
		return fn(rec)
	})
}

// Marked yields the records of Live with keys selected by Mark, and reads no others. If Mark came
// too late, Marked is Live without a prefix.
func (s *records) Marked(ctx context.Context) iter.Seq2[*Record, error] {
	return indexed(ctx, s, func(x *index, yield func(*Record) error) error {
		want := func(ordinal uint32) bool { return x.marked.has(ordinal) && x.live.has(ordinal) }
		return x.scan(ctx, want, func(rec Scanned) error { return yield(rec.Record) })
	})
}

// History yields every record of one key in the file, oldest first, including tombstones, but
// without compacted records. Errors and validity are those of Live.
func (s *records) History(ctx context.Context, key []byte) iter.Seq2[*Record, error] {
	same := func(other []byte) bool { return bytes.Equal(other, key) }
	kept := indexed(ctx, s, func(x *index, yield func(Scanned) error) error {
		return x.scan(ctx, x.under(key), func(rec Scanned) error {
			if !same(rec.Key) {
				return nil
			}
			return yield(rec)
		})
	})
	return stream.Map(s.withRemoved(ctx, same, kept), Scanned.record)
}

// Records yields every record of the file in revision order, including superseded records,
// tombstones and the records without a key from --bump-revision. Errors and validity are those of
// Live.
func (s *records) Records(ctx context.Context) iter.Seq2[*Record, error] {
	return stream.Map(s.Scan(ctx), Scanned.record)
}

// Scanned is a record of a scan. Live is true for the live record of a key.
type Scanned struct {
	*Record
	Live   bool
	Stored int // bytes of the entry in the key bucket: revision key and KeyValue

	ordinal uint32
}

func (rec Scanned) record() *Record { return rec.Record }

// Scan yields the records of Records, with Live set for live records. Errors and validity are those
// of Live.
func (s *records) Scan(ctx context.Context) iter.Seq2[Scanned, error] {
	kept := indexed(ctx, s, func(x *index, yield func(Scanned) error) error {
		return x.scan(ctx, func(uint32) bool { return true }, yield)
	})
	return s.withRemoved(ctx, func([]byte) bool { return true }, kept)
}

// Get returns the latest record of key, or nil for an absent or deleted key.
func (s *records) Get(ctx context.Context, key []byte) (*Record, error) {
	x, err := s.index(ctx)
	if err != nil {
		return nil, err
	}
	rec := new(Record)
	_, found, err := x.find(key, rec)
	if err != nil || !found || rec.Tombstone {
		return nil, err
	}
	return rec, nil
}

// GetAt is Get at revision rev. Errors are those of LiveAt.
func (s *records) GetAt(ctx context.Context, key []byte, rev int64) (*Record, error) {
	for rec, err := range s.LiveAt(ctx, key, rev) {
		if err != nil {
			return nil, err
		}
		if bytes.Equal(rec.Key, key) {
			return new(*rec), nil
		}
	}
	return nil, nil
}

// Kept returns the first and last revision for which the file has the whole store, like a server
// started on the file. A scheduled compaction counts: a server finishes it first.
func (s *records) Kept(ctx context.Context) (oldest, newest int64, err error) {
	x, err := s.index(ctx)
	if err != nil {
		return 0, 0, err
	}
	return x.oldest(), x.revision(), nil
}

// Revision returns the current revision of the store: the answer of a server started on the file.
func (s *records) Revision(ctx context.Context) (int64, error) {
	_, newest, err := s.Kept(ctx)
	return newest, err
}

// Keys returns the number of live keys.
func (s *records) Keys(ctx context.Context) (int, error) {
	x, err := s.index(ctx)
	if err != nil {
		return 0, err
	}
	return x.alive, nil
}

// Sorted is a list of live records in key order, the order of a server's answers. Sorted needs four
// bytes for each record, and is safe for concurrent use.
type Sorted struct {
	index    *index
	ordinals []uint32
}

// Sorted returns the records of LiveAt in key order. Sorting needs 32 bytes for each record.
func (s *records) Sorted(ctx context.Context, prefix []byte, rev int64) (*Sorted, error) {
	x, err := s.index(ctx)
	if err != nil {
		return nil, err
	}
	type item struct {
		key     []byte
		ordinal uint32
	}
	var items []item
	err = x.liveAt(ctx, prefix, rev, func(rec Scanned) error {
		items = append(items, item{rec.Key, rec.ordinal})
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := &Sorted{index: x, ordinals: make([]uint32, len(items))}
	return out, x.read(func() error {
		slices.SortFunc(items, func(a, b item) int { return bytes.Compare(a.key, b.key) })
		for i, one := range items {
			out.ordinals[i] = one.ordinal
		}
		return nil
	})
}

// Len returns the number of records.
func (o *Sorted) Len() int { return len(o.ordinals) }

// At returns record i, counted from 0. Errors and validity are those of Live.
func (o *Sorted) At(i int) (*Record, error) {
	rec := new(Record)
	return rec, o.index.read(func() error { return o.index.at(o.ordinals[i], rec) })
}

// Search returns the number of the first record with a key not less than key.
func (o *Sorted) Search(key []byte) (int, error) {
	return o.index.search(o.Len(), func(i int) uint32 { return o.ordinals[i] },
		func(rec *Record) bool { return bytes.Compare(rec.Key, key) >= 0 })
}

// Deletion is a deleted key that was not created again. Its bytes are valid until Close.
type Deletion struct {
	Key      []byte
	Revision Revision // of the tombstone; 0 if it was removed and not found
	Last     *Record  // the last Put before the tombstone; nil if compacted
	FreePage bool     // Last, or without a Last the tombstone, is from a free page; a later Put may be lost
}

// Deleted yields each key with the prefix whose latest record is a tombstone, in the order of
// deletion. A compaction removes tombstones below its revision: the window is that of Kept, in
// Kubernetes some minutes. Memory is a few bytes for each deletion.
func (s *records) Deleted(ctx context.Context, prefix []byte) iter.Seq2[*Deletion, error] {
	return indexed(ctx, s, func(x *index, yield func(*Deletion) error) error {
		last, err := x.deletions(ctx, prefix)
		if err != nil {
			return err
		}
		lost, err := s.removedKeys(ctx, x, prefix)
		if err != nil {
			return err
		}
		if err := lost.each(ctx, yield); err != nil {
			return err
		}
		for _, at := range slices.Sorted(maps.Keys(last)) {
			var tombstone, put Record
			err := x.read(func() error { return cmp.Or(x.at(at, &tombstone), x.at(last[at], &put)) })
			if err = cmp.Or(err, ctx.Err()); err != nil {
				return err
			}
			d := &Deletion{Key: tombstone.Key, Revision: tombstone.Revision}
			if !put.Tombstone {
				d.Last = &put
			} else if d.Last, err = lost.last(at); err != nil {
				return err
			}
			d.FreePage = d.Last != nil && d.Last.FreePage
			if err := yield(d); err != nil {
				return err
			}
		}
		return nil
	})
}

// deletions returns the ordinal of each tombstone that is the latest record of its key, with the
// ordinal of the last Put before the tombstone or, without a Put, of the tombstone. Only records
// that are not live are read.
func (x *index) deletions(ctx context.Context, prefix []byte) (map[uint32]uint32, error) {
	last := map[uint32]uint32{}
	may := x.under(prefix)
	var latest Record
	dead := func(ordinal uint32) bool { return !x.live.has(ordinal) && may(ordinal) }
	return last, x.scan(ctx, dead, func(rec Scanned) error {
		if len(rec.Key) == 0 || !bytes.HasPrefix(rec.Key, prefix) {
			return nil
		}
		at, _, err := x.find(rec.Key, &latest)
		if err != nil || !latest.Tombstone {
			return err
		}
		if _, known := last[at]; !known || !rec.Tombstone {
			last[at] = rec.ordinal
		}
		return nil
	})
}

// checkKept returns ErrCompacted or ErrFuture for a revision that a server would reject.
func (x *index) checkKept(rev int64) error {
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
	if err := x.checkKept(rev); err != nil {
		return err
	}
	if rev >= x.last.Main {
		return x.liveBelow(ctx, 0, x.keys.LeafCount(), prefix, fn)
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
// only the records above the compaction can supersede others by then.
type past struct {
	*index
	prefix []byte
	may    func(ordinal uint32) bool
	first  uint32 // ordinal of the first record that may supersede another
	end    uint32 // ordinal after the last record of the revision
	latest table  // of the keys with a record in [first, end)
	other  Record // reused for each comparison
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
		if !p.matches(rec) {
			return nil
		}
		return x.read(func() error {
			_, _, err := p.latest.replace(rec.Key, rec.ordinal, &p.other)
			return err
		})
	})
}

// within reports whether a record from first on may belong to the requested keys and revision.
func (p *past) within(first, ordinal uint32) bool {
	return ordinal >= first && ordinal < p.end && p.may(ordinal)
}

// matches reports whether the record has a key with the prefix.
func (p *past) matches(rec Scanned) bool {
	return len(rec.Key) > 0 && bytes.HasPrefix(rec.Key, p.prefix)
}

// holds reports whether rec, which lies before p.end, is the live record of its key.
func (p *past) holds(rec Scanned) (bool, error) {
	if rec.Tombstone || !p.matches(rec) {
		return false, nil
	}
	if rec.Live {
		return true, nil
	}
	at, found, err := p.latest.find(rec.Key, &p.other)
	return !found || at == rec.ordinal, err
}
