package snapshot

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

// Change is one write after a snapshot: a Put of Value with Lease, or a deletion.
type Change struct {
	Key, Value []byte
	Delete     bool
	Lease      int64 // 0 for none; as in etcd, a Put without a lease detaches the key from its lease
	Prior      int64 // ModRevision for which the change was planned, 0 for an absent or deleted key
}

// appender turns changes into records as a server at that revision would store them: one main
// revision for each change, so that no two objects share a resourceVersion (etcd
// server/storage/mvcc/kvstore_txn.go, put and delete).
type appender struct {
	x *index
	// scrub, if set, reports whether a key is removed from x: deletions of such a key store
	// nothing.
	scrub   func(key []byte) bool
	compact *compaction // nil for none
	WriteResult

	replaces uint32 // ordinal of the record superseded by the last change; none for a new key

	// Changed keys: a bit for the latest record of a key in the file; for other keys, possibly very
	// many, a collision-resistant hash.
	changed bits
	added   map[[16]byte]bool
	encoder mvcc.Encoder

	old, next Record // records of one change, reused for the next change
}

func newAppender(x *index, scrub func(key []byte) bool) *appender {
	return &appender{
		x: x, scrub: scrub, WriteResult: WriteResult{FileInfo: FileInfo{Revision: x.revision(), Keys: x.alive}},
		changed: make(bits, len(x.live)), added: map[[16]byte]bool{},
	}
}

// current returns the record superseded by change c, or an empty record for an absent key or a
// tombstone. The record is valid until the next call.
func (a *appender) current(c Change) (*Record, error) {
	old := &a.old
	ordinal, found, err := a.x.find(c.Key, old)
	if err != nil {
		return nil, err
	}
	twice := false
	a.replaces = none
	if found {
		a.replaces = ordinal
		twice = a.changed.has(ordinal)
		a.changed.set(ordinal)
	} else {
		sum := sha256.Sum256(c.Key)
		short := [16]byte(sum[:16])
		twice = a.added[short]
		a.added[short] = true
	}
	if twice {
		return nil, fmt.Errorf("%w: key %q is changed twice", errConflict, c.Key)
	}
	if !found || old.Tombstone { // a failed search may leave another record in old
		*old = Record{}
	}
	if old.ModRevision != c.Prior {
		return nil, fmt.Errorf("%w: key %q is at %d, the change was planned against %d",
			errConflict, c.Key, old.ModRevision, c.Prior)
	}
	return old, nil
}

// record returns the record of change c, or nil for the deletion of an absent key. The record is
// valid until the next call.
func (a *appender) record(c Change) (*Record, error) {
	switch {
	case len(c.Key) == 0:
		return nil, fmt.Errorf("change %d has no key", a.Appended)
	case a.Revision >= mvcc.MaxRevision:
		return nil, fmt.Errorf("key %q: no revision is left", c.Key)
	}
	old, err := a.current(c)
	scrubbed := a.scrub != nil && a.scrub(c.Key)
	switch {
	case err != nil:
		return nil, err
	case c.Delete && (old.Version == 0 || scrubbed):
		return nil, nil
	case scrubbed:
		return nil, fmt.Errorf("%w: key %q is scrubbed and cannot be written", errConflict, c.Key)
	}
	a.Revision++
	a.Appended++
	rec := &a.next
	*rec = Record{Revision: Revision{Main: a.Revision}, Key: c.Key, Tombstone: c.Delete}
	if c.Delete {
		a.Keys--
		return rec, nil
	}
	rec.ModRevision, rec.CreateRevision, rec.Version = a.Revision, old.CreateRevision, old.Version+1
	rec.Value, rec.Lease = c.Value, c.Lease
	if rec.Version == 1 {
		rec.CreateRevision = a.Revision
		a.Keys++
	}
	return rec, nil
}

// records yields the entry of each change that stores a record. An entry is valid until the next
// entry.
func (a *appender) records(ctx context.Context, changes iter.Seq2[Change, error]) entries {
	return stream.Of(func(yield func(bolt.Element) error) error {
		return stream.Each(changes, func(c Change) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			rec, err := a.record(c)
			if err != nil || rec == nil {
				return err
			}
			if a.compact != nil && !a.compact.keepsNew(rec.Revision, rec.Tombstone) {
				a.Compacted++
				return nil
			}
			return yield(a.encoder.Element(rec))
		})
	})
}

// keptEntries yields the entries of the file that are neither scrubbed nor compacted.
func (a *appender) keptEntries(ctx context.Context) entries { return a.x.entries(ctx, a.keeps) }

