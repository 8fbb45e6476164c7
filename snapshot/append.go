package snapshot

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

// append writes src and appends the changes and grants.
func (d *Draft) append(ctx context.Context) (res WriteResult, err error) {
	l, err := d.foreseen.wait(ctx)
	if err != nil || !d.same() {
		d.stopLayout()
		if l, err = d.layOut(ctx); err != nil {
			return res, err
		}
		d.hashOld(l.meta)
	}
	sum, err := d.finishImage(ctx, l.meta)
	if err != nil {
		return res, err
	}
	if err := d.open(ctx, d.src, sum); err != nil { // the old pages were compared when they were copied
		return res, d.blame(ctx, err)
	}
	return l.WriteResult, d.out.guard(func() error { return d.compare(ctx, l.Appended) })
}

// layout describes the new pages of an output. Without changes meta is nil, unless src is raw (one
// of its metas is older or torn) or has a wrong free list.
type layout struct {
	meta *bolt.Meta
	WriteResult
}

// layOut writes the new pages.
func (d *Draft) layOut(ctx context.Context) (layout, error) {
	db, a := d.src.db, newAppender(d.x, nil)
	w := &bolt.Writer{Out: eager{d.file}, PageSize: db.PageSize, Next: db.HighWater}
	var renewed []bolt.Element // elements of the root bucket
	el, err := w.Append(ctx, db, d.x.keys, a.records(ctx, d.changes))
	if a.Appended > 0 {
		renewed = append(renewed, el)
	}
	if len(d.grants) > 0 && err == nil {
		el, err = w.Bucket(d.leases(ctx))
		renewed = append(renewed, el)
	}
	if err != nil || len(renewed) == 0 && !d.src.raw && db.FreelistErr == nil {
		return layout{nil, a.WriteResult}, err
	}
	m := db.Meta
	if len(renewed) > 0 {
		if m.Root, err = w.Root(db, renewed); err != nil {
			return layout{}, err
		}
	}
	m.Freelist, m.HighWater, m.TxID = bolt.NoFreelist, w.Next, m.TxID+1
	return layout{&m, a.WriteResult}, w.Flush()
}

// sources returns the buckets of src, with the grants.
func (d *Draft) sources(ctx context.Context) []bolt.Source {
	var sources []bolt.Source
	for i := range d.src.db.Buckets {
		b := &d.src.db.Buckets[i]
		sources = append(sources, bolt.Source{
			Name: b.Name, Sequence: b.Sequence, Entries: d.src.db.Entries(ctx, b), Paged: b.Name == "key",
		})
	}
	if len(d.grants) > 0 {
		sources = slices.DeleteFunc(sources, func(src bolt.Source) bool { return src.Name == mvcc.LeaseBucket })
		sources = append(sources, d.leases(ctx))
		slices.SortFunc(sources, func(a, b bolt.Source) int { return strings.Compare(a.Name, b.Name) })
	}
	return sources
}

// leases returns the lease bucket of src, which may be missing, with the grants.
func (d *Draft) leases(ctx context.Context) bolt.Source {
	old := d.src.db.Bucket(mvcc.LeaseBucket)
	src := bolt.Source{Name: mvcc.LeaseBucket, Entries: merged(d.src.db.Entries(ctx, old), d.grants)}
	if old != nil {
		src.Sequence = old.Sequence
	}
	return src
}

// compare checks that the output holds the records of src, the changes and the grants, and no other
// entries. The copy was compared page by page, so leaves of both trees are not read again.
func (d *Draft) compare(ctx context.Context, appended int) error {
	db, want := d.out.db, d.sources(ctx)
	if len(db.Buckets) != len(want) {
		return fmt.Errorf("%w: %d buckets, want %d", ErrVerify, len(db.Buckets), len(want))
	}
	for i, src := range want {
		b := &db.Buckets[i]
		switch {
		case src.Name == "key" && appended > 0:
		case src.Name == mvcc.LeaseBucket && len(d.grants) > 0:
			if err := compareBucket(db, b, src); err != nil {
				return err
			}
		case !reflect.DeepEqual(d.src.db.Bucket(src.Name), b):
			return fmt.Errorf("%w: bucket %q is not as it was", ErrVerify, src.Name)
		}
	}
	if appended == 0 && len(d.grants) == 0 {
		return nil
	}
	err := d.src.Guard(func() error { return checkBranches(ctx, db) }) // most pages are those of src
	switch {
	case err != nil && !errors.Is(err, ErrChanged):
		return d.blame(ctx, err)
	case err != nil || appended == 0:
		return err
	}
	return d.compareRecords(ctx, db)
}

// compareRecords checks that the key bucket kept its old leaves, and that the new leaves hold
// exactly the records of the changes. The records of an inline bucket move to the new leaves.
func (d *Draft) compareRecords(ctx context.Context, db *bolt.DB) error {
	old, now := d.x.keys, db.Bucket("key")
	kept := 0 // leaves in the old pages
	for kept < len(now.Leaves) && now.Leaves[kept] < d.src.db.HighWater {
		kept++
	}
	want := newAppender(d.x, nil).records(ctx, d.changes)
	if old.Root == 0 { // the records of an inline bucket got new leaves
		want = concat(d.src.db.Entries(ctx, old), want)
	} else {
		leaves, n := old.Leaves, len(old.Leaves)-1
		if p, err := d.src.db.Page(leaves[n]); err == nil && p.Count() == 0 {
			leaves = leaves[:n] // the leaf of an empty bucket is dropped
		}
		if !slices.Equal(leaves, now.Leaves[:kept]) {
			return fmt.Errorf("%w: the old leaves are not where they were", ErrVerify)
		}
	}
	return compareEntries(&bolt.Cursor{DB: db, Bucket: now, Leaf: kept}, want)
}

// blame returns an error that names src if src has the same damage as the output.
func (d *Draft) blame(ctx context.Context, err error) error {
	if old := checkBranches(ctx, d.src.db); old != nil {
		return d.src.wrap(old)
	}
	return fmt.Errorf("%w: %w", ErrVerify, err)
}

// checkBranches checks the branches to each bucket, each record and each lease.
func checkBranches(ctx context.Context, db *bolt.DB) error {
	err := db.CheckBranches(ctx, db.Root)
	for _, name := range []string{"key", mvcc.LeaseBucket} {
		if b := db.Bucket(name); b != nil && err == nil {
			err = db.CheckBranches(ctx, b.Root)
		}
	}
	return err
}
