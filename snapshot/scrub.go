package snapshot

import (
	"context"
	"fmt"
	"iter"
	"math"
	"os"
)

// scrubTo writes s without any record of the keys that scrub names, with changes and leases on top, to f and reads that back.
func (s *Snapshot) scrubTo(ctx context.Context, f *os.File, path string, changes iter.Seq2[Change, error], grants []element, scrub func([]byte) bool) (WriteResult, error) {
	var last *appender
	gone := 0
	sources := make([]bucketSource, 0, len(s.buckets)+1)
	for _, b := range s.withLeaseBucket(grants) {
		src := bucketSource{name: b.name, sequence: b.sequence}
		switch {
		case b.name == "key":
			src.entries = func() iter.Seq2[element, error] {
				return func(yield func(element, error) bool) {
					a, err := newAppender(ctx, s)
					if err != nil {
						yield(element{}, err)
						return
					}
					a.scrub, last = scrub, a
					gone = s.scrubbed(ctx, a, changes, yield)
				}
			}
		case b.name == leaseBucket && len(grants) > 0:
			src = s.leaseSource(ctx, grants)
		default:
			src.entries = func() iter.Seq2[element, error] { return s.elements(ctx, &b) }
		}
		sources = append(sources, src)
	}
	m := s.meta
	m.txid++
	sum, err := writeNew(ctx, f, path, m, sources)
	if err != nil {
		return WriteResult{}, err
	}
	return WriteResult{Revision: last.rev, Keys: last.keys, SHA256: fmt.Sprintf("%x", sum), Appended: last.n, Scrubbed: gone}, nil
}

// scrubbed yields the entries of the key bucket of a scrubbed file and returns how many records it left out.
func (s *Snapshot) scrubbed(ctx context.Context, a *appender, changes iter.Seq2[Change, error], yield func(element, error) bool) (gone int) {
	x, err := s.index(ctx)
	if err != nil {
		yield(element{}, err)
		return gone
	}
	var rec Record
	ordinal := uint32(0)
	for el, err := range s.elements(ctx, s.bucket("key")) {
		if err == nil {
			err = parseRecord(el.key, el.value, &rec)
		}
		if err != nil {
			yield(element{}, err)
			return gone
		}
		live := x.isLive(ordinal)
		ordinal++
		if len(rec.Key) > 0 && a.scrub(rec.Key) {
			gone++
			if live {
				a.keys--
			}
			continue
		}
		if !yield(el, nil) {
			return gone
		}
	}
	for el, err := range a.records(ctx, changes) {
		if !yield(el, err) || err != nil {
			return gone
		}
	}
	if a.rev == math.MaxInt64 {
		yield(element{}, fmt.Errorf("no revision is left"))
		return gone
	}
	a.rev++
	yield(element{key: appendRevisionKey(nil, Revision{Main: a.rev}, false)}, nil)
	return gone
}
