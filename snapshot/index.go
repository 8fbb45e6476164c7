package snapshot

import (
	"context"
	"fmt"
	"math"

	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

// index finds the latest record of each key. One scan in revision order fills the index: the last
// record of a key wins, also after an interrupted compaction, which removes superseded records,
// oldest first (etcd server/storage/mvcc/kvstore_compaction.go). Memory grows with keys and
// records.
type index struct {
	table // the latest record of each key, deleted keys included
	folders
	live   bits // the latest records of keys that are not deleted
	marked bits // records whose keys mark selected
	mark   func(key []byte) bool

	tombstones, alive   int
	leased              int      // live keys that hold a lease
	last                Revision // highest revision of a record
	empty               int      // records without a key, from --bump-revision
	unnamed             Revision // of the last record without a key
	finished, scheduled int64    // compact revisions, 0 for none
	repeats             bool     // a key has two records up to the finished compaction, which should leave one

	// seen is called with each record and the previous record of the same key, nil for the first.
	seen    func(before, rec *Record)
	unsound error // the first record with numbers that no server stores; Write rejects the file
	odd     bool  // a record deletes a key that does not exist

	rec, before Record // reused for each record of the scan
}

func newIndex(s *records) *index {
	keys := s.db.Bucket("key")
	l := &log{input: &s.input, db: s.db, keys: keys, start: make([]uint32, 1, keys.LeafCount()+1)}
	return &index{table: newTable(l), folders: newFolders(), mark: s.mark}
}

// fill scans the key bucket into the empty index x.
func (x *index) fill(ctx context.Context) error {
	if err := x.compactRevisions(ctx); err != nil {
		return err
	}
	var total uint64
	for i := range x.keys.LeafCount() {
		if i%256 == 0 {
			if x.indexed.Store(int64(i)); ctx.Err() != nil {
				return ctx.Err()
			}
		}
		p, err := x.db.Leaf(x.keys, i)
		if err != nil {
			return fmt.Errorf("bucket \"key\": %w", err)
		}
		if total += uint64(p.Count()); total >= math.MaxUint32 {
			return fmt.Errorf("%w: more than %d records", ErrDamaged, uint32(math.MaxUint32-1))
		}
		x.start = append(x.start, uint32(total))
		x.live, x.marked = x.live.grown(total), x.marked.grown(total)
		x.of = append(x.of, make([]uint16, total-uint64(len(x.of)))...)
		if err := x.addLeaf(i, p); err != nil {
			return x.inLeaf(i, err)
		}
	}
	x.indexed.Store(int64(x.keys.LeafCount()))
	return nil
}

// addLeaf adds the records of one leaf.
func (x *index) addLeaf(leaf int, p bolt.Page) error {
	rec := &x.rec
	for i := range p.Count() {
		if err := nextRecord(p, i, x.last, rec); err != nil {
			return err
		}
		x.last = rec.Revision
		if rec.Tombstone {
			x.tombstones++
		}
		if len(rec.Key) > 0 {
			if err := x.add(rec, x.start[leaf]+uint32(i)); err != nil {
				return err
			}
			continue
		}
		x.empty, x.unnamed = x.empty+1, rec.Revision
		if _, _, v := p.Leaf(i); len(v) > 0 {
			x.seen(nil, rec)
		}
	}
	return nil
}

// nextRecord decodes element i of a leaf into rec, and checks that rec comes after revision last,
// unless last is zero.
func nextRecord(p bolt.Page, i int, last Revision, rec *Record) error {
	flags, k, v := p.Leaf(i)
	if flags&bolt.FlagBucket != 0 {
		return fmt.Errorf("%w: element %d is a bucket", ErrDamaged, i)
	}
	if err := mvcc.ParseRecord(k, v, rec); err != nil {
		return fmt.Errorf("element %d: %w", i, err)
	}
	switch rev := rec.Revision; {
	case last != Revision{} && rev.Compare(last) <= 0:
		return fmt.Errorf("%w: element %d: revision %s after %s", ErrDamaged, i, rev, last)
	case rev.Main < 1:
		return fmt.Errorf("%w: element %d: revision %s, of which no server reads a record", ErrDamaged, i, rev)
	}
	return nil
}

// add makes rec, which has the given ordinal, the latest record of its key.
func (x *index) add(rec *Record, ordinal uint32) error {
	old, found, err := x.replace(rec.Key, ordinal, &x.before)
	if err != nil {
		return err
	}
	before := &x.before
	if !found {
		before = nil
	} else if !before.Tombstone {
		x.live.clear(old)
		x.count(before, -1)
	}
	x.repeats = x.repeats || found && rec.Revision.Main <= x.finished
	x.seen(before, rec)
	x.folders.put(ordinal, rec.Key)
	if x.mark == nil || x.mark(rec.Key) {
		x.marked.set(ordinal)
	}
	if !rec.Tombstone {
		x.live.set(ordinal)
		x.count(rec, 1)
	}
	return nil
}

// count adds n to the number of live keys, and of leased keys if rec has a lease.
func (x *index) count(rec *Record, n int) {
	x.alive += n
	if rec.Lease != 0 {
		x.leased += n
	}
}

// compactRevisions reads the compact revisions of the meta bucket.
func (x *index) compactRevisions(ctx context.Context) error {
	revisions := map[string]*int64{mvcc.FinishedCompact: &x.finished, mvcc.ScheduledCompact: &x.scheduled}
	return stream.Each(x.db.Entries(ctx, x.db.Bucket(mvcc.MetaBucket)), func(el bolt.Element) error {
		at := revisions[string(el.Key)]
		if at == nil {
			return nil
		}
		rev, _, err := mvcc.ParseRevisionKey(el.Value)
		if err != nil {
			return fmt.Errorf("bucket \"meta\": %s is not a revision: %w", el.Key, err)
		}
		*at = rev.Main
		return nil
	})
}

// compacted returns the compact revision of a server started on the file, after a scheduled
// compaction; 0 for none.
func (x *index) compacted() int64 { return max(x.finished, x.scheduled) }

// oldest returns the first revision kept in the file; an empty store is at revision 1.
func (x *index) oldest() int64 { return max(x.compacted(), 1) }

// revision returns the current revision as computed by a server (etcd
// server/storage/mvcc/kvstore.go, restore): a compaction may have removed records after the last
// one.
func (x *index) revision() int64 { return max(x.last.Main, x.oldest()) }

// gone is mvcc.CheckGone for a record of x.
func (x *index) gone(before, rec *Record) error { return mvcc.CheckGone(before, rec, x.compacted()) }

// MostBump returns the maximum number by which a restore may raise a revision ("etcdutl snapshot
// restore --bump-revision"): half of the remaining revisions. Beyond the last revision the server
// panics.
func MostBump(revision int64) int64 { return max(0, (mvcc.MaxRevision-revision)/2) }

// checkRevisionsLeft checks that revisions remain for writes.
func (x *index) checkRevisionsLeft() error {
	if x.revision() > mvcc.MaxRevision {
		return fmt.Errorf("%w: the store is at revision %d, and a server dies of the write behind %d",
			ErrDamaged, x.revision(), math.MaxInt64)
	}
	return nil
}

// scan calls fn with the records selected by want in revision order. A Record is reused for later
// records. Leaves without selected records are not read.
func (x *index) scan(ctx context.Context, want func(ordinal uint32) bool, fn func(Scanned) error) error {
	return x.scanLeaves(ctx, 0, x.keys.LeafCount(), want, fn)
}

// scanLeaves is scan for the leaves [first, end).
func (x *index) scanLeaves(
	ctx context.Context, first, end int, want func(ordinal uint32) bool, fn func(Scanned) error,
) error {
	b := batch{index: x, want: want}
	for leaf := first; leaf < end; leaf++ {
		if leaf%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		b.page, b.next = nil, x.start[leaf]
		for b.hasNext(leaf) {
			failed := x.guard(func() error { return x.inLeaf(leaf, b.fill(leaf)) })
			for i := range b.found {
				if err := fn(b.found[i]); err != nil {
					return err
				}
			}
			if failed != nil {
				return x.wrap(failed)
			}
		}
	}
	return nil
}

// entries yields the entries of the key bucket for which keep returns true.
func (x *index) entries(ctx context.Context, keep func(ordinal uint32, el bolt.Element) (bool, error)) entries {
	return stream.Of(func(yield func(bolt.Element) error) error {
		ordinal := uint32(0)
		return stream.Each(x.db.Entries(ctx, x.keys), func(el bolt.Element) error {
			keeps, err := keep(ordinal, el)
			ordinal++
			if err != nil || !keeps {
				return err
			}
			return yield(el)
		})
	})
}

// batch holds the next records of a scan. Records decoded together need only one guard.
type batch struct {
	*index
	want    func(ordinal uint32) bool
	page    bolt.Page // page of the leaf, nil until a record of the leaf is wanted
	next    uint32    // ordinal
	records [batchSize]Record
	found   []Scanned // the wanted records
}

// batchSize is the number of records decoded together.
const batchSize = 64

// hasNext skips unwanted records, and reports whether the leaf has another wanted record.
func (b *batch) hasNext(leaf int) bool {
	for b.next < b.start[leaf+1] && !b.want(b.next) {
		b.next++
	}
	return b.next < b.start[leaf+1]
}

// fill decodes the next wanted records of a leaf up to the first error. The page is read with the
// first record.
func (b *batch) fill(leaf int) (err error) {
	b.found = b.found[:0]
	if b.page == nil {
		if b.page, err = b.db.Leaf(b.keys, leaf); err != nil {
			return err
		}
		b.scanned.Add(1)
	}
	for ; b.hasNext(leaf) && len(b.found) < batchSize; b.next++ {
		elem := int(b.next - b.start[leaf])
		if elem >= b.page.Count() {
			return ErrChanged
		}
		_, k, v := b.page.Leaf(elem)
		rec := &b.records[len(b.found)]
		if err := mvcc.ParseRecord(k, v, rec); err != nil {
			return err
		}
		b.found = append(b.found, Scanned{rec, b.live.has(b.next), len(k) + len(v), b.next})
	}
	return nil
}
