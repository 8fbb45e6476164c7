package snapshot

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

// found is a record found in the bytes of a file, without the tree.
type found struct {
	main int64
	at   int64  // offset of the revision key
	size uint32 // of the revision key and the KeyValue

	copies uint32 // number of equal records
}

// carver finds records by their bytes: a revision key, followed by a KeyValue with the fields in
// etcd's order and the same revision. No page header is needed. A tombstone has no revision in its
// KeyValue, only a key.
//
// The bytes of a value have no checksum, but a page is written as a whole: a record is only partial
// if a later page begins within it, and such a page has a header with its own number.
type carver struct {
	data     []byte
	pageSize int64
	last     int64 // highest main revision
	// unnumbered also finds records without create revision and version, as save --wal-history
	// writes them if they are unknown.
	unnumbered bool
}

// findBytes is the number of bytes searched by one goroutine at a time.
const findBytes = 4 << 20

// Limits of a found record. A server accepts requests up to a few megabytes.
const (
	maxFoundSub  = 1 << 31
	maxFoundSize = 256 << 20 // bytes
)

// find appends the records that begin in a span and end before limit. The bytes of a record are
// not searched for other records.
func (c *carver) find(in bolt.Span, limit int64, out []found) []found {
	const sep = 8 // offset of the separator in a revision key
	var seen breaks
	for at := in.From + sep; ; at++ {
		end := min(in.To+sep, limit)
		if at >= end {
			return out
		}
		next := bytes.IndexByte(c.data[at:end], '_')
		if next < 0 {
			return out
		}
		at += int64(next)
		if f, ok := c.record(at-sep, limit, &seen); ok {
			out = append(out, f)
			at += int64(f.size) - sep - 1
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
func (c *carver) record(at, limit int64, seen *breaks) (f found, ok bool) {
	k := c.data[at:limit]
	if len(k) <= mvcc.RevisionKeySize || k[0]|k[1]|k[9]|k[10]|k[11]|k[12] != 0 {
		return f, false
	}
	k, v := mvcc.SplitEntry(k)
	v = v[:mvcc.KeyValueSize(v, len(k) > mvcc.RevisionKeySize, c.unnumbered)]
	var rec Record
	if len(v) == 0 || mvcc.ParseRecord(k, v, &rec) != nil || c.follows(rec) != nil {
		return f, false
	}
	if rec.Revision.Main < 1 || rec.Revision.Main > c.last || rec.Revision.Sub >= maxFoundSub ||
		rec.Version > rec.ModRevision-rec.CreateRevision+1 {
		return f, false
	}
	size := len(k) + len(v)
	if end := at + int64(size); size > maxFoundSize || c.isPartial(at, end, seen) || c.isZeroed(at, end, seen) {
		return f, false
	}
	return found{rec.Revision.Main, at, uint32(size), 1}, true
}

// follows is the function without a record before, also for a record without numbers.
func (c *carver) follows(rec Record) error {
	if c.unnumbered && !rec.Tombstone && rec.CreateRevision == 0 && rec.Version == 0 {
		rec.CreateRevision, rec.Version = rec.ModRevision, 1
	}
	return mvcc.Follows(nil, &rec)
}

// isPartial reports whether bytes between two offsets belong to different pages: a page begins
// between them and says so in its header, or the first page is not in its place.
func (c *carver) isPartial(from, to int64, seen *breaks) bool {
	first := from / c.pageSize
	if p := bolt.Page(c.data[first*c.pageSize:]); to > (first+1)*c.pageSize && p.HasKind() && p.ID() != uint64(first) &&
		p.ID() < uint64(int64(len(c.data))/c.pageSize) {
		return true
	}
	if from < seen.header && seen.header < to {
		return true
	}
	to = min(to, int64(len(c.data))-bolt.HeaderSize+1)
	for at := (first + 1) * c.pageSize; at < to; at += c.pageSize {
		if p := bolt.Page(c.data[at:]); p.ID() == uint64(at/c.pageSize) && p.HasKind() {
			seen.header = at
			return true
		}
	}
	return false
}

// isZeroed reports whether sectors of a disk are zero between two offsets: a run of zeros that
// begins at a sector and reaches the end, or a long run with an end at a sector. A value in
// protobuf ends with one zero; a value in JSON ends with "}" and a line break.
func (c *carver) isZeroed(from, to int64, seen *breaks) bool {
	const sector, long = 512, 128
	last := (to - 1) / sector * sector
	switch {
	case seen.high > 0 && from <= seen.low && seen.high <= to:
		return true
	case last > from && (to-last > 1 || c.data[last-1] == '}') && c.data[last-1] != 0 && isZero(c.data[last:to]):
		return true
	}
	for at := (from/sector + 1) * sector; at < to; at += sector {
		if c.data[at] != 0 && c.data[at-1] != 0 {
			continue
		}
		before, behind := at, at
		for before > from && c.data[before-1] == 0 {
			before--
		}
		for behind < to && c.data[behind] == 0 {
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

// id returns the revision key of a record, and one more byte for a Put.
func (c *carver) id(f found) []byte { return c.data[f.at : f.at+mvcc.RevisionKeySize+1] }

func (c *carver) bytesOf(f found) []byte { return c.data[f.at : f.at+int64(f.size)] }

// parse decodes a found record.
func (c *carver) parse(f found, rec *Record) error {
	k, v := mvcc.SplitEntry(c.bytesOf(f))
	return mvcc.ParseRecord(k, v, rec)
}

// sorted puts records in the order of the key bucket, each once. Records that differ in their bytes
// stay.
func (c *carver) sorted(all []found) []found {
	slices.SortFunc(all, func(a, b found) int {
		return cmp.Or(cmp.Compare(a.main, b.main), bytes.Compare(c.id(a), c.id(b)), cmp.Compare(a.size, b.size),
			bytes.Compare(c.bytesOf(a), c.bytesOf(b)), cmp.Compare(a.at, b.at))
	})
	once := all[:0]
	for _, f := range all {
		if n := len(once); n > 0 && once[n-1].main == f.main && bytes.Equal(c.bytesOf(once[n-1]), c.bytesOf(f)) {
			once[n-1].copies += f.copies
		} else {
			once = append(once, f)
		}
	}
	return once
}

// findAll returns the records in some spans, sorted. The memory for equal records, of which there
// are many, is reused.
func (c *carver) findAll(ctx context.Context, in *input, spans []bolt.Span) ([]found, error) {
	var parts, limits []bolt.Span
	for _, s := range spans {
		for from := s.From; from < s.To; from += findBytes {
			parts = append(parts, bolt.Span{From: from, To: min(from+findBytes, s.To)})
			limits = append(limits, s)
		}
	}
	const leastSorted, together = 1 << 20, 64
	var all []found
	end := int64(0) // of the last record
	for most := leastSorted; len(parts) > 0; {
		n := min(together, len(parts))
		made := make([][]found, n)
		err := in.Parallel(ctx, n, func(i int) error {
			made[i] = c.find(parts[i], limits[i].To, nil)
			return nil
		})
		if err != nil {
			return nil, err
		}
		for _, f := range slices.Concat(made...) {
			if f.at >= end {
				all, end = append(all, f), f.at+int64(f.size)
			}
		}
		if len(all) > most {
			all = c.sorted(all)
			most = max(leastSorted, 2*len(all))
		}
		parts, limits = parts[n:], limits[n:]
	}
	return c.sorted(all), nil
}
