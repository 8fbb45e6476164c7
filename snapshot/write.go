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

// WriteResult describes an output of Write or Build.
type WriteResult struct {
	FileInfo     // its revision is that of the input where nothing changed
	Appended int // records written on top, compacted ones too, but not the last one of a scrubbed file
	Scrubbed int // records of the input that were left out
	// Compacted is how many other records, of the input and of the changes, a compaction left out.
	Compacted int
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

// Build makes a snapshot at path from records alone. After "etcdutl snapshot restore" a server
// serves them with all their numbers. It has pages of 4096 bytes, and the same content gives the
// same bytes. Path, check, which may be nil, and errors are those of Write.
//
// Call Build within the Guard of a Snapshot whose records it reads.
func Build(
	ctx context.Context, path string, c Content, check func(ctx context.Context, out *Snapshot) error,
) (WriteResult, error) {
	return Write(ctx, path, nil, nil, WriteConfig{Build: &c, Check: check})
}

// Output is a file under construction. Publish gives it its name, in a folder or another place,
// once it is complete, and never takes the name of something else (fs.ErrExist). After an error of
// Publish, and after Discard, nothing is left. Discard after Publish does nothing.
type Output interface {
	File() *os.File
	Publish() error
	Discard() error
}

// Draft is an output that has no name yet.
type Draft struct {
	target Output
	file   *os.File // of target
	path   string   // the name that the output will have
	src    *Snapshot
	copied *pass[struct{}] // of the pages of src

	cfg     WriteConfig
	changes iter.Seq2[Change, error]
	x       *index         // of src
	grants  []bolt.Element // entries of the lease bucket, sorted
	out     *Snapshot      // the written file; nil until it is read back
}

// Begin begins a changed copy of src in out, whose name will be path. src may be nil for an output
// of [WriteConfig.Build]. The caller ends with Write or Discard.
func Begin(path string, out Output, src *Snapshot) *Draft {
	d := &Draft{target: out, file: out.File(), path: path, src: src}
	d.copied = newPass(func(ctx context.Context) (none struct{}, err error) {
		if src != nil {
			err = copyPages(ctx, d.file, src.file, src.db.Bytes())
		}
		return none, err
	})
	return d
}

// Copy begins to copy the old pages in the background, while changes are planned. It is of no use
// for an output of new pages alone, for which Stop ends it.
func (d *Draft) Copy() { d.copied.start() }

// Stop ends Copy. Write copies the pages where it needs them.
func (d *Draft) Stop() { d.copied.stop() }

// Progress tells how much of the copy of the old pages is proven, from 0 to 1: most of the work of
// Write, unless it makes all pages anew. It may be called at any time.
func (d *Draft) Progress() float64 {
	return min(1, float64(d.src.copied.Load())/float64(d.src.db.Bytes()))
}

// Discard removes what was written. After Write it does nothing.
func (d *Draft) Discard() error {
	d.Stop()
	return d.target.Discard()
}

// Write completes the output and gives it its name, as [Write] says. On any error nothing is left.
func (d *Draft) Write(ctx context.Context, changes iter.Seq2[Change, error], cfg WriteConfig) (WriteResult, error) {
	defer func() { _ = d.Discard() }()
	d.changes, d.cfg = changes, cfg
	res, err := d.guardedMake(ctx)
	if err == nil {
		err = d.target.Publish()
	}
	if err != nil {
		return WriteResult{}, err
	}
	return res, nil
}

// guardedMake is make with the errors of an input that is wrong, or changes meanwhile.
func (d *Draft) guardedMake(ctx context.Context) (res WriteResult, err error) {
	if d.src == nil {
		return d.make(ctx)
	}
	err = d.src.Guard(func() error {
		res, err = d.make(ctx)
		return err
	})
	if err == nil {
		_, err = d.src.Digest(ctx)
	}
	if now := d.src.unchanged(); now != nil && !errors.Is(err, ErrChanged) {
		if err != nil { // which the change caused
			now = fmt.Errorf("%w: %v", now, err)
		}
		err = d.src.wrap(now)
	}
	return res, err
}

// make writes the file, reads it back, compares it with what was to be written, and calls the
// caller's check.
func (d *Draft) make(ctx context.Context) (res WriteResult, err error) {
	write, leases := d.append, d.cfg.Leases
	switch {
	case d.cfg.Build != nil:
		write, leases = d.build, d.cfg.Build.Leases
	case d.cfg.Scrub != nil || d.cfg.Compact != nil:
		write = d.rewrite
	default:
		d.Copy()
	}
	if d.cfg.Build == nil {
		if err := d.src.Sound(ctx); err != nil {
			return res, err
		}
		if d.x, err = d.src.index(ctx); err != nil {
			return res, err
		}
	}
	defer func() {
		if d.out != nil { // also after a panic
			_ = d.out.Close()
		}
	}()
	if d.grants, err = grantEntries(leases); err == nil {
		res, err = write(ctx)
	}
	if err == nil {
		err = d.check(ctx, &res)
	}
	if err != nil {
		err = fmt.Errorf("write %s: %w", d.path, reason(err))
	}
	return res, err
}

// open opens the written file as any other.
func (d *Draft) open(ctx context.Context) (err error) {
	d.out, err = openFile(ctx, input{path: d.path, given: d.file}, Config{SkipDigest: true})
	if err == nil && d.out.raw {
		err = errors.New("its size is not that of a snapshot")
	}
	return err
}

// check completes res and calls the caller's check.
func (d *Draft) check(ctx context.Context, res *WriteResult) (err error) {
	if d.out.info, err = d.file.Stat(); err != nil {
		return err
	}
	sum, err := d.out.Digest(ctx)
	res.Path, res.Bytes, res.SHA256 = d.path, d.out.Size(), fmt.Sprintf("%x", sum.File)
	if err == nil && d.cfg.Check != nil {
		err = d.out.guard(func() error { return d.cfg.Check(ctx, d.out) })
	}
	return err
}
