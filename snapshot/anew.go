package snapshot

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"iter"
	"maps"
	"os"
	"slices"

	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

// Content is the input of Build.
type Content struct {
	// Records yields records in ascending order of Revision, one for each key, without deletions.
	// Build ranges over Records twice; both passes must yield the same records.
	Records iter.Seq2[*Record, error]
	Leases  []Lease
	// Revision is the current revision of the store, at least the revision of every record. The
	// file is compacted at Revision: a server answers for no earlier revision.
	Revision int64
	// Hold ends the records at Revision, with a record without key and value, such as
	// --bump-revision leaves: a restore with --bump-revision counts from the last record.
	Hold bool
	// Buckets, if set, holds all entries of the file by bucket, as they are stored, in key order. A
	// bucket of etcd that is missing is empty. Records, Leases, Hold and Notes are not used then, a
	// key may have several records, and Revision may be 0 if it is unknown.
	Buckets map[string]iter.Seq2[Entry, error]
	// Compacted is the compact revision with Buckets; 0 for the one in Buckets.
	Compacted int64
	// Notes holds named notes for a separate bucket, which etcd ignores; see [Snapshot.Note].
	Notes map[string][]byte
}

// Entry is an entry of a bucket, as it is stored.
type Entry struct{ Key, Value []byte }

const (
	builtPageSize = 4096 // bytes

	noteBucket = "etcdshift"
	// Limits in bytes: a note is read into memory, even from a hostile file.
	maxNoteName = 1 << 10
	maxNote     = 64 << 20
)

// build writes the file of WriteConfig.Build.
func (d *Draft) build(ctx context.Context) (res WriteResult, err error) {
	c := d.cfg.Build
	if c.Buckets != nil {
		return buildBuckets(ctx, d)
	}
	if c.Revision < 1 || c.Revision > mvcc.MaxRevision {
		return res, fmt.Errorf("revision %d is none that a store can be at", c.Revision)
	}
	notes, err := noteEntries(c.Notes)
	if err != nil {
		return res, err
	}
	contents := emptyBuckets()
	contents["key"], contents[mvcc.LeaseBucket] = c.entries(ctx), bolt.Seq(d.grants...)
	contents[mvcc.MetaBucket] = bolt.Seq(compactEntries(c.Revision)...)
	if len(notes) > 0 {
		contents[noteBucket] = bolt.Seq(notes...)
	}
	x, err := createOf(ctx, d, contents)
	if err == nil && x.repeats {
		err = errors.New("there are two records of one key")
	}
	if err != nil {
		return res, err
	}
	return WriteResult{FileInfo: FileInfo{Revision: c.Revision, Keys: x.alive}, Appended: x.alive}, nil
}

func emptyBuckets() map[string]entries {
	contents := map[string]entries{}
	for _, name := range mvcc.Buckets() {
		contents[name] = bolt.Seq()
	}
	return contents
}

// buildBuckets writes the file of Content.Buckets.
func buildBuckets(ctx context.Context, d *Draft) (res WriteResult, err error) {
	c, contents := d.cfg.Build, emptyBuckets()
	for name, list := range c.Buckets {
		element := func(e Entry) bolt.Element { return bolt.Element{Key: e.Key, Value: e.Value} }
		contents[name] = stream.Map(list, element)
	}
	if c.Compacted > 0 {
		contents[mvcc.MetaBucket] = compactedAt(contents[mvcc.MetaBucket], c.Compacted)
	}
	x, err := createOf(ctx, d, contents)
	if err == nil && c.Revision != 0 && x.revision() != c.Revision {
		err = fmt.Errorf("%w: revision %d, want %d", ErrVerify, x.revision(), c.Revision)
	}
	if err != nil {
		return res, err
	}
	return WriteResult{FileInfo: FileInfo{Revision: x.revision(), Keys: x.alive}, Appended: x.total()}, nil
}

// createOf is create for the buckets of contents.
func createOf(ctx context.Context, d *Draft, contents map[string]entries) (*index, error) {
	var sources []bolt.Source
	for _, name := range slices.Sorted(maps.Keys(contents)) {
		sources = append(sources, bolt.Source{Name: name, Entries: contents[name], Paged: name == "key"})
	}
	return d.create(ctx, bolt.Meta{PageSize: builtPageSize, TxID: 1}, sources)
}

func noteEntries(notes map[string][]byte) (out []bolt.Element, err error) {
	for _, name := range slices.Sorted(maps.Keys(notes)) {
		el := bolt.Element{Key: []byte(name), Value: notes[name]}
		switch {
		case len(name) == 0 || len(name) > maxNoteName:
			return nil, fmt.Errorf("note %q: a name has 1 to %d bytes", mvcc.Clip(el.Key), maxNoteName)
		case len(el.Value) > maxNote:
			return nil, fmt.Errorf("note %q: it has %d bytes, a note has at most %d",
				mvcc.Clip(el.Key), len(el.Value), maxNote)
		}
		out = append(out, el)
	}
	return out, nil
}

// entries yields the encoded records, with numbers that a server could have stored.
func (c *Content) entries(ctx context.Context) entries {
	return stream.Of(func(yield func(bolt.Element) error) error {
		if c.Records == nil {
			return nil
		}
		var enc mvcc.Encoder
		var last Revision
		err := stream.Each(c.Records, func(rec *Record) error {
			if err := cmp.Or(ctx.Err(), c.checkNext(rec, last)); err != nil {
				return err
			}
			last = rec.Revision
			return yield(enc.Element(rec))
		})
		if err != nil || !c.Hold || last.Main == c.Revision {
			return err
		}
		return yield(bolt.Element{Key: mvcc.AppendRevisionKey(nil, Revision{Main: c.Revision}, false)})
	})
}

