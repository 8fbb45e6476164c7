package snapshot

import (
	"context"
	"fmt"
	"iter"
)

// Change is one write on top of a snapshot: a Put of Value with Lease, or a deletion.
type Change struct {
	Key, Value []byte
	Delete     bool
	Lease      int64 // 0 for none; a Put without it detaches the key from its lease, as in etcd
	Prior      int64 // ModRevision the change was planned against, 0 for a key that is absent or deleted
}

// WriteResult is what Write made.
type WriteResult struct {
	Revision int64  // current revision of the output; equal to the input's when nothing changed
	Keys     int    // live keys
	Bytes    int64  // size of the file
	SHA256   string // of the whole file, as sha256sum prints it
	Appended int    // records written on top, tombstones included, but not the last one of a scrubbed file
	Scrubbed int    // records of the input that were left out
}

// appender turns changes into the records that a server at revision rev would have stored next: one main revision a change,
// so that no two objects share a resourceVersion (etcd server/storage/mvcc/kvstore_txn.go, put and delete).
type appender struct {
	src  *Snapshot
	rev  int64
	keys int
	n    int
	// scrub, where it is set, names keys that are gone from src: a deletion of one stores nothing.
	scrub    func(key []byte) bool
	scrubbed int // records of src that are gone

	// What was changed already: a bit for the latest record of a key that the file has, and the keys that it has not.
	changed []uint64
	added   map[string]struct{}
}

func newAppender(ctx context.Context, src *Snapshot) (*appender, error) {
	x, err := src.index(ctx)
	if err != nil {
		return nil, err
	}
	return &appender{src: src, rev: x.revision(), keys: x.alive, changed: make([]uint64, len(x.live)), added: map[string]struct{}{}}, nil
}

// current returns the record that change c supersedes, a tombstone among them, nil for none, unless its key was changed before.
func (a *appender) current(ctx context.Context, c Change) (*Record, error) {
	old, ordinal, err := a.src.latest(ctx, c.Key)
	if err != nil {
		return nil, err
	}
	twice := false
	if old != nil {
		bit := uint64(1) << (ordinal % 64)
		twice = a.changed[ordinal/64]&bit != 0
		a.changed[ordinal/64] |= bit
	} else {
		_, twice = a.added[string(c.Key)]
		a.added[string(c.Key)] = struct{}{}
	}
	if twice {
		return nil, fmt.Errorf("%w: key %q is changed twice", ErrConflict, c.Key)
	}
	return old, nil
}

// record returns what change c stores, nil when it stores nothing: the deletion of a key that is not there.
func (a *appender) record(ctx context.Context, c Change) (*Record, error) {
	switch {
	case len(c.Key) == 0:
		return nil, fmt.Errorf("change %d has no key", a.n)
	case a.rev >= maxRevision:
		return nil, fmt.Errorf("key %q: no revision is left", c.Key)
	}
	old, err := a.current(ctx, c)
	if err != nil {
		return nil, err
	}
	if old != nil && old.Tombstone {
		old = nil
	}
	if have := modRevision(old); have != c.Prior {
		return nil, fmt.Errorf("%w: key %q is at %d, the change was planned against %d", ErrConflict, c.Key, have, c.Prior)
	}
	if c.Delete && old == nil {
		return nil, nil
	}
	if a.scrub != nil && a.scrub(c.Key) {
		if !c.Delete {
			return nil, fmt.Errorf("%w: key %q is scrubbed and cannot be written", ErrConflict, c.Key)
		}
		return nil, nil
	}
	a.rev++
	a.n++
	rec := &Record{Revision: Revision{Main: a.rev}, Key: c.Key, Tombstone: c.Delete}
	if c.Delete {
		a.keys--
		return rec, nil
	}
	rec.CreateRevision, rec.ModRevision, rec.Version = a.rev, a.rev, 1
	rec.Value, rec.Lease = c.Value, c.Lease
	if old != nil {
		rec.CreateRevision, rec.Version = old.CreateRevision, old.Version+1
	} else {
		a.keys++
	}
	return rec, nil
}

func modRevision(r *Record) int64 {
	if r == nil {
		return 0
	}
	return r.ModRevision
}

// records yields the encoded entry of each change that stores one. The bytes are valid until the next one.
func (a *appender) records(ctx context.Context, changes iter.Seq2[Change, error]) iter.Seq2[element, error] {
	return func(yield func(element, error) bool) {
		var key, value []byte
		for c, err := range changes {
			if err == nil {
				err = ctx.Err()
			}
			var rec *Record
			if err == nil {
				rec, err = a.record(ctx, c)
			}
			if err != nil {
				yield(element{}, err)
				return
			}
			if rec == nil {
				continue
			}
			key = appendRevisionKey(key[:0], rec.Revision, rec.Tombstone)
			value = rec.appendKeyValue(value[:0])
			if !yield(element{key: key, value: value}, nil) {
				return
			}
		}
	}
}
