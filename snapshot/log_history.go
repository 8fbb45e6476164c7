package snapshot

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
	"github.com/etcdshift/etcdshift/snapshot/internal/wal"
)

// LogHistory selects the history of a data directory's log; see [WriteConfig].
type LogHistory struct {
	// Base is an earlier snapshot of the member, or the file from which the member was restored. It
	// is needed if the log does not begin with an empty store.
	Base *Snapshot
}

// ErrLogHistory is returned for a log whose records are not proven to be those of the database.
var ErrLogHistory = finding.WithLasting(errors.New("no history from the log"),
	"--base EARLIER names an earlier snapshot of this member, or the file from which it was restored")

// logStart is a possible beginning of the history: the store before an entry of the log.
type logStart struct {
	base  *Snapshot // nil for an empty store
	after uint64    // the entry
}

// logHistory is the history of a log, in the form of a key bucket.
type logHistory struct {
	log *wal.Log
	end uint64 // the last entry
	x   *index // of the data directory

	restored int // records that x lacks, of the last pass
}

// addLogHistory writes src with the history of its log.
func addLogHistory(ctx context.Context, d *Draft) (res WriteResult, err error) {
	if d.src.directory == nil {
		return res, fmt.Errorf("%w: %s is not a data directory", ErrLogHistory, d.src.path)
	}
	for _, err := range d.changes {
		return res, errors.Join(err, errors.New("a file with the history of a log takes no changes"))
	}
	h := &logHistory{end: d.src.directory.Entry, x: d.x}
	if h.log, err = wal.Scan(ctx, d.src.logFolder, 0); err != nil {
		return res, wal.Unusable(err)
	}
	base := d.cfg.LogHistory.Base
	if base == nil && (h.log.First > 1 || h.log.Restored > 0) {
		return h.writeInferred(ctx, d)
	}
	starts, err := h.starts(ctx, base)
	for _, start := range starts {
		if res, err = h.write(ctx, d, start); err == nil || !errors.Is(err, ErrLogHistory) {
			return res, err
		}
	}
	return res, err
}

// starts returns the possible beginnings. Only one of them can agree with the database.
func (h *logHistory) starts(ctx context.Context, base *Snapshot) (starts []logStart, err error) {
	first := h.log.First
	if base == nil {
		return []logStart{{nil, 0}}, nil
	}
	st, err := base.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	if n := st.ConsistentIndex; n+1 >= first && n <= h.end {
		starts = append(starts, logStart{base, n})
	}
	if first == 1 && h.log.Restored > 0 { // the base may count the entries of another log
		starts = append(starts, logStart{base, h.log.Restored})
	}
	if len(starts) == 0 {
		err = fmt.Errorf("%w: %s ends with entry %d, and the log has the entries %d to %d", ErrLogHistory, base.path,
			st.ConsistentIndex, first, h.end)
	}
	return starts, err
}

// write writes the history from a start on, and compares it with the database.
func (h *logHistory) write(ctx context.Context, d *Draft, start logStart) (res WriteResult, err error) {
	compacted := int64(0)
	if start.base != nil {
		x, err := start.base.index(ctx)
		if err != nil {
			return res, err
		}
		if err := start.base.Sound(ctx); err != nil {
			return res, err
		}
		compacted = x.compacted()
	}
	return h.create(ctx, d, h.entries(ctx, start), compacted)
}

// create writes records, compacted at a revision, with the other buckets of the database and more.
func (h *logHistory) create(
	ctx context.Context, d *Draft, records entries, compacted int64, more ...bolt.Source,
) (res WriteResult, err error) {
	m := d.src.db.Meta
	m.TxID++
	sources := d.sources(ctx)
	for i := range sources {
		switch src := &sources[i]; src.Name {
		case "key":
			src.Entries = records
		case mvcc.MetaBucket:
			if compacted < h.x.compacted() {
				src.Entries = compactedAt(src.Entries, compacted)
			}
		}
	}
	x, err := d.create(ctx, m, append(sources, more...))
	if err == nil {
		err = h.compareLive(ctx, x)
	}
	if err != nil {
		return res, err
	}
	res.FileInfo = FileInfo{Revision: x.revision(), Keys: x.alive}
	res.Restored = h.restored
	return res, nil
}

// entries yields the records of the base and of the log, and compares them with the database, which
// must have each record above its compaction, and no other records.
func (h *logHistory) entries(ctx context.Context, start logStart) entries {
	return stream.Of(func(yield func(bolt.Element) error) error {
		h.restored = 0
		c := &bolt.Cursor{DB: h.x.db, Bucket: h.x.keys}
		have, err := c.Next()
		if err != nil {
			return err
		}
		err = h.records(ctx, start, func(el bolt.Element) error {
			order := -1
			if have != nil {
				order = bytes.Compare(el.Key, have.Key)
			}
			rev, _, err := mvcc.ParseRevisionKey(el.Key)
			switch {
			case err != nil:
				return err
			case order > 0:
				return lacks(have)
			case order == 0 && !bytes.Equal(el.Value, have.Value):
				return fmt.Errorf("%w: the database and the log differ in record %s", ErrLogHistory, rev)
			case order == 0:
				have, err = c.Next()
			case rev.Main > h.x.compacted():
				return fmt.Errorf("%w: record %s is in the log and not in the database", ErrLogHistory, rev)
			default:
				h.restored++
			}
			return cmp.Or(err, yield(el))
		})
		if err == nil && have != nil {
			err = lacks(have)
		}
		return err
	})
}

// lacks is the error for a record of the database that the log does not make.
func lacks(el *bolt.Element) error {
	rev, _, err := mvcc.ParseRevisionKey(el.Key)
	return cmp.Or(err, fmt.Errorf("%w: record %s is in the database and not in the log", ErrLogHistory, rev))
}

// records calls fn with the records of the base and of the log.
func (h *logHistory) records(ctx context.Context, start logStart, fn func(bolt.Element) error) error {
	var enc mvcc.Encoder
	emit := func(rec *Record) error { return fn(enc.Element(rec)) }
	r, err := replayOn(ctx, start.base, h.log, DefaultMaxExpand, emit)
	if err != nil {
		return err
	}
	r.RecordsOnly = true
	if start.base != nil {
		err = start.base.read(func() error {
			return stream.Each(start.base.db.Entries(ctx, start.base.db.Bucket("key")), fn)
		})
		if bump := h.x.unnamed; err == nil && bump.Main > r.Revision && start.after == h.log.Restored {
			r.Revision = bump.Main // of the restore
			err = fn(enc.Element(&Record{Revision: bump}))
		}
		if err != nil {
			return err
		}
	}
	err = h.log.Each(ctx, start.after+1, h.end, func(e wal.Entry) error { return r.Apply(ctx, e) })
	return wal.UnusableIfDamaged(err)
}

// compareLive checks that the file with index x has the live records of the database, and no
// others.
func (h *logHistory) compareLive(ctx context.Context, x *index) error {
	if x.alive != h.x.alive || x.revision() != h.x.revision() {
		return fmt.Errorf("%w: the log leads to %d keys at revision %d, and the database has %d keys at revision %d",
			ErrLogHistory, x.alive, x.revision(), h.x.alive, h.x.revision())
	}
	var rec Record
	return h.x.scan(ctx, h.x.live.has, func(live Scanned) error {
		_, found, err := x.find(live.Key, &rec)
		if err == nil && (!found || rec.Revision != live.Revision) {
			err = fmt.Errorf("%w: record %s of key %q is not the last one in the log", ErrLogHistory, live.Revision,
				mvcc.Clip(live.Key))
		}
		return err
	})
}
