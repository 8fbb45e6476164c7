package snapshot

import (
	"context"
	"errors"
	"iter"
	"math"
	"slices"

	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

// Compaction removes history, like "etcdctl compact" and "etcdctl defrag" of a server on the
// output; see [WriteConfig].
type Compaction struct {
	// Keep is the number of revisions kept below the current revision of the output. The compact
	// revision is the current revision minus Keep, but at least the compact revision of the file.
	Keep int64
	// LiveOnly also removes the deletions at the compact revision, which etcd keeps since 3.5.16
	// for a watch from that revision. Keep must be 0: then every key of the file is live.
	LiveOnly bool
	// Disarm removes NOSPACE alarms, like "etcdctl alarm disarm".
	Disarm bool
	// RecordsOnly removes everything except records and leases: users and roles (a server then
	// requires no authentication), members, alarms, and buckets unknown to etcd.
	RecordsOnly bool
}

// compaction selects the records kept at or below its revision: the latest record of each key,
// except a deletion of an earlier revision (etcd server/storage/mvcc/key_index.go, compact). If one
// transaction at the compact revision deleted and put a key, servers 3.5.16 to 3.7.3 keep the
// deletion and lose the value; here the last record stays.
type compaction struct {
	Compaction
	x       *index
	rev     int64    // the compact revision, 0 for none
	past    *past    // nil if the file has no record above rev
	gone    bits     // records superseded by a change at or below rev
	unnamed Revision // of the last record without a key at or below rev; for etcd its key is empty
}

// newCompaction returns the compaction of d, or nil.
func (d *Draft) newCompaction(ctx context.Context) (*compaction, error) {
	if d.cfg.Compact == nil {
		return nil, nil
	}
	c := &compaction{Compaction: *d.cfg.Compact, x: d.x, gone: make(bits, len(d.x.live)), unnamed: d.x.unnamed}
	if c.Keep < 0 || c.LiveOnly && c.Keep > 0 {
		return nil, errors.New("a compaction keeps no negative number of revisions, and none if only live records stay")
	}
	replaced, current, err := replacedBy(ctx, d.changes, newAppender(d.x, d.cfg.Scrub))
	if err != nil {
		return nil, err
	}
	c.rev = max(current-c.Keep, d.x.compacted(), 0)
	if d.cfg.Scrub != nil && current <= c.rev {
		c.unnamed = Revision{} // the last record supersedes this record
	}
	for i, ordinal := range replaced {
		if ordinal != none && d.x.revision()+int64(i) < c.rev {
			c.gone.set(ordinal)
		}
	}
	if c.rev < d.x.last.Main {
		err = c.loadPast(ctx)
	}
	return c, err
}

// replacedBy returns the ordinal of the record superseded by each change, in the order of
// revisions, with none for a new key, and the current revision of the output.
func replacedBy(
	ctx context.Context, changes iter.Seq2[Change, error], a *appender,
) (replaced []uint32, current int64, err error) {
	err = stream.Each(changes, func(c Change) error {
		rec, err := a.record(c)
		if rec != nil {
			replaced = append(replaced, a.replaces)
		}
		return errors.Join(err, ctx.Err())
	})
	if a.scrub != nil {
		a.Revision++ // the last record
	}
	return replaced, a.Revision, err
}

// none stands for a missing ordinal: a change that creates a key supersedes no record.
const none = math.MaxUint32

// loadPast prepares c for records above the compact revision.
func (c *compaction) loadPast(ctx context.Context) (err error) {
	if c.past, err = newPast(ctx, c.x, nil, c.rev); err != nil || c.unnamed.Main <= c.rev {
		return err
	}
	c.unnamed = Revision{}
	want := func(ordinal uint32) bool { return ordinal < c.past.end }
	return c.x.scan(ctx, want, func(rec Scanned) error {
		if len(rec.Key) == 0 {
			c.unnamed = rec.Revision
		}
		return nil
	})
}

// keeps reports whether the entry of the file with this ordinal is kept.
func (c *compaction) keeps(ordinal uint32, el bolt.Element) (bool, error) {
	rev, tombstone, err := mvcc.ParseRevisionKey(el.Key)
	switch {
	case err != nil:
		return false, err
	case rev.Main > c.rev || tombstone && (rev.Main < c.rev || c.LiveOnly):
		return rev.Main > c.rev, nil
	case rev == c.unnamed:
		return true, nil
	case c.x.live.has(ordinal):
		return !c.gone.has(ordinal), nil
	case c.past == nil && !tombstone:
		return false, nil
	}
	var rec Record
	if err := mvcc.ParseRecord(el.Key, el.Value, &rec); err != nil {
		return false, err
	}
	if !tombstone {
		return c.past.holds(Scanned{Record: &rec, ordinal: ordinal})
	}
	latest := &c.x.table
	if c.past != nil {
		latest = &c.past.latest
	}
	at, found, err := latest.find(rec.Key, &Record{})
	return !found || at == ordinal, err
}

// keepsNew reports whether a record is kept if no later record at or below the compact revision
// supersedes it.
func (c *compaction) keepsNew(rev Revision, tombstone bool) bool {
	return !tombstone || rev.Main > c.rev || rev.Main == c.rev && !c.LiveOnly
}

// renew changes the buckets besides key for the compaction: scheduledCompactRev and
// finishedCompactRev are set as a server sets them. Disarm removes NOSPACE alarms; RecordsOnly
// empties all buckets except key, lease and meta.
func (c *compaction) renew(sources []bolt.Source) {
	for i := range sources {
		src := &sources[i]
		switch {
		case c.RecordsOnly && !slices.Contains([]string{"key", mvcc.LeaseBucket, mvcc.MetaBucket}, src.Name):
			src.Entries = bolt.Seq()
		case src.Name == mvcc.MetaBucket && c.rev > 0:
			src.Entries = compactedAt(src.Entries, c.rev)
		case src.Name == "alarm" && c.Disarm:
			src.Entries = only(src.Entries, func(el bolt.Element) bool {
				a, err := mvcc.ParseAlarm(el.Key)
				return err != nil || a.Kind != mvcc.AlarmNoSpace
			})
		}
	}
}
