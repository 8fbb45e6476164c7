package carve

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

// Found is a record found in the bytes of a file, without the tree.
type Found struct {
	Main int64
	At   int64  // offset of the revision key
	Size uint32 // of the revision key and the KeyValue

	Copies uint32 // number of equal records
}

// Carver finds records by their bytes: a revision key, followed by a KeyValue with the fields in
// etcd's order and the same revision. No page header is needed. A tombstone has no revision in its
// KeyValue, only a key.
//
// The bytes of a value have no checksum, but a page is written as a whole: a record is only partial
// if a later page begins within it, and such a page has a header with its own number.
type Carver struct {
	Data     []byte
	PageSize int64
	Last     int64 // highest main revision
	// Unnumbered also finds records without create revision and version, as save --wal-history
	// writes them if they are unknown.
	Unnumbered bool
}

// findBytes is the number of bytes searched by one goroutine at a time.
const findBytes = 4 << 20

// Limits of a found record. A server accepts requests up to a few megabytes.
const (
	maxFoundSub = 1 << 31
	MaxSize     = 256 << 20 // bytes
)

// find appends the records that begin in a span and end before limit. The bytes of a record are
// not searched for other records.
func (c *Carver) find(in bolt.Span, limit int64, out []Found) []Found {
	const sep = 8 // offset of the separator in a revision key
	var seen breaks
	for at := in.From + sep; ; at++ {
		end := min(in.To+sep, limit)
		if at >= end {
			return out
		}
		next := bytes.IndexByte(c.Data[at:end], '_')
		if next < 0 {
			return out
		}
		at += int64(next)
		if f, ok := c.record(at-sep, limit, &seen); ok {
			out = append(out, f)
			at += int64(f.Size) - sep - 1
		}
	}
}

// breaks are the last places that no record spans, in a search from low to high offsets. Without
// them, many long candidates that end behind one such place would take quadratic time.
type breaks struct {
	header    int64 // a page begins there and says so; 0 for none
	low, high int64 // zeros of a disk, in spans that begin at most at low and end at least at high
}

// record returns the record at an offset, if it ends before limit.
func (c *Carver) record(at, limit int64, seen *breaks) (f Found, ok bool) {
	k := c.Data[at:limit]
	if len(k) <= mvcc.RevisionKeySize || k[0]|k[1]|k[9]|k[10]|k[11]|k[12] != 0 {
		return f, false
	}
	k, v := mvcc.SplitEntry(k)
	v = v[:mvcc.KeyValueSize(v, len(k) > mvcc.RevisionKeySize, c.Unnumbered)]
	var rec mvcc.Record
	if len(v) == 0 || mvcc.ParseRecord(k, v, &rec) != nil || c.follows(rec) != nil {
		return f, false
	}
	if rec.Revision.Main < 1 || rec.Revision.Main > c.Last || rec.Revision.Sub >= maxFoundSub ||
		rec.Version > rec.ModRevision-rec.CreateRevision+1 {
		return f, false
	}
	size := len(k) + len(v)
	if end := at + int64(size); size > MaxSize || c.isPartial(at, end, seen) || c.isZeroedAfter(at, end, seen) {
		return f, false
	}
	return Found{rec.Revision.Main, at, uint32(size), 1}, true
}

// follows is mvcc.Follows without a record before, also for a record without numbers.
func (c *Carver) follows(rec mvcc.Record) error {
	if c.Unnumbered && !rec.Tombstone && rec.CreateRevision == 0 && rec.Version == 0 {
		rec.CreateRevision, rec.Version = rec.ModRevision, 1
	}
	return mvcc.Follows(nil, &rec)
}

// isPartial reports whether bytes between two offsets belong to different pages: a page begins
// between them and says so in its header, or the first page is not in its place.
func (c *Carver) isPartial(from, to int64, seen *breaks) bool {
	first := from / c.PageSize
	if p := bolt.Page(c.Data[first*c.PageSize:]); to > (first+1)*c.PageSize && p.HasKind() && p.ID() != uint64(first) &&
		p.ID() < uint64(int64(len(c.Data))/c.PageSize) {
		return true
	}
	if from < seen.header && seen.header < to {
		return true
	}
	to = min(to, int64(len(c.Data))-bolt.HeaderSize+1)
	for at := (first + 1) * c.PageSize; at < to; at += c.PageSize {
		if p := bolt.Page(c.Data[at:]); p.ID() == uint64(at/c.PageSize) && p.HasKind() {
			seen.header = at
			return true
		}
	}
	return false
}

