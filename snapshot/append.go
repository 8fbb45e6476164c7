package snapshot

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
)

// append writes src with the changes and grants on top and reads that back.
func (e *edit) append(ctx context.Context) (res WriteResult, err error) {
	a := newAppender(e.x, nil)
	m, err := e.layOut(ctx, a)
	if err != nil {
		return res, err
	}
	d, err := e.proveImage(ctx, m)
	if err != nil {
		return res, err
	}
	out, err := e.open(ctx)
	if err != nil {
		return res, e.blame(ctx, err)
	}
	defer func() { _ = out.Close() }()
	if err := out.guard(func() error { return e.compare(ctx, out, a.Appended) }); err != nil {
		return res, err
	}
	return e.approve(ctx, out, d, a.WriteResult)
}

// layOut writes the new pages and returns their meta: nil without any change, unless src is raw,
// and one of its metas older or torn, or has a wrong free list.
func (e *edit) layOut(ctx context.Context, a *appender) (*bolt.Meta, error) {
	db := e.src.db
	w := &bolt.Writer{Out: e.file, PageSize: db.PageSize, Next: db.HighWater}
	var renewed []bolt.Element // of the root bucket
	el, err := w.Append(ctx, db, e.x.keys, a.records(ctx, e.changes))
	if a.Appended > 0 {
		renewed = append(renewed, el)
	}
	if len(e.grants) > 0 && err == nil {
		el, err = w.Bucket(e.leases(ctx))
		renewed = append(renewed, el)
	}
	if err != nil || len(renewed) == 0 && !e.src.raw && db.FreelistErr == nil {
		return nil, err
	}
	m := db.Meta
	if len(renewed) > 0 {
		if m.Root, err = w.Root(db, renewed); err != nil {
			return nil, err
		}
	}
	m.Freelist, m.HighWater, m.TxID = bolt.NoFreelist, w.Next, m.TxID+1
	return &m, w.Flush()
}

// rewrite writes src without the records that are scrubbed or compacted, with the changes and
// grants on top, and reads that back.
func (e *edit) rewrite(ctx context.Context) (res WriteResult, err error) {
	if err := e.empty(); err != nil {
		return res, err
	}
	compact, err := e.newCompaction(ctx)
	if err != nil {
		return res, err
	}
	m := e.src.db.Meta
	m.TxID++
	var a *appender // of the last pass
	sources := e.sources(ctx)
	if compact != nil {
		m.TxID = 1 // as after a defragmentation; the same content gives the same bytes
		compact.renew(sources)
	}
	key := slices.IndexFunc(sources, func(src bolt.Source) bool { return src.Name == "key" })
	sources[key].Entries = func(yield func(bolt.Element, error) bool) {
		a = newAppender(e.x, e.Scrub)
		a.compact = compact
		parts := []entries{a.left(ctx), a.records(ctx, e.changes)}
		if e.Scrub != nil {
			parts = append(parts, a.last())
		}
		inTurn(parts...)(yield)
	}
	out, d, err := e.create(ctx, m, sources)
	if err != nil {
		return res, err
	}
	defer func() { _ = out.Close() }()
	x, err := out.index(ctx)
	if err == nil && (x.alive != a.Keys || x.revision() != a.Revision || compact != nil && x.repeats) {
		err = fmt.Errorf("%w: %d keys at revision %d, want %d at %d", ErrVerify, x.alive, x.revision(), a.Keys, a.Revision)
	}
	if err != nil {
		return res, err
	}
	return e.approve(ctx, out, d, a.WriteResult)
}

// sources are the buckets of src, with the grants.
func (e *edit) sources(ctx context.Context) []bolt.Source {
	var sources []bolt.Source
	for i := range e.src.db.Buckets {
		b := &e.src.db.Buckets[i]
		sources = append(sources, bolt.Source{
			Name: b.Name, Sequence: b.Sequence, Entries: e.src.db.Entries(ctx, b), Paged: b.Name == "key",
		})
	}
	if len(e.grants) > 0 {
		sources = slices.DeleteFunc(sources, func(src bolt.Source) bool { return src.Name == leaseBucket })
		sources = append(sources, e.leases(ctx))
		slices.SortFunc(sources, func(a, b bolt.Source) int { return strings.Compare(a.Name, b.Name) })
	}
	return sources
}

// leases is the lease bucket of src, which may have none, with the grants.
func (e *edit) leases(ctx context.Context) bolt.Source {
	old := e.src.db.Bucket(leaseBucket)
	src := bolt.Source{Name: leaseBucket, Entries: merged(e.src.db.Entries(ctx, old), e.grants)}
	if old != nil {
		src.Sequence = old.Sequence
	}
	return src
}

