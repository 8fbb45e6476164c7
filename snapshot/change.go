package snapshot

import (
	"context"
	"fmt"
	"iter"

	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
)

// Change is one write on top of a snapshot: a Put of Value with Lease, or a deletion.
type Change struct {
	Key, Value []byte
	Delete     bool
	Lease      int64 // 0 for none; a Put without it detaches the key from its lease, as in etcd
	Prior      int64 // ModRevision the change was planned against, 0 for an absent or deleted key
}

// WriteResult is what Write made.
type WriteResult struct {
	Revision int64  // current revision of the output; equal to the input's when nothing changed
	Keys     int    // live keys
	Bytes    int64  // size of the file
	SHA256   string // of the whole file, as sha256sum prints it
	Appended int    // records written on top, but not the last one of a scrubbed file
	Scrubbed int    // records of the input that were left out
}

// entries are entries of a bucket, in the order of their keys.
type entries = iter.Seq2[bolt.Element, error]

// inTurn yields the entries of each part, up to an error.
func inTurn(parts ...entries) entries {
	return func(yield func(bolt.Element, error) bool) {
		for _, part := range parts {
			for el, err := range part {
				if !yield(el, err) || err != nil {
					return
				}
			}
		}
	}
}

// appender turns changes into the records that a server at that revision would have stored next:
// one main revision a change, so that no two objects share a resourceVersion (etcd
// server/storage/mvcc/kvstore_txn.go, put and delete).
type appender struct {
	x *index
	// scrub, if it is set, names keys that are gone from x: a deletion of one stores nothing.
	scrub func(key []byte) bool
	WriteResult

	// Keys changed already: a bit for the latest record of one that the file has, and the others.
	changed []uint64
	added   map[string]bool
	encoder encoder
}

func newAppender(x *index, scrub func(key []byte) bool) *appender {
	return &appender{
		x: x, scrub: scrub, WriteResult: WriteResult{Revision: x.revision(), Keys: x.alive},
		changed: make([]uint64, len(x.live)), added: map[string]bool{},
	}
}

// current returns the record that change c supersedes, nil for none or a tombstone.
func (a *appender) current(c Change) (*Record, error) {
	old := new(Record)
	ordinal, found, err := a.x.find(c.Key, old)
	if err != nil {
		return nil, err
	}
	twice := a.added[string(c.Key)]
	if found {
		bit := uint64(1) << (ordinal % 64)
		twice = a.changed[ordinal/64]&bit != 0
		a.changed[ordinal/64] |= bit
	} else {
		a.added[string(c.Key)] = true
	}
	if twice {
		return nil, fmt.Errorf("%w: key %q is changed twice", errConflict, c.Key)
	}
	if !found || old.Tombstone {
		old = nil
	}
	if have := modRevision(old); have != c.Prior {
		return nil, fmt.Errorf("%w: key %q is at %d, the change was planned against %d",
			errConflict, c.Key, have, c.Prior)
	}
	return old, nil
}

func modRevision(r *Record) int64 {
	if r == nil {
		return 0
	}
	return r.ModRevision
}

// record returns what change c stores, nil if that is nothing: the deletion of an absent key.
func (a *appender) record(c Change) (*Record, error) {
	switch {
	case len(c.Key) == 0:
		return nil, fmt.Errorf("change %d has no key", a.Appended)
	case a.Revision >= maxRevision:
		return nil, fmt.Errorf("key %q: no revision is left", c.Key)
	}
	old, err := a.current(c)
	scrubbed := a.scrub != nil && a.scrub(c.Key)
	switch {
	case err != nil:
		return nil, err
	case c.Delete && (old == nil || scrubbed):
		return nil, nil
	case scrubbed:
		return nil, fmt.Errorf("%w: key %q is scrubbed and cannot be written", errConflict, c.Key)
	}
	a.Revision++
	a.Appended++
	rec := &Record{Revision: Revision{Main: a.Revision}, Key: c.Key, Tombstone: c.Delete}
	if c.Delete {
		a.Keys--
		return rec, nil
	}
	rec.CreateRevision, rec.ModRevision, rec.Version = a.Revision, a.Revision, 1
	rec.Value, rec.Lease = c.Value, c.Lease
	if old != nil {
		rec.CreateRevision, rec.Version = old.CreateRevision, old.Version+1
	} else {
		a.Keys++
	}
	return rec, nil
}

// records yields the entry of each change that stores one, valid until the next one.
func (a *appender) records(ctx context.Context, changes iter.Seq2[Change, error]) entries {
	return func(yield func(bolt.Element, error) bool) {
		for c, err := range changes {
			if err == nil {
				err = ctx.Err()
			}
			var rec *Record
			if err == nil {
				rec, err = a.record(c)
			}
			if err != nil {
				yield(bolt.Element{}, err)
				return
			}
			if rec != nil && !yield(a.encoder.element(rec), nil) {
				return
			}
		}
	}
}

// left yields the entries of the file but for the records of keys that are scrubbed.
func (a *appender) left(ctx context.Context) entries {
	return func(yield func(bolt.Element, error) bool) {
		var rec Record
		ordinal := uint32(0)
		for el, err := range a.x.db.Entries(ctx, a.x.keys) {
			if err == nil {
				err = parseRecord(el.Key, el.Value, &rec)
			}
			gone := err == nil && len(rec.Key) > 0 && a.scrub(rec.Key)
			if gone {
				a.Scrubbed++
				if a.x.isLive(ordinal) {
					a.Keys--
				}
			}
			ordinal++
			if !gone && (!yield(el, err) || err != nil) {
				return
			}
		}
	}
}

// last yields the record without key and value that keeps the revision from going back (etcd
// etcdutl/snapshot/v3_snapshot.go, unsafeBumpBucketsRevision).
func (a *appender) last(yield func(bolt.Element, error) bool) {
	if a.Revision >= maxRevision {
		yield(bolt.Element{}, fmt.Errorf("no revision is left"))
		return
	}
	a.Revision++
	yield(bolt.Element{Key: appendRevisionKey(nil, Revision{Main: a.Revision}, false)}, nil)
}
