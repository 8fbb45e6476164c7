package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
)

// index finds the latest record of each key. One scan in revision order fills it: the last record
// of a key wins, under every compaction, finished or interrupted, which removes superseded records,
// oldest first (etcd server/storage/mvcc/kvstore_compaction.go). Memory grows with keys and
// records.
type index struct {
	table // the latest record of each key, deleted keys included
	folders
	live   []uint64 // a bit an ordinal: the latest record of a key that is not deleted
	marked []uint64 // a bit an ordinal: mark chose its key
	mark   func(key []byte) bool

	tombstones, alive   int
	leased              int      // live keys that hold a lease
	last                Revision // highest revision of a record
	empty               int      // records without a key, left by --bump-revision
	unnamed             Revision // of the last one of those
	finished, scheduled int64    // compact revisions, 0 for none
	repeats             bool     // two records of a key up to the finished compaction, which leaves one

	// seen is called with each record and the one before it of the same key, nil for the first.
	seen    func(before, rec *Record)
	unsound error // the first record with numbers that no server stores, which Write refuses
	odd     bool  // a record deletes a key that does not exist

	rec, before Record // used again for each record of the scan
}

// index builds the index at the first call; others return it, or its error.
func (s *Snapshot) index(ctx context.Context) (*index, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.idx != nil || s.bad != nil {
		return s.idx, s.bad
	}
	x := newIndex(s)
	x.seen = func(before, rec *Record) {
		if x.unsound == nil {
			x.unsound = checkRecord(before, rec)
		}
		x.odd = x.odd || x.gone(before, rec) != nil
	}
	if err := s.read(func() error { return x.fill(ctx) }); err != nil {
		if ctx.Err() == nil { // a caller that gave up says nothing about the file
			s.bad = err
		}
		return nil, err
	}
	x.unsound = cmp.Or(x.unsound, x.room())
	s.idx = x
	return x, nil
}

func newIndex(s *Snapshot) *index {
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
		more := make([]uint64, (total+63)/64-uint64(len(x.live)))
		x.live, x.marked = append(x.live, more...), append(x.marked, more...)
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
		flags, k, v := p.Leaf(i)
		if flags&bolt.FlagBucket != 0 {
			return fmt.Errorf("%w: element %d is a bucket", ErrDamaged, i)
		}
		if err := parseRecord(k, v, rec); err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
		switch rev := rec.Revision; {
		case (leaf > 0 || i > 0) && rev.Compare(x.last) <= 0:
			return fmt.Errorf("%w: element %d: revision %s after %s", ErrDamaged, i, rev, x.last)
		case rev.Main < 1:
			return fmt.Errorf("%w: element %d: revision %s, of which no server reads a record", ErrDamaged, i, rev)
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
		if len(v) > 0 {
			x.seen(nil, rec)
		}
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
		x.live[old/64] &^= 1 << (old % 64)
		x.count(before, -1)
	}
	x.repeats = x.repeats || found && rec.Revision.Main <= x.finished
	x.seen(before, rec)
	x.folders.put(ordinal, rec.Key)
	if x.mark == nil || x.mark(rec.Key) {
		x.marked[ordinal/64] |= 1 << (ordinal % 64)
	}
	if !rec.Tombstone {
		x.live[ordinal/64] |= 1 << (ordinal % 64)
		x.count(rec, 1)
	}
	return nil
}

// count counts a live record n times.
func (x *index) count(rec *Record, n int) {
	x.alive += n
	if rec.Lease != 0 {
		x.leased += n
	}
}

func (x *index) isLive(ordinal uint32) bool {
	return x.live[ordinal/64]&(1<<(ordinal%64)) != 0
}

