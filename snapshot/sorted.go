package snapshot

import (
	"bytes"
	"context"
	"slices"
	"sort"
)

// Sorted is a list of live records in the order of their keys, in which a server answers. It keeps
// four bytes a record, and is safe for concurrent use.
type Sorted struct {
	index    *index
	ordinals []uint32
}

// Sorted lists the records of LiveAt by their keys. While it sorts, it takes 32 bytes a record.
func (s *Snapshot) Sorted(ctx context.Context, prefix []byte, rev int64) (*Sorted, error) {
	x, err := s.index(ctx)
	if err != nil {
		return nil, err
	}
	type item struct {
		key     []byte
		ordinal uint32
	}
	var items []item
	err = x.liveAt(ctx, prefix, rev, func(rec Scanned) error {
		items = append(items, item{rec.Key, rec.ordinal})
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := &Sorted{index: x, ordinals: make([]uint32, len(items))}
	return out, x.read(func() error {
		slices.SortFunc(items, func(a, b item) int { return bytes.Compare(a.key, b.key) })
		for i, one := range items {
			out.ordinals[i] = one.ordinal
		}
		return nil
	})
}

// Len is the number of records.
func (o *Sorted) Len() int { return len(o.ordinals) }

// At returns the record with the given number, from 0. Errors and validity are those of Live.
func (o *Sorted) At(i int) (*Record, error) {
	rec := new(Record)
	return rec, o.index.read(func() error { return o.index.at(o.ordinals[i], rec) })
}

// Search returns the number of the first record whose key is not before key.
func (o *Sorted) Search(key []byte) (number int, err error) {
	failed := o.index.read(func() error {
		var rec Record
		number = sort.Search(len(o.ordinals), func(i int) bool {
			if err == nil {
				err = o.index.at(o.ordinals[i], &rec)
			}
			return bytes.Compare(rec.Key, key) >= 0
		})
		return err
	})
	return number, failed
}