// IsZeroed reports whether sectors of a disk are zero between two offsets: a run of zeros that
// begins at a sector and reaches the end, or a long run with an end at a sector. A value in
// protobuf ends with one zero; a value in JSON ends with "}" and a line break.
func (c *Carver) IsZeroed(from, to int64) bool { return c.isZeroedAfter(from, to, new(breaks)) }

// isZeroedAfter is IsZeroed in a search from low to high offsets.
func (c *Carver) isZeroedAfter(from, to int64, seen *breaks) bool {
	const sector, long = 512, 128
	last := (to - 1) / sector * sector
	switch {
	case seen.high > 0 && from <= seen.low && seen.high <= to:
		return true
	case last > from && (to-last > 1 || c.Data[last-1] == '}') && c.Data[last-1] != 0 && isZero(c.Data[last:to]):
		return true
	}
	for at := (from/sector + 1) * sector; at < to; at += sector {
		if c.Data[at] != 0 && c.Data[at-1] != 0 {
			continue
		}
		before, behind := at, at
		for before > from && c.Data[before-1] == 0 {
			before--
		}
		for behind < to && c.Data[behind] == 0 {
			behind++
		}
		switch {
		case behind-at >= long && before == at:
			seen.low, seen.high = at-1, at+long
			return true
		case at-before >= long && behind == at:
			seen.low, seen.high = at-long, at+1
			return true
		}
		at = max(at, behind/sector*sector)
	}
	return false
}

func isZero(b []byte) bool {
	return !slices.ContainsFunc(b, func(c byte) bool { return c != 0 })
}

// ID returns the revision key of a record, and one more byte for a Put.
func (c *Carver) ID(f Found) []byte { return c.Data[f.At : f.At+mvcc.RevisionKeySize+1] }

// BytesOf returns the revision key and the KeyValue of a record.
func (c *Carver) BytesOf(f Found) []byte { return c.Data[f.At : f.At+int64(f.Size)] }

// Parse decodes a found record.
func (c *Carver) Parse(f Found, rec *mvcc.Record) error {
	k, v := mvcc.SplitEntry(c.BytesOf(f))
	return mvcc.ParseRecord(k, v, rec)
}

// Sorted puts records in the order of the key bucket, each once. Records that differ in their bytes
// stay.
func (c *Carver) Sorted(all []Found) []Found {
	slices.SortFunc(all, func(a, b Found) int {
		return cmp.Or(cmp.Compare(a.Main, b.Main), bytes.Compare(c.ID(a), c.ID(b)), cmp.Compare(a.Size, b.Size),
			bytes.Compare(c.BytesOf(a), c.BytesOf(b)), cmp.Compare(a.At, b.At))
	})
	once := all[:0]
	for _, f := range all {
		if n := len(once); n > 0 && once[n-1].Main == f.Main && bytes.Equal(c.BytesOf(once[n-1]), c.BytesOf(f)) {
			once[n-1].Copies += f.Copies
		} else {
			once = append(once, f)
		}
	}
	return once
}

// FindAll returns the records in some spans, sorted; parallel calls work for 0 to n-1, on several
// goroutines. Many records are equal: their memory is reused.
func (c *Carver) FindAll(
	ctx context.Context, parallel func(ctx context.Context, n int, work func(i int) error) error, spans []bolt.Span,
) ([]Found, error) {
	var parts, limits []bolt.Span
	for _, s := range spans {
		for from := s.From; from < s.To; from += findBytes {
			parts = append(parts, bolt.Span{From: from, To: min(from+findBytes, s.To)})
			limits = append(limits, s)
		}
	}
	const leastSorted, together = 1 << 20, 64
	var all []Found
	end := int64(0) // of the last record
	for most := leastSorted; len(parts) > 0; {
		n := min(together, len(parts))
		made := make([][]Found, n)
		err := parallel(ctx, n, func(i int) error {
			made[i] = c.find(parts[i], limits[i].To, nil)
			return nil
		})
		if err != nil {
			return nil, err
		}
		for _, f := range slices.Concat(made...) {
			if f.At >= end {
				all, end = append(all, f), f.At+int64(f.Size)
			}
		}
		if len(all) > most {
			all = c.Sorted(all)
			most = max(leastSorted, 2*len(all))
		}
		parts, limits = parts[n:], limits[n:]
	}
	return c.Sorted(all), nil
}
