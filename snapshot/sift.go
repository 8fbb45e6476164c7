package snapshot

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

const (
	siftLeaves = 256     // leaves read by one goroutine at a time
	siftMost   = 1 << 16 // maximum number of records kept without an index
)

// errIndex is returned by a reader without an index if only the index has the answer.
var errIndex = errors.New("an index is needed")

// Sift returns the latest record of each key selected by want, without deleted keys, in revision
// order. Sift reads the keys of all records once, on all processors, and builds no index: for
// callers that need few keys. False means that the caller must use the index: too many records were
// selected, or a record is damaged. want runs on several goroutines at once.
func (s *Snapshot) Sift(ctx context.Context, want func(key []byte) bool) ([]*Record, bool) {
	keep := func(rec *Record, kept []*Record) ([]*Record, error) {
		if len(kept) == siftMost {
			return nil, errIndex
		}
		return append(kept, rec), nil
	}
	latest, n := map[string]*Record{}, 0
	err := stream.Each(Chosen(ctx, s, want, keep), func(rec *Record) error {
		if n++; n > siftMost {
			return errIndex
		}
		latest[string(rec.Key)] = rec
		return nil
	})
	if err == nil {
		err = s.read(func() error { return newIndex(&s.records).compactRevisions(ctx) })
	}
	if err != nil {
		return nil, false
	}
	maps.DeleteFunc(latest, func(_ string, rec *Record) bool { return rec.Tombstone })
	byRevision := func(a, b *Record) int { return a.Revision.Compare(b.Revision) }
	return slices.SortedFunc(maps.Values(latest), byRevision), true
}

// leafRange holds the results for the selected records of some leaves.
type leafRange[T any] struct {
	leaf, end   int
	made        []T
	first, last Revision // of all records in the range; 0 without records
	err         error
}

// Chosen yields the results that of appends for each record with a key selected by want, in
// revision order: superseded records and deletions too. Chosen reads the keys of all records once
// and builds no index, but every error of the index scan is also an error here. want and of run on
// several goroutines at once. A record is valid until Close.
func Chosen[T any](
	ctx context.Context, s *Snapshot, want func(key []byte) bool, of func(rec *Record, made []T) ([]T, error),
) iter.Seq2[T, error] {
	bucket := s.db.Bucket("key")
	read := func(p *leafRange[T]) {
		for ; p.leaf < p.end && p.err == nil; p.leaf++ {
			p.err = p.add(s.db, bucket, want, of)
		}
		s.indexed.Add(siftLeaves)
	}
	end := func(first int) int { return first + siftLeaves }
	return stream.Of(func(yield func(T) error) error {
		var last Revision
		return stream.Each(ranges(ctx, &s.records, end, read), func(p *leafRange[T]) error {
			if err := p.each(yield); err != nil || p.first.Main == 0 {
				return err
			}
			if p.first.Compare(last) <= 0 {
				return errIndex
			}
			last = p.last
			return nil
		})
	})
}

// ranges yields all leaves in ranges, after read has run on each range, on several goroutines at
// once. end returns the leaf after the range that begins with leaf first.
func ranges[T any](
	ctx context.Context, s *records, end func(first int) int, read func(p *leafRange[T]),
) iter.Seq2[*leafRange[T], error] {
	leaves := s.db.Bucket("key").LeafCount()
	all := stream.Of(func(yield func(p leafRange[T]) error) error {
		var p leafRange[T]
		for ; p.leaf < leaves; p.leaf = p.end {
			err := s.read(func() error {
				p.end = min(leaves, end(p.leaf))
				return ctx.Err()
			})
			if err == nil {
				err = yield(p)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	alone := func(p leafRange[T]) (leafRange[T], int) { return p, math.MaxInt } // one goroutine for each range
	return stream.Ahead(s.Guard, all, alone, read)
}

// each yields the results of a range, and returns the error that ended them.
func (p *leafRange[T]) each(yield func(T) error) error {
	for _, made := range p.made {
		if err := yield(made); err != nil {
			return err
		}
	}
	return p.err
}

// add adds the records of a leaf.
func (p *leafRange[T]) add(
	db *bolt.DB, bucket *bolt.Bucket, want func(key []byte) bool, of func(rec *Record, made []T) ([]T, error),
) error {
	page, err := db.Leaf(bucket, p.leaf)
	if err != nil {
		return err
	}
	var rec Record
	for i := range page.Count() {
		if err := nextRecord(page, i, p.last, &rec); err != nil {
			return err
		}
		if p.last = rec.Revision; p.first.Main == 0 {
			p.first = rec.Revision
		}
		if len(rec.Key) > 0 && want(rec.Key) {
			if p.made, err = of(new(rec), p.made); err != nil {
				return err
			}
		}
	}
	return nil
}

// Newest yields the last n records of Live without a prefix, in the order of Live, and reads no
// others.
func (s *records) Newest(ctx context.Context, n int) iter.Seq2[*Record, error] {
	return stream.Of(func(yield func(*Record) error) error {
		if live, err := s.newest(ctx, n); err == nil {
			for _, rec := range live {
				if err := yield(rec); err != nil {
					return err
				}
			}
			return nil
		}
		x, err := s.index(ctx)
		if err != nil {
			return err
		}
		first := uint32(x.total())
		for ; first > 0 && n > 0; first-- {
			if x.live.has(first - 1) {
				n--
			}
		}
		want := func(ordinal uint32) bool { return ordinal >= first && x.live.has(ordinal) }
		return x.scan(ctx, want, func(rec Scanned) error { return yield(rec.Record) })
	})
}

// newest returns the last n live records. newest reads backwards from the last record, and returns
// an error if many keys are deleted or a record is damaged.
func (s *records) newest(ctx context.Context, n int) (live []*Record, err error) {
	bucket, seen := s.db.Bucket("key"), map[string]bool{}
	err = s.Guard(func() error {
		for leaf := bucket.LeafCount() - 1; leaf >= 0 && len(live) < n; leaf-- {
			page, err := s.db.Leaf(bucket, leaf)
			if err := cmp.Or(ctx.Err(), err); err != nil {
				return err
			}
			for i := page.Count() - 1; i >= 0 && len(live) < n; i-- {
				_, k, v := page.Leaf(i)
				rec := new(Record)
				if err := mvcc.ParseRecord(k, v, rec); err != nil {
					return err
				}
				if len(rec.Key) == 0 || seen[string(rec.Key)] {
					continue
				}
				if seen[string(rec.Key)] = true; len(seen) > siftMost {
					return errIndex
				}
				if !rec.Tombstone {
					live = append(live, rec)
				}
			}
		}
		return nil
	})
	slices.Reverse(live)
	return live, err
}
