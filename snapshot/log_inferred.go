package snapshot

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
	"github.com/etcdshift/etcdshift/snapshot/internal/infer"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
	"github.com/etcdshift/etcdshift/snapshot/internal/wal"
)

// InferredHistory describes the history of a log whose first entries are gone.
type InferredHistory struct {
	Oldest     int64          `json:"oldest"`     // the first revision of the log
	Sure       int            `json:"sure"`       // writes with a known revision
	Flagged    int            `json:"flagged"`    // other writes up to the compact revision, which are left out
	FreePages  int            `json:"freePages"`  // records without a complete state, in free pages of the output
	Unfindable int            `json:"unfindable"` // others, which a search of the free pages does not find
	Unknown    []UnknownValue `json:"unknown"`    // keys that existed before the log, by key
}

// UnknownValue is a key that existed, with an unknown value.
type UnknownValue struct {
	Key     string `json:"key"`
	Until   int64  `json:"until"`   // the revision of the first known change
	Deleted bool   `json:"deleted"` // this change is the deletion
}

// writeInferred writes the history of a log whose beginning is unknown. In the tree are the states
// that are completely known; other sure records are in free pages.
func (h *logHistory) writeInferred(ctx context.Context, d *Draft) (res WriteResult, err error) {
	sol, err := h.infer(ctx, d.src)
	if err != nil {
		return res, err
	}
	removed := h.removed(ctx, sol)
	res, err = h.create(ctx, d, h.known(ctx, sol), sol.Complete,
		bolt.Source{Name: "removed", Entries: removed, Paged: true, Free: true})
	if err != nil {
		return res, err
	}
	in := &InferredHistory{Oldest: sol.Oldest, Sure: sol.Sure, Flagged: sol.Flagged, Unknown: []UnknownValue{}}
	for _, u := range sol.Unknown {
		in.Unknown = append(in.Unknown, UnknownValue(u))
	}
	res.Inferred = in
	return res, in.count(ctx, d.out, removed)
}

// infer finds the writes of the log.
func (h *logHistory) infer(ctx context.Context, s *Snapshot) (*infer.Solution, error) {
	st, err := s.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	if st.AuthEnabled || len(st.Alarms) > 0 {
		return nil, fmt.Errorf("%w: authentication is enabled, or an alarm is raised", ErrLogHistory)
	}
	db := infer.Database{Revision: h.x.revision(), Compacted: h.x.compacted(), Leases: map[int64]bool{}}
	err = s.entries(ctx, mvcc.LeaseBucket, func(_, v []byte) error {
		l, err := mvcc.ParseLease(v)
		db.Leases[l.ID] = true
		return err
	})
	if err != nil {
		return nil, err
	}
	db.Each = func(fn func(*infer.Record) error) error {
		return h.x.scan(ctx, func(uint32) bool { return true }, func(rec Scanned) error {
			return fn(&infer.Record{Main: rec.Revision.Main, Sub: rec.Revision.Sub, Key: rec.Key, Value: rec.Value,
				Tombstone: rec.Tombstone, Create: rec.CreateRevision, Version: rec.Version, Live: rec.Live})
		})
	}
	sol, err := infer.Solve(ctx, h.log, h.end, db)
	switch {
	case errors.Is(err, wal.ErrDamaged):
		return nil, wal.Unusable(err)
	case errors.Is(err, infer.ErrUnsolved):
		return nil, fmt.Errorf("%w: %w", ErrLogHistory, err)
	}
	return sol, err
}

// each calls fn with the sure records in revision order.
func (h *logHistory) each(
	ctx context.Context, sol *infer.Solution, fn func(el bolt.Element, rev Revision, removed bool) error,
) error {
	var enc mvcc.Encoder
	err := sol.Each(ctx, func(w *infer.Write) error {
		rec := Record{Revision: Revision{Main: w.Main, Sub: w.Sub}, Tombstone: w.Tombstone, Key: w.Key, Value: w.Value,
			CreateRevision: w.Create, ModRevision: w.Main, Version: w.Version, Lease: w.Lease}
		return fn(enc.Element(&rec), rec.Revision, w.Removed)
	})
	return wal.UnusableIfDamaged(err)
}

// known yields the records of the database, and the sure records of the completely known states. A
// record of both must be equal.
func (h *logHistory) known(ctx context.Context, sol *infer.Solution) entries {
	return stream.Of(func(yield func(bolt.Element) error) error {
		h.restored = 0
		c := &bolt.Cursor{DB: h.x.db, Bucket: h.x.keys}
		have, err := c.Next()
		until := func(key []byte) error {
			for err == nil && have != nil && bytes.Compare(have.Key, key) < 0 {
				if err = yield(*have); err == nil {
					have, err = c.Next()
				}
			}
			return err
		}
		failed := h.each(ctx, sol, func(el bolt.Element, rev Revision, removed bool) error {
			if err := until(el.Key); err != nil {
				return err
			}
			if have != nil && bytes.Equal(have.Key, el.Key) {
				if !bytes.Equal(have.Value, el.Value) {
					return fmt.Errorf("%w: the database and the log differ in record %s", ErrLogHistory, rev)
				}
				return nil
			}
			if removed {
				return nil
			}
			h.restored++
			return yield(el)
		})
		return cmp.Or(failed, until([]byte{0xff}))
	})
}

// removed yields the other sure records.
func (h *logHistory) removed(ctx context.Context, sol *infer.Solution) entries {
	return stream.Of(func(yield func(bolt.Element) error) error {
		return h.each(ctx, sol, func(el bolt.Element, _ Revision, removed bool) error {
			if !removed {
				return nil
			}
			return yield(el)
		})
	})
}

// count counts the records of want that are found in free pages of s. No other record is found.
func (in *InferredHistory) count(ctx context.Context, s *Snapshot, want entries) error {
	r, err := s.removed(ctx)
	if err != nil {
		return err
	}
	rest := r.found
	err = stream.Each(want, func(el bolt.Element) error {
		if len(rest) > 0 {
			value, same := bytes.CutPrefix(r.BytesOf(rest[0]), el.Key)
			if same && bytes.Equal(value, el.Value) {
				in.FreePages++
				rest = rest[1:]
				return nil
			}
		}
		in.Unfindable++
		return nil
	})
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%w: free pages have a record at revision %d that was not written", ErrVerify, rest[0].Main)
	}
	return err
}