// keeps reports whether the entry of the file with this ordinal is kept, and counts the entry.
func (a *appender) keeps(ordinal uint32, el bolt.Element) (bool, error) {
	if a.scrub != nil {
		var rec Record
		if err := mvcc.ParseRecord(el.Key, el.Value, &rec); err != nil {
			return false, err
		}
		if len(rec.Key) > 0 && a.scrub(rec.Key) {
			a.Scrubbed++
			if a.x.live.has(ordinal) {
				a.Keys--
			}
			return false, nil
		}
	}
	if a.compact == nil {
		return true, nil
	}
	stays, err := a.compact.keeps(ordinal, el)
	if !stays {
		a.Compacted++
	}
	return stays, err
}

// finalRecord yields the record without key and value that keeps the revision from decreasing (etcd
// etcdutl/snapshot/v3_snapshot.go, unsafeBumpBucketsRevision).
func (a *appender) finalRecord() entries {
	return stream.Of(func(yield func(bolt.Element) error) error {
		if a.Revision >= mvcc.MaxRevision {
			return errors.New("no revision is left")
		}
		a.Revision++
		return yield(bolt.Element{Key: mvcc.AppendRevisionKey(nil, Revision{Main: a.Revision}, false)})
	})
}

// entries yields entries of a bucket in key order.
type entries = iter.Seq2[bolt.Element, error]

// concat yields the entries of each part, up to an error.
func concat(parts ...entries) entries {
	return stream.Of(func(yield func(bolt.Element) error) error {
		for _, part := range parts {
			if err := stream.Each(part, yield); err != nil {
				return err
			}
		}
		return nil
	})
}

// only yields the entries for which want returns true.
func only(from entries, want func(bolt.Element) bool) entries {
	return func(yield func(bolt.Element, error) bool) {
		for el, err := range from {
			if (err != nil || want(el)) && !yield(el, err) {
				return
			}
		}
	}
}

// merged yields the entries of old and of grants in key order. Both are sorted, and no key may be
// in both.
func merged(old entries, grants []bolt.Element) entries {
	return stream.Of(func(yield func(bolt.Element) error) error {
		more := grants
		err := stream.Each(old, func(el bolt.Element) error {
			for len(more) > 0 && bytes.Compare(more[0].Key, el.Key) < 0 {
				if err := yield(more[0]); err != nil {
					return err
				}
				more = more[1:]
			}
			if len(more) > 0 && bytes.Equal(more[0].Key, el.Key) {
				return fmt.Errorf("%w: the file has a lease %d already", errConflict, binary.BigEndian.Uint64(el.Key))
			}
			return yield(el)
		})
		if err != nil {
			return err
		}
		return stream.Each(bolt.Seq(more...), yield)
	})
}

// Lease is a lease to grant: its keys expire unless the lease is renewed within TTL seconds.
type Lease struct {
	ID  int64 // positive
	TTL int64 // seconds, from 1 to 9 000 000 000
}

// grantEntries returns the stored entries of leases, in the order of the bucket (etcd
// server/storage/schema/lease.go).
func grantEntries(leases []Lease) ([]bolt.Element, error) {
	leases = slices.SortedFunc(slices.Values(leases), func(a, b Lease) int { return cmp.Compare(a.ID, b.ID) })
	grants := make([]bolt.Element, len(leases))
	for i, l := range leases {
		switch {
		case l.ID <= 0:
			return nil, fmt.Errorf("%w: lease id %d is not positive", errConflict, l.ID)
		case l.TTL <= 0 || l.TTL > mvcc.MaxLeaseTTL:
			return nil, fmt.Errorf("lease %d: a time to live of %d seconds is not one that a server grants",
				l.ID, l.TTL)
		case i > 0 && l.ID == leases[i-1].ID:
			return nil, fmt.Errorf("%w: lease %d is granted twice", errConflict, l.ID)
		}
		grants[i] = mvcc.Lease{ID: l.ID, TTL: l.TTL}.Entry()
	}
	return grants, nil
}

// compactedAt returns the entries of the meta bucket with the compact revision rev; 0 for none.
func compactedAt(meta entries, rev int64) entries {
	other := only(meta, func(el bolt.Element) bool {
		return string(el.Key) != mvcc.FinishedCompact && string(el.Key) != mvcc.ScheduledCompact
	})
	if rev == 0 {
		return other
	}
	return merged(other, compactEntries(rev))
}

// compactEntries returns the compact revisions of a store compacted at rev.
func compactEntries(rev int64) []bolt.Element {
	value := mvcc.AppendRevisionKey(nil, Revision{Main: rev}, false)
	return []bolt.Element{
		{Key: []byte(mvcc.FinishedCompact), Value: value}, {Key: []byte(mvcc.ScheduledCompact), Value: value},
	}
}
