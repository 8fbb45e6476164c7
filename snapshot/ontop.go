package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

// onTop writes the pages of the snapshot to an empty file, and then records with later revisions
// and changed entries of other buckets, by bucket and key.
func (s *Snapshot) onTop(
	ctx context.Context, out *os.File, records func(add func(*Record) error) error,
	edits func() map[string]map[string][]byte,
) (int64, error) {
	db := s.db
	for at := int64(0); at < db.Bytes(); {
		n, err := copyRange(out, s.file, at, min(64<<20, db.Bytes()-at))
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return 0, fmt.Errorf("%w: %w", ErrScratch, err)
		}
		at += n
	}
	w := &bolt.Writer{Out: out, PageSize: db.PageSize, Next: db.HighWater}
	elements := stream.Of(func(yield func(bolt.Element) error) (err error) {
		var enc mvcc.Encoder
		return records(func(rec *Record) error { return yield(enc.Element(rec)) })
	})
	el, err := w.Append(ctx, db, db.Bucket("key"), elements)
	if err != nil {
		return 0, err
	}
	var renewed []bolt.Element
	if el.Key != nil {
		renewed = append(renewed, el)
	}
	changes := edits()
	for _, name := range mvcc.Buckets() { // in order: the same input gives the same bytes
		if edits := changes[name]; edits != nil {
			el, err := w.Bucket(editedBucket(ctx, db, name, edits))
			if err != nil {
				return 0, err
			}
			renewed = append(renewed, el)
		}
	}
	m := db.Meta
	if m.Root, err = w.Root(db, renewed); err == nil {
		err = w.Flush()
	}
	m.Freelist, m.HighWater, m.TxID = bolt.NoFreelist, w.Next, m.TxID+1
	if err == nil {
		_, err = out.WriteAt(m.Pages(), 0)
	}
	return m.Bytes(), err
}

// editedBucket returns a bucket of db with changed entries; a nil value removes the entry.
func editedBucket(ctx context.Context, db *bolt.DB, name string, edits map[string][]byte) bolt.Source {
	src := bolt.Source{Name: name}
	old := db.Bucket(name)
	if old != nil {
		src.Sequence = old.Sequence
	}
	stays := only(db.Entries(ctx, old), func(el bolt.Element) bool {
		_, changed := edits[string(el.Key)]
		return !changed
	})
	var added []bolt.Element
	for _, key := range slices.Sorted(maps.Keys(edits)) {
		if value := edits[key]; value != nil {
			added = append(added, bolt.Element{Key: []byte(key), Value: value})
		}
	}
	src.Entries = merged(stays, added)
	return src
}