// checkNext checks the record after the record of revision last.
func (c *Content) checkNext(rec *Record, last Revision) error {
	err := mvcc.Follows(nil, rec)
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
		return fmt.Errorf("record %s of key %q: %w", rec.Revision, mvcc.Clip(rec.Key), err)
	}
	return nil
}

// rewrite writes src without scrubbed and compacted records, and appends the changes and grants.
func (d *Draft) rewrite(ctx context.Context) (res WriteResult, err error) {
	compact, err := d.newCompaction(ctx)
	if err != nil {
		return res, err
	}
	m := d.src.db.Meta
	m.TxID++
	sources := d.sources(ctx)
	if compact != nil {
		m.TxID = 1 // as after a defragmentation; the same content gives the same bytes
		compact.renew(sources)
	}
	var a *appender // the appender of the last pass
	key := slices.IndexFunc(sources, func(src bolt.Source) bool { return src.Name == "key" })
	sources[key].Entries = func(yield func(bolt.Element, error) bool) {
		a = newAppender(d.x, d.cfg.Scrub)
		a.compact = compact
		parts := []entries{a.keptEntries(ctx), a.records(ctx, d.changes)}
		if d.cfg.Scrub != nil {
			parts = append(parts, a.finalRecord())
		}
		concat(parts...)(yield)
	}
	x, err := d.create(ctx, m, sources)
	if err == nil && (x.alive != a.Keys || x.revision() != a.Revision || compact != nil && x.repeats) {
		err = fmt.Errorf("%w: %d keys at revision %d, want %d at %d",
			ErrVerify, x.alive, x.revision(), a.Keys, a.Revision)
	}
	if err != nil {
		return res, err
	}
	return a.WriteResult, nil
}

// create writes a file of new pages only: the buckets of sources, sorted by name, with page size,
// sequence and transaction of m. create reads the file back, compares it with sources while the
// digest is computed, and returns the index of the file.
func (d *Draft) create(ctx context.Context, m bolt.Meta, sources []bolt.Source) (*index, error) {
	d.Stop()
	err := d.file.Truncate(0)
	if err == nil {
		m, err = bolt.Create(eager{d.file}, m, sources)
	}
	if err != nil {
		return nil, err
	}
	nothing := newPass(func(context.Context) (hash.Hash, error) { return sha256.New(), nil })
	sum, err := beginDigest(d.file, nothing, 0, m.Bytes())
	if err != nil {
		return nil, err
	}
	if err := d.open(ctx, nil, sum); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrVerify, err)
	}
	if err := d.out.guard(func() error { return checkNew(ctx, d.out, sources) }); err != nil {
		return nil, err
	}
	return d.out.index(ctx)
}

// checkNew checks that s, a file of new pages only, is sound and consists of the entries of
// sources.
func checkNew(ctx context.Context, s *Snapshot, sources []bolt.Source) error {
	free := slices.ContainsFunc(sources, func(src bolt.Source) bool { return src.Free })
	sources = slices.DeleteFunc(slices.Clone(sources), func(src bolt.Source) bool { return src.Free })
	if len(s.db.Buckets) != len(sources) {
		return fmt.Errorf("%w: %d buckets, want %d", ErrVerify, len(s.db.Buckets), len(sources))
	}
	if s.db.Free != 0 && !free {
		return fmt.Errorf("%w: %d pages are not in use", ErrVerify, s.db.Free)
	}
	for i, src := range sources {
		if err := compareBucket(s.db, &s.db.Buckets[i], src); err != nil {
			return err
		}
	}
	err := s.db.CheckTight(ctx)
	if err == nil {
		err = s.Sound(ctx)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrVerify, err)
	}
	return nil
}

// compareBucket compares bucket b with src.
func compareBucket(db *bolt.DB, b *bolt.Bucket, src bolt.Source) error {
	if b.Name != src.Name || b.Sequence != src.Sequence {
		return fmt.Errorf("%w: bucket %q differs from the planned one", ErrVerify, src.Name)
	}
	return compareEntries(&bolt.Cursor{DB: db, Bucket: b}, src.Entries)
}

// compareEntries compares the next entries of c with want.
func compareEntries(c *bolt.Cursor, want entries) error {
	n, name := 0, c.Bucket.Name
	for want, err := range want {
		if err != nil {
			return err
		}
		got, err := c.Next()
		switch {
		case err != nil:
			return fmt.Errorf("%w: %w", ErrVerify, err)
		case got == nil:
			return fmt.Errorf("%w: bucket %q: only %d of the entries are there", ErrVerify, name, n)
		case got.Flags != want.Flags || !bytes.Equal(got.Key, want.Key) || !bytes.Equal(got.Value, want.Value):
			return fmt.Errorf("%w: bucket %q: entry %d differs from the planned one", ErrVerify, name, n)
		}
		n++
	}
	if got, err := c.Next(); err != nil || got != nil {
		return fmt.Errorf("%w: bucket %q: there are more than the %d entries that were to be written (%v)",
			ErrVerify, name, n, err)
	}
	return nil
}

// eager is a file that starts the writeback of pages at once.
type eager struct{ *os.File }

func (f eager) WriteAt(b []byte, at int64) (int, error) {
	n, err := f.File.WriteAt(b, at)
	startWriteback(f.File, at, int64(n))
	return n, err
}
