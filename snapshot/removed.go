package snapshot

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"slices"

	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
	"github.com/etcdshift/etcdshift/snapshot/internal/carve"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

// removed holds the records that a compaction removed from the tree, and whose bytes are still in
// the file: in free pages, behind the elements of a page, or behind the image.
type removed struct {
	carve.Carver
	found []carve.Found // in revision order
}

// removed searches the file at the first call. Memory is 24 bytes for each record.
func (s *records) removed(ctx context.Context) (*removed, error) {
	x, err := s.index(ctx)
	if err != nil {
		return nil, err
	}
	s.carving.Lock()
	defer s.carving.Unlock()
	if s.carved != nil {
		return s.carved, nil
	}
	r := &removed{Carver: carve.Carver{Data: s.data, PageSize: int64(s.db.PageSize), Last: x.compacted(),
		Unnumbered: true}}
	err = s.read(func() error {
		spans, err := s.db.Unused(ctx)
		if err != nil {
			return err
		}
		spans = append(spans, bolt.Span{From: s.db.Bytes(), To: int64(len(s.data))})
		if r.found, err = r.FindAll(ctx, s.Parallel, spans); err != nil {
			return err
		}
		r.found, err = r.without(&bolt.Cursor{DB: s.db, Bucket: s.db.Bucket("key")})
		return err
	})
	if err != nil {
		return nil, err
	}
	s.carved = r
	return r, nil
}

// without returns the found records that are not among the entries of c.
func (r *removed) without(c *bolt.Cursor) (rest []carve.Found, err error) {
	el, err := c.Next()
	for _, f := range r.found {
		id := r.ID(f)[:mvcc.RevisionKeySize]
		for err == nil && el != nil && bytes.Compare(el.Key, id) < 0 {
			el, err = c.Next()
		}
		if err != nil {
			return nil, err
		}
		if el == nil || !bytes.HasPrefix(el.Key, id) {
			rest = append(rest, f)
		}
	}
	return rest, nil
}

// at decodes removed record i into rec.
func (r *removed) at(i int, rec *Record) error {
	err := r.Parse(r.found[i], rec)
	rec.FreePage = true
	return err
}

// withRemoved yields the kept records and, with Config.FreePages, the removed records with a
// wanted key, in revision order.
func (s *records) withRemoved(
	ctx context.Context, want func(key []byte) bool, kept iter.Seq2[Scanned, error],
) iter.Seq2[Scanned, error] {
	if !s.freePages {
		return kept
	}
	return stream.Of(func(yield func(Scanned) error) error {
		r, err := s.removed(ctx)
		if err != nil {
			return err
		}
		next := 0
		var rec Record
		before := func(rev Revision) error {
			for ; next < len(r.found) && r.found[next].Main <= rev.Main; next++ {
				err := cmp.Or(ctx.Err(), s.read(func() error { return r.at(next, &rec) }))
				if err != nil || rec.Revision.Compare(rev) >= 0 {
					return err
				}
				if !want(rec.Key) {
					continue
				}
				if err := yield(Scanned{Record: &rec, Stored: int(r.found[next].Size)}); err != nil {
					return err
				}
			}
			return nil
		}
		err = stream.Each(kept, func(rec Scanned) error {
			if err := before(rec.Revision); err != nil {
				return err
			}
			return yield(rec)
		})
		if err != nil {
			return err
		}
		return before(Revision{Main: mvcc.MaxRevision})
	})
}

// Removed yields the records of free pages that Records yields with Config.FreePages, and without
// it none.
func (s *records) Removed(ctx context.Context) iter.Seq2[*Record, error] {
	none := func(func(Scanned, error) bool) {}
	return stream.Map(s.withRemoved(ctx, func([]byte) bool { return true }, none), Scanned.record)
}

// removedKeys holds the removed records of deleted keys, by their indices.
type removedKeys struct {
	*removed
	gone []goneKey      // keys without a record in the tree, in the order of their last record
	puts map[uint32]int // the last Put of a key whose tombstone in the tree has this ordinal
}

// goneKey holds the last removed records of a key; an index is -1 for none.
type goneKey struct{ put, tombstone int }

// removedKeys returns the removed records of deleted keys with the prefix; none without
// Config.FreePages.
func (s *records) removedKeys(ctx context.Context, x *index, prefix []byte) (*removedKeys, error) {
	k := &removedKeys{removed: &removed{}, puts: map[uint32]int{}}
	if !s.freePages {
		return k, nil
	}
	var err error
	if k.removed, err = s.removed(ctx); err != nil {
		return nil, err
	}
	var rec, latest, other Record
	byKey := carve.NewTable(func(n int32) []byte {
		_ = k.at(max(k.gone[n].put, k.gone[n].tombstone), &other) // was parsed before
		return other.Key
	})
	place := func() *goneKey {
		n := byKey.Get(rec.Key)
		if n < 0 {
			n = int32(len(k.gone))
			k.gone = append(k.gone, goneKey{-1, -1})
			byKey.Replace(rec.Key, n)
		}
		return &k.gone[n]
	}
	err = s.read(func() error {
		for i := range k.found {
			if err := cmp.Or(ctx.Err(), k.at(i, &rec)); err != nil {
				return err
			}
			if !bytes.HasPrefix(rec.Key, prefix) {
				continue
			}
			ordinal, found, err := x.find(rec.Key, &latest)
			switch {
			case err != nil:
				return err
			case !found && rec.Tombstone:
				place().tombstone = i
			case !found:
				place().put = i
			case latest.Tombstone && !rec.Tombstone:
				k.puts[ordinal] = i
			}
		}
		return nil
	})
	slices.SortFunc(k.gone, func(a, b goneKey) int {
		return cmp.Compare(max(a.put, a.tombstone), max(b.put, b.tombstone))
	})
	return k, err
}

// each yields the keys without a record in the tree as deletions.
func (k *removedKeys) each(ctx context.Context, yield func(*Deletion) error) error {
	for _, g := range k.gone {
		d, rec := &Deletion{FreePage: true}, new(Record)
		if g.tombstone >= 0 {
			if err := k.at(g.tombstone, rec); err != nil {
				return err
			}
			d.Key = rec.Key
			if g.tombstone > g.put {
				d.Revision = rec.Revision
			}
		}
		if g.put >= 0 {
			d.Last = new(Record)
			if err := k.at(g.put, d.Last); err != nil {
				return err
			}
			d.Key = d.Last.Key
		}
		if err := cmp.Or(ctx.Err(), yield(d)); err != nil {
			return err
		}
	}
	return nil
}

// last returns the last removed Put of the key whose tombstone in the tree has an ordinal; nil for
// none.
func (k *removedKeys) last(tombstone uint32) (*Record, error) {
	i, found := k.puts[tombstone]
	if !found {
		return nil, nil
	}
	rec := new(Record)
	return rec, k.at(i, rec)
}