// scan calls fn with the records that want names in revision order; the Record is used again for a
// later one. Leaves without any are not read.
func (x *index) scan(ctx context.Context, want func(ordinal uint32) bool, fn func(Scanned) error) error {
	b := batch{index: x, want: want}
	defer func() { x.scanned.Add(b.read) }()
	for leaf := range x.keys.LeafCount() {
		if leaf%256 == 0 {
			x.scanned.Add(b.read)
			if b.read = 0; ctx.Err() != nil {
				return ctx.Err()
			}
		}
		b.page, b.next = nil, x.start[leaf]
		for b.more(leaf) {
			failed := x.guard(func() error { return b.fill(leaf) })
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

// batch has the next records of a scan: decoded together, they need one guard.
type batch struct {
	*index
	want    func(ordinal uint32) bool
	page    bolt.Page // of the leaf, nil until one of its records is wanted
	next    uint32    // ordinal
	read    int64     // leaves that are not yet counted
	records [batchSize]Record
	found   []Scanned // the wanted ones
}

// batchSize is the number of records that are decoded together.
const batchSize = 64

// more passes unwanted records, and reports whether the leaf has another one.
func (b *batch) more(leaf int) bool {
	for b.next < b.start[leaf+1] && !b.want(b.next) {
		b.next++
	}
	return b.next < b.start[leaf+1]
}

// fill decodes the next records of a leaf, up to the first error.
func (b *batch) fill(leaf int) error {
	b.found = b.found[:0]
	for ; b.next < b.start[leaf+1] && len(b.found) < batchSize; b.next++ {
		if !b.want(b.next) {
			continue
		}
		rec := Scanned{Record: &b.records[len(b.found)], Live: b.isLive(b.next), ordinal: b.next}
		if err := b.decode(leaf, &rec); err != nil {
			return b.inLeaf(leaf, err)
		}
		b.found = append(b.found, rec)
	}
	return nil
}

// decode decodes a record of a leaf, whose page is read with the first one.
func (b *batch) decode(leaf int, rec *Scanned) (err error) {
	if b.page == nil {
		if b.page, err = b.db.Leaf(b.keys, leaf); err != nil {
			return err
		}
		b.read++
	}
	elem := int(rec.ordinal - b.start[leaf])
	if elem >= b.page.Count() {
		return ErrChanged
	}
	_, k, v := b.page.Leaf(elem)
	rec.Stored = len(k) + len(v)
	return parseRecord(k, v, rec.Record)
}

// revision is the current revision as a server computes it (etcd server/storage/mvcc/kvstore.go,
// restore): a compaction may have removed records behind the last one.
func (x *index) revision() int64 { return max(x.last.Main, x.oldest()) }

// gone is checkGone of a record of x.
func (x *index) gone(before, rec *Record) error {
	return checkGone(before, rec, max(x.finished, x.scheduled))
}

// oldest is the compact revision as a server would start with; an empty store is at revision 1.
func (x *index) oldest() int64 { return max(x.finished, x.scheduled, 1) }

// maxRevision bounds the revision of a store. A server panics at the write behind math.MaxInt64;
// some writes must be left for it after a restore.
const maxRevision = math.MaxInt64 - 1<<20

// MostBump is the most by which a restore may raise a revision ("etcdutl snapshot restore
// --bump-revision"): half of what is left. Beyond the last revision the server panics.
func MostBump(revision int64) int64 { return max(0, (maxRevision-revision)/2) }

// room checks that revisions are left.
func (x *index) room() error {
	if x.revision() > maxRevision {
		return fmt.Errorf("%w: the store is at revision %d, and a server dies of the write behind %d",
			ErrDamaged, x.revision(), math.MaxInt64)
	}
	return nil
}

// compactRevisions reads the compact revisions of the meta bucket.
func (x *index) compactRevisions(ctx context.Context) error {
	revisions := map[string]*int64{finishedCompact: &x.finished, scheduledCompact: &x.scheduled}
	return stream.Each(x.db.Entries(ctx, x.db.Bucket(metaBucket)), func(el bolt.Element) error {
		at := revisions[string(el.Key)]
		if at == nil {
			return nil
		}
		rev, _, err := parseRevisionKey(el.Value)
		if err != nil {
			return fmt.Errorf("bucket \"meta\": %s is not a revision: %w", el.Key, err)
		}
		*at = rev.Main
		return nil
	})
}
