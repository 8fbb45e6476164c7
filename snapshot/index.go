package snapshot

import (
	"context"
	"fmt"
	"math"
	"sort"
)

// index finds the latest record of each key. One scan in revision order fills it: whatever comes last wins, which is right
// under every compaction, finished or interrupted, because a compaction only removes records that a later one supersedes, and
// removes them oldest first (etcd server/storage/mvcc/kvstore_compaction.go).
//
// A slot is 8 bytes and knows which record it is, not what that says: memory grows with the number of keys alone.
type index struct {
	table          // the latest record of each key, deleted keys included
	start []uint32 // ordinal of the first record of each leaf
	live  []uint64 // a bit an ordinal: the latest record of a key that is not deleted
	total uint32   // ordinals
	*folders

	records, tombstones, alive int
	leased                     int      // live keys that hold a lease
	last                       Revision // highest revision of a record
	empty                      int      // records without a key, left by --bump-revision
	finished, scheduled        int64    // compact revisions, 0 for none
	// repeats says that two records of one key are at or below the finished compaction, which leaves one of each.
	repeats bool

	// follows, where it is set, sees each record with the one before it of the same key (nil for the first in the file).
	follows func(before, rec *Record)
	// unsound is the first record whose numbers are not those a server would have stored: no bar to reading, but to writing.
	unsound error

	rec, before Record // used again for each record of the scan
}

// index builds the index at the first call and returns it, or what was wrong, at the others.
func (s *Snapshot) index(ctx context.Context) (*index, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.idx != nil || s.bad != nil {
		return s.idx, s.bad
	}
	x := newIndex()
	x.follows = func(before, rec *Record) {
		if x.unsound == nil {
			x.unsound = soundRecord(before, rec)
		}
	}
	if err := s.guard(func() error { return s.fillIndex(ctx, x) }); err != nil {
		if err = s.wrap(err); ctx.Err() == nil { // a caller that gave up says nothing about the file
			s.bad = err
		}
		return nil, err
	}
	if x.unsound == nil {
		x.unsound = x.room()
	}
	s.idx = x
	return x, nil
}

func newIndex() *index {
	return &index{table: newTable(), folders: newFolders()}
}

// fillIndex scans the key bucket into the empty index x.
func (s *Snapshot) fillIndex(ctx context.Context, x *index) error {
	b := s.bucket("key")
	if err := s.compactRevisions(ctx, x); err != nil {
		return err
	}
	var total uint64
	for i := range b.leafCount() {
		if i%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		p, err := s.leafPage(b, i)
		if err != nil {
			return fmt.Errorf("bucket \"key\": %w", err)
		}
		x.start = append(x.start, uint32(total))
		if total += uint64(p.count()); total >= math.MaxUint32 {
			return fmt.Errorf("%w: more than %d records", ErrDamaged, uint32(math.MaxUint32-1))
		}
		x.total = uint32(total)
		x.live = append(x.live, make([]uint64, (total+63)/64-uint64(len(x.live)))...)
		x.of = append(x.of, make([]uint16, total-uint64(len(x.of)))...)
		if err := s.indexLeaf(x, b, i, p); err != nil {
			return s.leafError(b, i, err)
		}
	}
	x.records = int(total) - x.empty
	return nil
}

// leafError says where in the file a record lies.
func (s *Snapshot) leafError(b *bucket, leaf int, err error) error {
	if b.root == 0 {
		return fmt.Errorf("bucket %q: %w", b.name, err)
	}
	return fmt.Errorf("bucket %q: page %d: %w", b.name, b.leaves[leaf], err)
}

// indexLeaf adds the records of one leaf.
func (s *Snapshot) indexLeaf(x *index, b *bucket, leaf int, p page) error {
	rec := &x.rec
	for i := range p.count() {
		flags, k, v := p.leaf(i)
		if flags&bucketLeafFlag != 0 {
			return fmt.Errorf("%w: element %d is a bucket", ErrDamaged, i)
		}
		if err := parseRecord(k, v, rec); err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
		if (leaf > 0 || i > 0) && rec.Revision.Compare(x.last) <= 0 {
			return fmt.Errorf("%w: element %d: revision %s after %s", ErrDamaged, i, rec.Revision, x.last)
		}
		if rec.Revision.Main < 1 {
			return fmt.Errorf("%w: element %d: revision %s, of which no server reads a record", ErrDamaged, i, rec.Revision)
		}
		x.last = rec.Revision
		if rec.Tombstone {
			x.tombstones++
		}
		if len(rec.Key) == 0 {
			x.empty++
			if len(v) > 0 && x.follows != nil {
				x.follows(nil, rec)
			}
			continue
		}
		if err := s.put(x, b, rec, x.start[leaf]+uint32(i)); err != nil {
			return err
		}
	}
	return nil
}

