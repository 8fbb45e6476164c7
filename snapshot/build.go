package snapshot

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/etcdshift/etcdshift/publish"
)

// Content is what Build writes.
type Content struct {
	// Records in ascending order of Revision, one a key, none of them a deletion. It is ranged over twice and must yield the same
	// both times.
	Records iter.Seq2[*Record, error]
	Leases  []Lease
	// Revision is the current revision of the store, not below that of any record. The file is compacted at it: what it
	// holds is all there is to know, and a server answers for no revision before.
	Revision int64
	// Notes are what the file says of itself, by name. They lie in a bucket of their own, which etcd ignores; see Snapshot.Note.
	Notes map[string][]byte
}

const (
	builtPageSize = 4096 // bytes

	metaBucket = "meta"
)

// etcdBuckets returns those that a server has (etcd server/storage/schema/bucket.go), in order.
func etcdBuckets() []string {
	return []string{"alarm", "auth", "authRoles", "authUsers", "cluster", "key", leaseBucket, "members", "members_removed", metaBucket}
}

// Build makes a snapshot at path that never was a server's: "etcdutl snapshot restore" takes it, and a server started on that serves
// the records with all their numbers. It has pages of 4096 bytes, and the same content gives the same bytes. The file appears under
// its name when it was read back, found right and synced, and when check, which may be nil, has seen it and found nothing; on any
// error nothing is left. path must not exist (fs.ErrExist).
//
// Build reads the bytes of records: where they are those of another Snapshot, call it within that one's Guard.
func Build(ctx context.Context, path string, c Content, check func(ctx context.Context, out *Snapshot) error) (WriteResult, error) {
	f, err := publish.Create(path)
	if err != nil {
		return WriteResult{}, err
	}
	defer func() { _ = f.Discard() }()
	o := output{f.File(), path, check}
	res, err := c.writeTo(ctx, o)
	if err != nil {
		return WriteResult{}, o.wrap(err)
	}
	if err := f.Publish(); err != nil {
		return WriteResult{}, err
	}
	return res, nil
}

func (c Content) writeTo(ctx context.Context, o output) (WriteResult, error) {
	if c.Revision < 1 || c.Revision > maxRevision {
		return WriteResult{}, fmt.Errorf("revision %d is none that a store can be at", c.Revision)
	}
	n := 0
	sources, err := c.sources(ctx, &n)
	if err != nil {
		return WriteResult{}, err
	}
	out, d, err := writeNew(ctx, o, meta{pageSize: builtPageSize, txid: 1}, sources)
	if err != nil {
		return WriteResult{}, err
	}
	defer func() { _ = out.Close() }()
	x, err := out.index(ctx)
	if err != nil {
		return WriteResult{}, err
	}
	if x.repeats {
		return WriteResult{}, errors.New("there are two records of one key")
	}
	return o.approve(ctx, out, d, WriteResult{Revision: c.Revision, Keys: n, Appended: n})
}

// sources are the buckets of the file; n is how many records there are once they have been yielded.
func (c Content) sources(ctx context.Context, n *int) ([]bucketSource, error) {
	grants, err := grantEntries(c.Leases)
	if err != nil {
		return nil, err
	}
	notes, err := c.notes()
	if err != nil {
		return nil, err
	}
	compacted := appendRevisionKey(nil, Revision{Main: c.Revision}, false)
	entries := map[string]iter.Seq2[element, error]{
		"key":       c.entries(ctx, n),
		leaseBucket: those(grants...),
		metaBucket: those(element{key: []byte("finishedCompactRev"), value: compacted},
			element{key: []byte("scheduledCompactRev"), value: compacted}),
		noteBucket: those(notes...),
	}
	names := etcdBuckets()
	if len(notes) > 0 {
		names = append(names, noteBucket)
		slices.Sort(names)
	}
	sources := make([]bucketSource, len(names))
	for i, name := range names {
		seq := entries[name]
		if seq == nil {
			seq = those()
		}
		sources[i] = bucketSource{name: name, entries: func() iter.Seq2[element, error] { return seq }}
	}
	return sources, nil
}

func those(elems ...element) iter.Seq2[element, error] {
	return func(yield func(element, error) bool) {
		for _, el := range elems {
			if !yield(el, nil) {
				return
			}
		}
	}
}

// entries yields the encoded records, whose numbers must be those that a server could have stored, and counts them.
func (c Content) entries(ctx context.Context, n *int) iter.Seq2[element, error] {
	return func(yield func(element, error) bool) {
		*n = 0
		if c.Records == nil {
			return
		}
		var key, value []byte
		var last Revision
		for rec, err := range c.Records {
			if err == nil {
				err = ctx.Err()
			}
			if err == nil {
				err = c.accepts(rec, last)
			}
			if err != nil {
				yield(element{}, err)
				return
			}
			*n++
			last = rec.Revision
			key = appendRevisionKey(key[:0], rec.Revision, false)
			value = rec.appendKeyValue(value[:0])
			if !yield(element{key: key, value: value}, nil) {
				return
			}
		}
	}
}

// accepts says why rec cannot be the record behind one of revision last.
func (c Content) accepts(rec *Record, last Revision) error {
	var err error
	switch {
	case len(rec.Key) == 0:
		err = errors.New("it has no key")
	case rec.Tombstone:
		err = errors.New("it is a deletion")
	case rec.Revision.Compare(last) <= 0 || rec.Revision.Main < 1 || rec.Revision.Sub < 0:
		err = fmt.Errorf("it does not come after %s", last)
	case rec.Revision.Main > c.Revision:
		err = fmt.Errorf("the store is at %d", c.Revision)
	default:
		err = soundAfter(nil, rec)
	}
	if err != nil {
		return fmt.Errorf("record %s of key %q: %w", rec.Revision, clip(rec.Key), err)
	}
	return nil
}
