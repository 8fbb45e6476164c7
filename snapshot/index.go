package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
)

// index finds the latest record of each key. One scan in revision order fills it, and the last
// record of a key wins. That is right under every compaction, finished or interrupted: a compaction
// only removes records that a later one supersedes, and removes them oldest first (etcd
// server/storage/mvcc/kvstore_compaction.go). Memory grows with the number of keys and records
// alone.
type index struct {
	table // the latest record of each key, deleted keys included
	folders
	live []uint64 // a bit an ordinal: the latest record of a key that is not deleted

	tombstones, alive   int
	leased              int      // live keys that hold a lease
	last                Revision // highest revision of a record
	empty               int      // records without a key, left by --bump-revision
	unnamed             Revision // of the last one of those
	finished, scheduled int64    // compact revisions, 0 for none
	// repeats reports two records of one key at or below the finished compaction, which leaves one.
	repeats bool

	// seen is told each record with the one before it of the same key, nil for the first in the
	// file.
	seen func(before, rec *Record)
	// unsound is why the first record with numbers that no server stores keeps Write from writing.
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
	x := newIndex(s)
	x.seen = func(before, rec *Record) {
		if x.unsound == nil {
			x.unsound = checkRecord(before, rec)
		}
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
	l := &log{input: &s.input, db: s.db, keys: s.db.Bucket("key")}
	return &index{table: newTable(l), folders: newFolders()}
}

// fill scans the key bucket into the empty index x.
func (x *index) fill(ctx context.Context) error {
	if err := x.compactRevisions(ctx); err != nil {
		return err
	}
	var total uint64
	for i := range x.keys.LeafCount() {
		if i%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		p, err := x.db.Leaf(x.keys, i)
		if err != nil {
			return fmt.Errorf("bucket \"key\": %w", err)
		}
		x.start = append(x.start, uint32(total))
		if total += uint64(p.Count()); total >= math.MaxUint32 {
			return fmt.Errorf("%w: more than %d records", ErrDamaged, uint32(math.MaxUint32-1))
		}
		x.total = uint32(total)
		x.live = append(x.live, make([]uint64, (total+63)/64-uint64(len(x.live)))...)
		x.of = append(x.of, make([]uint16, total-uint64(len(x.of)))...)
		if err := x.addLeaf(i, p); err != nil {
			return x.inLeaf(i, err)
		}
	}
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
		if (leaf > 0 || i > 0) && rec.Revision.Compare(x.last) <= 0 {
			return fmt.Errorf("%w: element %d: revision %s after %s", ErrDamaged, i, rec.Revision, x.last)
		}
		if rec.Revision.Main < 1 {
			return fmt.Errorf("%w: element %d: revision %s, of which no server reads a record",
				ErrDamaged, i, rec.Revision)
		}
		x.last = rec.Revision
		if rec.Tombstone {
			x.tombstones++
		}
		if len(rec.Key) == 0 {
			x.empty++
			x.unnamed = rec.Revision
			if len(v) > 0 {
				x.seen(nil, rec)
			}
			continue
		}
		if err := x.add(rec, x.start[leaf]+uint32(i)); err != nil {
			return err
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
	x.seen(before, rec)
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

func (x *index) isLive(ordinal uint32) bool {
	return x.live[ordinal/64]&(1<<(ordinal%64)) != 0
}

// revision is the current revision of the store as a server computes it (etcd
// server/storage/mvcc/kvstore.go, restore): the last record alone may be older than a compaction
// that removed what came after it.
func (x *index) revision() int64 { return max(x.last.Main, x.oldest()) }

// oldest is the compact revision as a server would start with; an empty store is at revision 1.
func (x *index) oldest() int64 { return max(x.finished, x.scheduled, 1) }

// maxRevision is the highest that a store may be at here. A server panics at the write behind
// revision math.MaxInt64; some writes must be left for it to be restored and to go on.
const maxRevision = math.MaxInt64 - 1<<20

// MostBump is the most by which a restore may raise the revision of a store ("etcdutl snapshot
// restore --bump-revision"): half of what is left. Beyond the last revision the restore ends well,
// and the server panics.
func MostBump(revision int64) int64 { return max(0, (maxRevision-revision)/2) }

// room checks that revisions are left.
func (x *index) room() error {
	if x.revision() > maxRevision {
		return fmt.Errorf("%w: the store is at revision %d, and a server dies of the write behind %d",
			ErrDamaged, x.revision(), math.MaxInt64)
	}
	return nil
}

// compactRevisions reads what the meta bucket says about compaction.
func (x *index) compactRevisions(ctx context.Context) error {
	for el, err := range x.db.Entries(ctx, x.db.Bucket(metaBucket)) {
		if err != nil {
			return err
		}
		at := &x.finished
		switch string(el.Key) {
		case finishedCompact:
		case scheduledCompact:
			at = &x.scheduled
		default:
			continue
		}
		rev, _, err := parseRevisionKey(el.Value)
		if err != nil {
			return fmt.Errorf("bucket \"meta\": %s is not a revision: %w", el.Key, err)
		}
		*at = rev.Main
	}
	return nil
}
