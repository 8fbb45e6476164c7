package snapshot

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/etcdshift/etcdshift/internal/publish"
	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
)

// Content is the input of Build.
type Content struct {
	// Records in ascending order of Revision, one a key, no deletions. It is ranged over twice and
	// must yield the same both times.
	Records iter.Seq2[*Record, error]
	Leases  []Lease
	// Revision is the current revision of the store, not below the revision of any record. The file
	// is compacted at it: a server answers for no revision before.
	Revision int64
	// Notes are kept by name in a bucket of their own, which etcd ignores; see [Snapshot.Note].
	Notes map[string][]byte
}

const (
	builtPageSize = 4096 // bytes

	noteBucket = "etcdshift"
	// Bounds in bytes: a note is read into memory, also from a hostile file.
	maxNoteName = 1 << 10
	maxNote     = 64 << 20
)

// Build makes a snapshot at path from records alone. After "etcdutl snapshot restore" a server
// serves them with all their numbers. It has pages of 4096 bytes, and the same content gives the
// same bytes. The file appears under its name when it was read back, compared and synced, and after
// check, which may be nil, returned no error; on any error nothing is left. path must not exist
// (fs.ErrExist).
//
// Call Build within the Guard of a Snapshot whose records it reads.
func Build(
	ctx context.Context, path string, c Content, check func(ctx context.Context, out *Snapshot) error,
) (WriteResult, error) {
	f, err := publish.Create(path)
	if err != nil {
		return WriteResult{}, err
	}
	return publishAs(f, func() (WriteResult, error) {
		o := output{f.File(), path, check}
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
	return o.approve(ctx, out, d, WriteResult{FileInfo: FileInfo{Revision: c.Revision, Keys: x.alive}, Appended: x.alive})
}

// sources are the buckets of the file.
func (c Content) sources(ctx context.Context) ([]bolt.Source, error) {
	grants, err := grantEntries(c.Leases)
	if err != nil {
		return nil, err
	}
	var notes []bolt.Element
	for _, name := range slices.Sorted(maps.Keys(c.Notes)) {
		el := bolt.Element{Key: []byte(name), Value: c.Notes[name]}
		switch {
		case len(name) == 0 || len(name) > maxNoteName:
			return nil, fmt.Errorf("note %q: a name has 1 to %d bytes", clip(el.Key), maxNoteName)
		case len(el.Value) > maxNote:
			return nil, fmt.Errorf("note %q: it has %d bytes, a note has at most %d", clip(el.Key), len(el.Value), maxNote)
		}
		notes = append(notes, el)
	}
	compacted := appendRevisionKey(nil, Revision{Main: c.Revision}, false)
	contents := map[string]entries{
		"key":       c.entries(ctx),
		leaseBucket: bolt.Seq(grants...),
		metaBucket: bolt.Seq(bolt.Element{Key: []byte(finishedCompact), Value: compacted},
			bolt.Element{Key: []byte(scheduledCompact), Value: compacted}),
	}
	names := etcdBuckets()
	if len(notes) > 0 {
		contents[noteBucket] = bolt.Seq(notes...)
		names = slices.Sorted(slices.Values(append(names, noteBucket)))
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

// entries yields the encoded records. A server could have stored their numbers.
func (c Content) entries(ctx context.Context) entries {
	return stream.Of(func(yield func(bolt.Element) error) error {
		if c.Records == nil {
			return nil
		}
		var enc encoder
		var last Revision
		return stream.Each(c.Records, func(rec *Record) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := c.accepts(rec, last); err != nil {
				return err
			}
			last = rec.Revision
			return yield(enc.element(rec))
		})
	})
}

// accepts says why rec cannot be the record behind one of revision last.
func (c Content) accepts(rec *Record, last Revision) error {
	err := rec.follows(nil)
	switch rev := rec.Revision; {
	case len(rec.Key) == 0:
		err = errors.New("it has no key")
	case rec.Tombstone:
		err = errors.New("it is a deletion")
	case rev.Compare(last) <= 0 || rev.Main < 1 || rev.Sub < 0:
		err = fmt.Errorf("it does not come after %s", last)
	case rev.Main > c.Revision:
		err = fmt.Errorf("the store is at %d", c.Revision)
	}
	if err != nil {
		return fmt.Errorf("record %s of key %q: %w", rec.Revision, clip(rec.Key), err)
	}
	return nil
}
