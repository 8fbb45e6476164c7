package compare

import (
	"bytes"
	"context"
	"iter"
	"slices"

	"github.com/etcdshift/etcdshift/snapshot"
)

// Parting says where the histories of two snapshots part. Members of one cluster have the same
// record at each revision.
type Parting struct {
	// From and To are the first and the last revision whose state both have. To is below From if
	// there is none.
	From int64 `json:"from"`
	To   int64 `json:"to"`
	// At is the first revision with different records, 0 if all are equal. With At equal to From,
	// the histories may have parted earlier.
	At int64 `json:"at"`
	// Keys are the keys of the first different record, two if each snapshot has another.
	Keys []string `json:"keys,omitempty"`
}

// Comparable reports whether the snapshots have a revision in common.
func (p *Parting) Comparable() bool { return p.From <= p.To }

// Part compares the states of two snapshots at the first revision that both have, and all records
// after it.
func Part(ctx context.Context, a, b *snapshot.Snapshot) (p Parting, err error) {
	for i, s := range []*snapshot.Snapshot{a, b} {
		oldest, newest, err := s.Kept(ctx)
		if err != nil {
			return p, err
		}
		if p.From = max(p.From, oldest); i == 0 {
			p.To = newest
		}
		p.To = min(p.To, newest)
	}
	if !p.Comparable() {
		return p, nil
	}
	if p.Keys, err = differAt(ctx, a, b, p.From); err != nil {
		return p, err
	}
	if len(p.Keys) > 0 {
		p.At = p.From
		return p, nil
	}
	p.At, p.Keys, err = firstDifference(ctx, a, b, p.From, p.To)
	return p, err
}

// differAt compares the live records of two snapshots at a revision, and returns the first
// different keys.
func differAt(ctx context.Context, a, b *snapshot.Snapshot, revision int64) (keys []string, err error) {
	var sides [2]*snapshot.Sorted
	for i, s := range []*snapshot.Snapshot{a, b} {
		if sides[i], err = s.Sorted(ctx, nil, revision); err != nil {
			return nil, err
		}
	}
	for i := range max(sides[0].Len(), sides[1].Len()) {
		var records [2]*snapshot.Record
		for n, side := range sides {
			if i < side.Len() {
				if records[n], err = side.At(i); err != nil {
					return nil, err
				}
				records[n].Revision = snapshot.Revision{Main: revision} // the order is that of keys here
			}
		}
		if keys = different(records[0], records[1]); len(keys) > 0 {
			return keys[:1], nil
		}
	}
	return nil, ctx.Err()
}

// firstDifference compares the records between two revisions. It returns 0 if all are equal.
func firstDifference(
	ctx context.Context, a, b *snapshot.Snapshot, after, last int64,
) (at int64, keys []string, err error) {
	nextA, stopA := iter.Pull2(a.Records(ctx))
	defer stopA()
	nextB, stopB := iter.Pull2(b.Records(ctx))
	defer stopB()
	for {
		one, err := nextBetween(nextA, after, last)
		if err != nil {
			return 0, nil, err
		}
		other, err := nextBetween(nextB, after, last)
		if err != nil || one == nil && other == nil {
			return 0, nil, err
		}
		if keys := different(one, other); len(keys) > 0 {
			at = last
			for _, rec := range []*snapshot.Record{one, other} {
				if rec != nil {
					at = min(at, rec.Revision.Main)
				}
			}
			return at, keys, nil
		}
	}
}

// nextBetween returns the next record after one revision and up to another, nil at the end.
func nextBetween(
	next func() (*snapshot.Record, error, bool), after, last int64,
) (rec *snapshot.Record, err error) {
	for {
		rec, err, more := next()
		switch {
		case err != nil || !more || rec.Revision.Main > last:
			return nil, err
		case rec.Revision.Main > after && len(rec.Key) > 0: // --bump-revision writes one without a key
			return rec, nil
		}
	}
}

// different returns the keys of two records, nil for equal ones. A nil record stands for none; of
// records at different revisions only the key of the first counts.
func different(a, b *snapshot.Record) (keys []string) {
	switch {
	case a == nil && b == nil:
		return nil
	case b == nil, a != nil && a.Revision.Compare(b.Revision) < 0:
		return []string{string(a.Key)}
	case a == nil, b.Revision.Compare(a.Revision) < 0:
		return []string{string(b.Key)}
	case !bytes.Equal(a.Key, b.Key):
		keys = []string{string(a.Key), string(b.Key)}
		slices.Sort(keys)
		return keys
	case a.Tombstone == b.Tombstone && bytes.Equal(a.Value, b.Value) && a.CreateRevision == b.CreateRevision &&
		a.ModRevision == b.ModRevision && a.Version == b.Version && a.Lease == b.Lease:
		return nil
	}
	return []string{string(a.Key)}
}