// put makes rec, which has the given ordinal, the latest record of its key.
func (s *Snapshot) put(x *index, b *bucket, rec *Record, ordinal uint32) error {
	old, found, err := s.replace(&x.table, x, b, rec.Key, ordinal, &x.before)
	if err != nil {
		return err
	}
	before := &x.before
	switch {
	case !found:
		before = nil
	case !before.Tombstone:
		x.live[old/64] &^= 1 << (old % 64)
		x.alive--
		if before.Lease != 0 {
			x.leased--
		}
	}
	x.repeats = x.repeats || (found && rec.Revision.Main <= x.finished)
	if x.follows != nil {
		x.follows(before, rec)
	}
	x.folders.put(ordinal, rec.Key)
	if !rec.Tombstone {
		x.live[ordinal/64] |= 1 << (ordinal % 64)
		x.alive++
		if rec.Lease != 0 {
			x.leased++
		}
	}
	return nil
}

// at decodes the record with the given ordinal. Its page was judged when it was indexed; to judge it again for each of its
// records would take time that grows with their square.
func (s *Snapshot) at(x *index, b *bucket, ordinal uint32, rec *Record) error {
	leaf, elem := x.place(ordinal)
	p := b.inline
	if b.root != 0 {
		var err error
		if p, err = s.pageExtent(b.leaves[leaf]); err != nil {
			return err
		}
	}
	_, k, v := p.leaf(elem)
	return parseRecord(k, v, rec)
}

// place is where the record with the given ordinal lies: the last leaf that does not begin after it.
func (x *index) place(ordinal uint32) (leaf, elem int) {
	leaf = sort.Search(len(x.start), func(i int) bool { return x.start[i] > ordinal }) - 1
	return leaf, int(ordinal - x.start[leaf])
}

func (x *index) isLive(ordinal uint32) bool {
	return x.live[ordinal/64]&(1<<(ordinal%64)) != 0
}

// end is the ordinal behind the last record of a leaf.
func (x *index) end(leaf int) uint32 {
	if leaf+1 < len(x.start) {
		return x.start[leaf+1]
	}
	return x.total
}

// revision is the current revision of the store as a server computes it (etcd server/storage/mvcc/kvstore.go, restore): the
// last record alone may be older than a compaction that removed what came after it.
func (x *index) revision() int64 { return max(x.last.Main, x.finished, x.scheduled, 1) }

// maxRevision is the highest that a store may be at here. A server panics at the write behind revision math.MaxInt64; some writes must
// be left for it to be restored and to go on.
const maxRevision = math.MaxInt64 - 1<<20

// MostBump is the most by which a restore may raise the revision of a store ("etcdutl snapshot restore --bump-revision"): half of what
// is left. Beyond the last revision the restore ends well, and the server panics.
func MostBump(revision int64) int64 { return max(0, (maxRevision-revision)/2) }

// room says whether revisions are left.
func (x *index) room() error {
	if x.revision() > maxRevision {
		return fmt.Errorf("%w: the store is at revision %d, and a server dies of the write behind %d", ErrDamaged, x.revision(), math.MaxInt64)
	}
	return nil
}

// compactRevisions reads what the meta bucket says about compaction.
func (s *Snapshot) compactRevisions(ctx context.Context, x *index) error {
	return s.entries(ctx, "meta", func(k, v []byte) error {
		var at *int64
		switch string(k) {
		case "finishedCompactRev":
			at = &x.finished
		case "scheduledCompactRev":
			at = &x.scheduled
		default:
			return nil
		}
		rev, _, err := parseRevisionKey(v)
		if err != nil {
			return fmt.Errorf("bucket \"meta\": %s is not a revision: %w", k, err)
		}
		*at = rev.Main
		return nil
	})
}