// compare proves that out holds the records of src, the changes and the grants, and nothing else.
// The copy has compared the old pages: leaves that both trees share are not read again.
func (e *edit) compare(ctx context.Context, out *Snapshot, appended int) error {
	want := e.sources(ctx)
	if len(out.db.Buckets) != len(want) {
		return fmt.Errorf("%w: %d buckets, want %d", ErrVerify, len(out.db.Buckets), len(want))
	}
	for i, src := range want {
		b := &out.db.Buckets[i]
		switch {
		case src.Name == "key" && appended > 0:
		case src.Name == leaseBucket && len(e.grants) > 0:
			if err := compareBucket(out.db, b, src); err != nil {
				return err
			}
		case !reflect.DeepEqual(e.src.db.Bucket(src.Name), b):
			return fmt.Errorf("%w: bucket %q is not as it was", ErrVerify, src.Name)
		}
	}
	if appended == 0 && len(e.grants) == 0 {
		return nil
	}
	if err := checkWays(ctx, out.db); err != nil {
		return e.blame(ctx, err)
	}
	if appended == 0 {
		return nil
	}
	return e.compareRecords(ctx, out.db)
}

// compareRecords compares the old leaves of the key bucket, then the records of new leaves with the
// changes.
func (e *edit) compareRecords(ctx context.Context, db *bolt.DB) error {
	old, now := e.x.keys, db.Bucket("key")
	kept := 0 // leaves among the old pages
	for kept < len(now.Leaves) && now.Leaves[kept] < e.src.db.HighWater {
		kept++
	}
	want := newAppender(e.x, nil).records(ctx, e.changes)
	if old.Root == 0 { // its records were given leaves
		want = inTurn(e.src.db.Entries(ctx, old), want)
	} else {
		leaves := old.Leaves
		last := leaves[len(leaves)-1]
		if p, err := e.src.db.Page(last); err == nil && p.Count() == 0 {
			leaves = leaves[:len(leaves)-1] // the leaf of an empty bucket is dropped
		}
		if !slices.Equal(leaves, now.Leaves[:kept]) {
			return fmt.Errorf("%w: the old leaves are not where they were", ErrVerify)
		}
	}
	return compareEntries(&bolt.Cursor{DB: db, Bucket: now, Leaf: kept}, want)
}

// blame names src in the error if src has the damage of the output too.
func (e *edit) blame(ctx context.Context, err error) error {
	if old := checkWays(ctx, e.src.db); old != nil {
		return e.src.wrap(old)
	}
	return fmt.Errorf("%w: %w", ErrVerify, err)
}

// checkWays checks the way to each bucket, to each record and to each lease.
func checkWays(ctx context.Context, db *bolt.DB) error {
	err := db.CheckBranches(ctx, db.Root)
	for _, name := range []string{"key", leaseBucket} {
		if b := db.Bucket(name); b != nil && err == nil {
			err = db.CheckBranches(ctx, b.Root)
		}
	}
	return err
}

// compareBucket compares bucket b with src.
func compareBucket(db *bolt.DB, b *bolt.Bucket, src bolt.Source) error {
	if b.Name != src.Name || b.Sequence != src.Sequence {
		return fmt.Errorf("%w: bucket %q is not what was to be written", ErrVerify, src.Name)
	}
	return compareEntries(&bolt.Cursor{DB: db, Bucket: b}, src.Entries)
}

// compareEntries compares the entries behind c with want.
func compareEntries(c *bolt.Cursor, want entries) error {
	n, name := 0, c.Bucket.Name
	for want, err := range want {
		if err != nil {
			return err
		}
		got, err := c.Next()
		switch {
		case err != nil:
			return fmt.Errorf("%w: %w", ErrVerify, err)
		case got == nil:
			return fmt.Errorf("%w: bucket %q: only %d of the entries are there", ErrVerify, name, n)
		case got.Flags != want.Flags || !bytes.Equal(got.Key, want.Key) || !bytes.Equal(got.Value, want.Value):
			return fmt.Errorf("%w: bucket %q: entry %d is not what was to be written", ErrVerify, name, n)
		}
		n++
	}
	if got, err := c.Next(); err != nil || got != nil {
		return fmt.Errorf("%w: bucket %q: there are more than the %d entries that were to be written (%v)",
			ErrVerify, name, n, err)
	}
	return nil
}
