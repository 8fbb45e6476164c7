package snapshot

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"

	"github.com/etcdshift/etcdshift/internal/publish"
	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
)

// WriteConfig adds to the changes of Write. Its zero value adds nothing.
type WriteConfig struct {
	// Leases are granted beside the leases of the file, as a server stores them. An ID that is not
	// positive, exists already or is granted twice is an error.
	Leases []Lease
	// Scrub, if it is set, makes the output a file of new pages alone, without any record, live,
	// superseded or deleted, of a key for which it returns true. All other records and buckets
	// stay, and changes are appended; a scrubbed key can only be deleted, which leaves no record.
	// So that the revision never goes back, the file ends with a record without key and value, like
	// a restore with --bump-revision. Scrub must answer the same each time.
	Scrub func(key []byte) bool
	// Compact, if it is set, makes the output a file of new pages alone, without the history that
	// it names, that of the changes included. The same content gives the same bytes.
	Compact *Compaction
	// Build, if it is set, makes the output a file of this content, as the function Build does, and
	// not of the snapshot and changes. The content may be that of the snapshot.
	Build *Content
	// Check, if it is set, is called with the output, read back and compared, before it gets its
	// name. If it returns an error nothing is left.
	Check func(ctx context.Context, out *Snapshot) error
}

// Write makes a new snapshot at path: the records of src with changes on top, each at a revision of
// its own, as a server stores them one after the other. Old pages are copied byte for byte; new
// leaves and a new right edge of the tree follow. The file appears under its name when it was read
// back, compared and synced, and the digest of src is right; on any error nothing is left. path
// must not exist (fs.ErrExist). An src with an error of [Verify] is refused ([ErrDamaged]).
//
// changes is ranged over twice, for a compaction three times, and must yield the same each time.
// Without changes, leases, scrubbing and compaction the output is src byte for byte, or, for a raw
// database file, its image with both metas of the newest transaction, and a digest. A wrong free
// list is accepted, none is stored. Memory is a few bytes a change.
func Write(
	ctx context.Context, path string, src *Snapshot, changes iter.Seq2[Change, error], cfg WriteConfig,
) (WriteResult, error) {
	out, err := publish.Create(path)
	if err != nil {
		return WriteResult{}, err
	}
	return Begin(path, out, src).Write(ctx, changes, cfg)
}

// publishAs gives the file that write completes its name.
func publishAs(f Output, write func() (WriteResult, error)) (WriteResult, error) {
	defer func() { _ = f.Discard() }()
	res, err := write()
	if err == nil {
		err = f.Publish()
	}
	if err != nil {
		return WriteResult{}, err
	}
	return res, nil
}

func (d *Draft) writeTo(ctx context.Context, changes iter.Seq2[Change, error], cfg WriteConfig) (WriteResult, error) {
	if cfg.Build != nil {
		if err := d.empty(); err != nil {
			return WriteResult{}, d.wrap(err)
		}
		res, err := cfg.Build.writeTo(ctx, d.output)
		return res, d.wrap(err)
	}
	anew := cfg.Scrub != nil || cfg.Compact != nil
	if !anew {
		d.Copy()
	}
	if err := d.src.Sound(ctx); err != nil {
		return WriteResult{}, err
	}
	x, err := d.src.index(ctx)
	if err != nil {
		return WriteResult{}, err
	}
	grants, err := grantEntries(cfg.Leases)
	if err != nil {
		return WriteResult{}, d.wrap(err)
	}
	e := &edit{d, cfg, x, changes, grants}
	write := e.append
	if anew {
		write = e.rewrite
	}
	res, err := write(ctx)
	return res, d.wrap(err)
}

// edit is an output that is src with changes.
type edit struct {
	*Draft
	WriteConfig
	x       *index // of src
	changes iter.Seq2[Change, error]
	grants  []bolt.Element // entries of the lease bucket, sorted
}

// output is a file under construction, which may have another name than path, or none.
type output struct {
	file  *os.File
	path  string                                         // the name that it will have
	check func(ctx context.Context, out *Snapshot) error // WriteConfig.Check
}

// wrap names the output once.
func (o output) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("write %s: %w", o.path, reason(err))
}

// open opens the written file as any other.
func (o output) open(ctx context.Context) (*Snapshot, error) {
	out, err := openFile(ctx, input{path: o.path, given: o.file}, Config{SkipDigest: true})
	if err == nil && out.raw {
		err = errors.Join(errors.New("its size is not that of a snapshot"), out.Close())
	}
	return out, err
}

// approve calls the caller's check with the written file, which has the digest d, and completes
// res.
func (o output) approve(ctx context.Context, out *Snapshot, d Digest, res WriteResult) (WriteResult, error) {
	info, err := o.file.Stat()
	if err != nil {
		return res, err
	}
	out.info, out.digest = info, knownDigest(d)
	if o.check != nil {
		err = out.guard(func() error { return o.check(ctx, out) })
	}
	res.Path, res.Bytes, res.SHA256 = o.path, info.Size(), fmt.Sprintf("%x", d.File)
	return res, err
}
