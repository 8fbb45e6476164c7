package snapshot

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
)

// Content is what Build writes.
type Content struct {
	// Records in ascending order of Revision, one a key, none of them a deletion. It is ranged over
	// twice and must yield the same both times.
	Records iter.Seq2[*Record, error]
	Leases  []Lease
	// Revision is the current revision of the store, not below that of any record. The file is
	// compacted at it: what it holds is all there is to know, and a server answers for no revision
	// before.
	Revision int64
	// Notes are kept by name in a bucket of their own, which etcd ignores; see [Snapshot.Note].
	Notes map[string][]byte
}

const (
	builtPageSize = 4096 // bytes

	noteBucket = "etcdshift"
	// A note is read into memory as a whole, so that a hostile file must not have a longer one. In
	// bytes.
	maxNoteName = 1 << 10
	maxNote     = 64 << 20
)

// Build makes a snapshot at path that never was a server's: "etcdutl snapshot restore" takes it,
// and a server started on that serves the records with all their numbers. It has pages of 4096
// bytes, and the same content gives the same bytes. The file appears under its name after it was
// read back, found right and synced, and after check, which may be nil, has found nothing; on any
// error nothing is left. path must not exist (fs.ErrExist).
//
// Build reads the bytes of records: if they are those of another Snapshot, call it within its
// Guard.
func Build(
	ctx context.Context, path string, c Content, check func(ctx context.Context, out *Snapshot) error,
) (WriteResult, error) {
	return publishAt(path, check, func(o output) (WriteResult, error) {
		res, err := c.writeTo(ctx, o)
		return res, o.wrap(err)
	})
}

func (c Content) writeTo(ctx context.Context, o output) (res WriteResult, err error) {
	if c.Revision < 1 || c.Revision > maxRevision {
		return res, fmt.Errorf("revision %d is none that a store can be at", c.Revision)
	}
	sources, err := c.sources(ctx)
	if err != nil {
		return res, err
	}
	out, d, err := o.create(ctx, bolt.Meta{PageSize: builtPageSize, TxID: 1}, sources)
	if err != nil {
		return res, err
	}
	defer func() { _ = out.Close() }()
	x, err := out.index(ctx)
	if err != nil {
		return res, err
	}
	if x.repeats {
		return res, errors.New("there are two records of one key")
	}
	return o.approve(ctx, out, d, WriteResult{Revision: c.Revision, Keys: x.alive, Appended: x.alive})
}

// sources are the buckets of the file.
func (c Content) sources(ctx context.Context) ([]bolt.Source, error) {
	grants, err := grantEntries(c.Leases)
	if err != nil {
		return nil, err
	}
	notes, err := c.notes()
	if err != nil {
		return nil, err
	}
	compacted := appendRevisionKey(nil, Revision{Main: c.Revision}, false)
	contents := map[string]entries{
		"key":       c.entries(ctx),
		leaseBucket: bolt.Seq(grants...),
		metaBucket: bolt.Seq(bolt.Element{Key: []byte(finishedCompact), Value: compacted},
			bolt.Element{Key: []byte(scheduledCompact), Value: compacted}),
		noteBucket: bolt.Seq(notes...),
	}
	names := etcdBuckets()
	if len(notes) > 0 {
		names = append(names, noteBucket)
		slices.Sort(names)
	}
	sources := make([]bolt.Source, len(names))
	for i, name := range names {
		sources[i] = bolt.Source{Name: name, Entries: contents[name], Paged: name == "key"}
		if sources[i].Entries == nil {
			sources[i].Entries = bolt.Seq()
		}
	}
	return sources, nil
}

// entries yields the encoded records, whose numbers must be those that a server could have stored.
func (c Content) entries(ctx context.Context) entries {
	return func(yield func(bolt.Element, error) bool) {
		if c.Records == nil {
			return
		}
		var enc encoder
		var last Revision
		for rec, err := range c.Records {
			if err == nil {
				err = ctx.Err()
			}
			if err == nil {
				err = c.accepts(rec, last)
			}
			if err != nil {
				yield(bolt.Element{}, err)
				return
			}
			last = rec.Revision
			if !yield(enc.element(rec), nil) {
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
		err = rec.follows(nil)
	}
	if err != nil {
		return fmt.Errorf("record %s of key %q: %w", rec.Revision, clip(rec.Key), err)
	}
	return nil
}

// notes returns the entries of the notes' bucket.
func (c Content) notes() (notes []bolt.Element, err error) {
	for _, name := range slices.Sorted(maps.Keys(c.Notes)) {
		note := c.Notes[name]
		switch {
		case len(name) == 0 || len(name) > maxNoteName:
			err = fmt.Errorf("note %q: a name has 1 to %d bytes", clip([]byte(name)), maxNoteName)
		case len(note) > maxNote:
			err = fmt.Errorf("note %q: it has %d bytes, a note has at most %d",
				clip([]byte(name)), len(note), maxNote)
		}
		if err != nil {
			return nil, err
		}
		notes = append(notes, bolt.Element{Key: []byte(name), Value: note})
	}
	return notes, nil
}
