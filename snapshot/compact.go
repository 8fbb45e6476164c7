package snapshot

import (
	"context"
	"errors"
	"iter"
	"math"
	"slices"

	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
)

// Compaction leaves out history, as "etcdctl compact" and "etcdctl defrag" of a server on the
// output would; see [WriteConfig].
type Compaction struct {
	// Keep is how many revisions below the current one of the output stay. The compact revision is
	// the current one less Keep, and never below that of the file.
	Keep int64
	// LiveOnly leaves out the deletions at the compact revision too, which etcd keeps since 3.5.16
	// for a watch that begins there. Keep must be 0: then every key of the file is a live one.
	LiveOnly bool
	// Disarm leaves out NOSPACE alarms, as "etcdctl alarm disarm" does.
	Disarm bool
	// RecordsOnly leaves out what a file has beside records and leases: users and roles, without
	// which a server asks for none, members, alarms, and buckets that etcd does not know.
	RecordsOnly bool
}

// compaction chooses the records that are left at or below its revision: the latest one of each
// key, unless that is a deletion of an earlier revision (etcd server/storage/mvcc/key_index.go,
// compact). If one transaction at the compact revision deleted and put a key, servers 3.5.16 to
// 3.7.3 keep the deletion and lose the value; here the last record stays.
type compaction struct {
	Compaction
	x       *index
	rev     int64    // the compact revision, 0 for none
	past    *past    // nil where no record of the file lies above rev
	gone    bits     // records that a change at or below rev supersedes
	unnamed Revision // of the last record without a key at or below rev: for etcd a key of no bytes
}

// newCompaction is the compaction of d, nil for none.
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
		c.unnamed = Revision{} // the last record supersedes it
	}
	for i, ordinal := range replaced {
		if ordinal != none && d.x.revision()+int64(i) < c.rev {
			c.gone.set(ordinal)
		}
	}
	if c.rev < d.x.last.Main {
		err = c.lookBack(ctx)
	}
	return c, err
}

// replacedBy has the ordinal of the record that each change supersedes, none for a new key, by the
// revision of the change; and the current revision of the output.
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

// none is no ordinal.
const none = math.MaxUint32

// lookBack prepares c for records above the compact revision.
func (c *compaction) lookBack(ctx context.Context) (err error) {
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

// keeps reports whether an entry of the file, which has the given ordinal, is left.
func (c *compaction) keeps(ordinal uint32, el bolt.Element) (bool, error) {
	rev, tombstone, err := parseRevisionKey(el.Key)
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
	if err := parseRecord(el.Key, el.Value, &rec); err != nil {
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

// keepsNew reports whether a record stays that no later one at or below the compact revision
// supersedes.
func (c *compaction) keepsNew(rev Revision, tombstone bool) bool {
	return !tombstone || rev.Main > c.rev || rev.Main == c.rev && !c.LiveOnly
}

// renew replaces what the compaction changes in small buckets: both compact revisions are those
// that a server stores, and alarms may be gone.
func (c *compaction) renew(sources []bolt.Source) {
	for i := range sources {
		src := &sources[i]
		switch {
		case c.RecordsOnly && !slices.Contains([]string{"key", leaseBucket, metaBucket}, src.Name):
			src.Entries = bolt.Seq()
		case src.Name == metaBucket && c.rev > 0:
			other := only(src.Entries, func(el bolt.Element) bool {
				return string(el.Key) != finishedCompact && string(el.Key) != scheduledCompact
			})
			src.Entries = merged(other, compactEntries(c.rev))
		case src.Name == "alarm" && c.Disarm:
			src.Entries = only(src.Entries, func(el bolt.Element) bool {
				n, err := varintField(el.Key, fieldAlarm)
				return err != nil || alarmNames()[n] != AlarmNoSpace
			})
		}
	}
}
