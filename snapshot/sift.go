package snapshot

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"math"
	"slices"
	"sync/atomic"

	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
)

const (
	siftLeaves = 256     // that one goroutine reads at a time
	siftMost   = 1 << 16 // records that a sift keeps
)

// errSift ends a sift that the index has to answer, with the error of the file where that has one.
var errSift = errors.New("the index has to tell")

// Sift returns the latest record of each key that want chooses, deleted keys left out, in revision
// order. It reads the keys of all records once, on all processors, and builds no index: for callers
// that need few keys. False means that the index has to tell: too many records were chosen, or some
// record is damaged. want runs on several goroutines at once.
func (s *Snapshot) Sift(ctx context.Context, want func(key []byte) bool) ([]*Record, bool) {
	bucket := s.db.Bucket("key")
	parts := make([]sifted, (bucket.LeafCount()+siftLeaves-1)/siftLeaves)
	var kept atomic.Int64
	err := s.Parallel(ctx, len(parts), func(i int) error {
		defer s.indexed.Add(siftLeaves)
		for leaf := i * siftLeaves; leaf < min(bucket.LeafCount(), (i+1)*siftLeaves); leaf++ {
			before := len(parts[i].records)
			if err := parts[i].add(s.db, bucket, leaf, want); err != nil {
				return err
			}
			if kept.Add(int64(len(parts[i].records)-before)) > siftMost {
				return errSift
			}
		}
		return nil
	})
	if err == nil {
		err = s.read(func() error { return newIndex(s).compactRevisions(ctx) })
	}
	if err != nil || !inOrder(parts) {
		return nil, false
	}
	latest := map[string]*Record{}
	for _, p := range parts {
		for i := range p.records {
			latest[string(p.records[i].Key)] = &p.records[i]
		}
	}
	maps.DeleteFunc(latest, func(_ string, rec *Record) bool { return rec.Tombstone })
	s.mu.Lock()
	s.sound = true
	s.mu.Unlock()
	return slices.SortedFunc(maps.Values(latest), func(a, b *Record) int { return a.Revision.Compare(b.Revision) }), true
}

// sifted has the chosen records of some leaves, and the ends of all their records.
type sifted struct {
	records     []Record
	first, last Revision
	any         bool
}

// add adds a leaf. It accepts what index.addLeaf accepts.
func (p *sifted) add(db *bolt.DB, bucket *bolt.Bucket, leaf int, want func(key []byte) bool) error {
	page, err := db.Leaf(bucket, leaf)
	if err != nil {
		return err
	}
	var rec Record
	for i := range page.Count() {
		flags, k, v := page.Leaf(i)
		if flags&bolt.FlagBucket != 0 {
			return errSift
		}
		if err := parseRecord(k, v, &rec); err != nil {
			return err
		}
		if p.any && rec.Revision.Compare(p.last) <= 0 || rec.Revision.Main < 1 {
			return errSift
		}
		if !p.any {
			p.first, p.any = rec.Revision, true
		}
		p.last = rec.Revision
		if len(rec.Key) > 0 && want(rec.Key) {
			p.records = append(p.records, rec)
		}
		if len(p.records) > siftMost {
			return errSift
		}
	}
	return nil
}

// Chosen yields what of makes of each record whose key want chooses: superseded ones too, deletions
// not, in revision order. It reads the keys of all records once and builds no index. want and of
// run on several goroutines at once.
func Chosen[T any](ctx context.Context, s *Snapshot, want func(key []byte) bool, of func(*Record) (T, error)) iter.Seq2[T, error] {
	type part struct {
		first int // leaf
		made  []T
		err   error
	}
	bucket := s.db.Bucket("key")
	leaves := stream.Of(func(yield func(int) error) error {
		for first := 0; first < bucket.LeafCount(); first += siftLeaves {
			if err := cmp.Or(ctx.Err(), yield(first)); err != nil {
				return err
			}
		}
		return nil
	})
	read := func(p *part) {
		var chosen sifted
		for leaf := p.first; leaf < min(bucket.LeafCount(), p.first+siftLeaves) && p.err == nil; leaf++ {
			chosen.records = chosen.records[:0]
			p.err = chosen.add(s.db, bucket, leaf, want)
			for i := 0; i < len(chosen.records) && p.err == nil; i++ {
				if rec := chosen.records[i]; !rec.Tombstone { // a copy: of may keep it
					var made T
					made, p.err = of(&rec)
					p.made = append(p.made, made)
				}
			}
		}
	}
	alone := func(first int) (part, int) { return part{first: first}, math.MaxInt } // each on its own goroutine
	return stream.Of(func(yield func(T) error) error {
		return stream.Each(stream.Ahead(s.Guard, leaves, alone, read), func(p *part) error {
			for _, made := range p.made {
				if err := yield(made); err != nil {
					return err
				}
			}
			return p.err
		})
	})
}

// inOrder reports whether the revisions of each part follow those of the part before.
func inOrder(parts []sifted) bool {
	var last *sifted
	for i := range parts {
		p := &parts[i]
		if !p.any {
			continue
		}
		if last != nil && p.first.Compare(last.last) <= 0 {
			return false
		}
		last = p
	}
	return true
}

// newest returns the last n live records, by reading the records from the last one on; false where
// the index has to tell.
func (s *Snapshot) newest(ctx context.Context, n int) (live []*Record, ok bool) {
	s.mu.Lock()
	ok = s.sound && s.idx == nil
	s.mu.Unlock()
	if !ok {
		return nil, false
	}
	bucket, seen := s.db.Bucket("key"), map[string]bool{}
	err := s.Guard(func() error {
		for leaf := bucket.LeafCount() - 1; leaf >= 0 && len(live) < n; leaf-- {
			page, err := s.db.Leaf(bucket, leaf)
			if err := cmp.Or(ctx.Err(), err); err != nil {
				return err
			}
			for i := page.Count() - 1; i >= 0 && len(live) < n; i-- {
				_, k, v := page.Leaf(i)
				rec := new(Record)
				if err := parseRecord(k, v, rec); err != nil {
					return err
				}
				if len(rec.Key) == 0 || seen[string(rec.Key)] {
					continue
				}
				if seen[string(rec.Key)] = true; len(seen) > siftMost {
					return errSift
				}
				if !rec.Tombstone {
					live = append(live, rec)
				}
			}
		}
		return nil
	})
	slices.Reverse(live)
	return live, err == nil
}
