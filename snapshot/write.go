package snapshot

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"iter"
	"os"

	"github.com/etcdshift/etcdshift/internal/publish"
	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
)

// WriteConfig holds the options of Write. The zero value adds nothing to the changes.
type WriteConfig struct {
	// Leases are granted in addition to the leases of the file, in a server's form. An ID that is
	// not positive, exists already or is granted twice is an error.
	Leases []Lease
	// Scrub, if set, makes the output a file of new pages only, without any record, live,
	// superseded or deleted, of a key for which Scrub returns true. All other records and buckets
	// stay, and changes are appended; a scrubbed key can only be deleted, which leaves no record.
	// The file ends with a record without key and value, like after a restore with --bump-revision,
	// so that the revision never decreases. Scrub must return the same result each time.
	Scrub func(key []byte) bool
	// Compact, if set, makes the output a file of new pages only, without the history that Compact
	// removes, including history of the changes. The same content gives the same bytes.
	Compact *Compaction
	// LogHistory, if set, makes the output a file of new pages only, with the records that
	// compaction removed and the log of the data directory still has. There may be no changes.
	LogHistory *LogHistory
	// Build, if set, makes the output a file of this content, like func Build, and not of the
	// snapshot and changes. The content may come from the snapshot.
	Build *Content
	// Check, if set, is called with the output, read back and compared, before the output gets its
	// name. If Check returns an error, no output is left.
	Check func(ctx context.Context, out *Snapshot) error
}

// WriteResult describes an output of Write or Build.
type WriteResult struct {
	FileInfo     // without changes Revision is that of the input
	Appended int // appended records, including compacted ones, but not the last record of a scrubbed file
	Scrubbed int // records of the input that were removed
	// Compacted is the number of other records, of the input and the changes, removed by a
	// compaction.
	Compacted int
	Restored  int              // records of LogHistory
	Inferred  *InferredHistory // of LogHistory, if the beginning of the log is unknown
}

// Write makes a new snapshot at path: the records of src and the changes, each at its own revision,
// as a server would store them one after the other. Old pages are copied byte for byte; new leaves
// and a new right edge of the tree follow. The file appears under its name after it was read back,
// compared and synced, and the digest of src is right; after an error no file is left. path must
// not exist (fs.ErrExist). An src with an error of [Verify] is rejected ([ErrDamaged]).
//
// Write ranges over changes twice, for a compaction three times; each pass must yield the same
// changes. Without changes, leases, scrubbing and compaction the output is src byte for byte, or,
// for a raw database file, its image with both metas of the newest transaction, and a digest. A
// wrong free list is accepted; the output has none. Memory is a few bytes for each change.
func Write(
	ctx context.Context, path string, src *Snapshot, changes iter.Seq2[Change, error], cfg WriteConfig,
) (WriteResult, error) {
	out, err := publish.Create(path)
	if err != nil {
		return WriteResult{}, err
	}
	return Begin(path, out, src).Write(ctx, changes, cfg)
}

// Build makes a snapshot at path from records only. After "etcdutl snapshot restore" a server
// serves the records with all their numbers. The file has pages of 4096 bytes, and the same content
// gives the same bytes. Path, check, which may be nil, and errors are those of Write.
//
// Call Build within the Guard of a Snapshot if the records are from that Snapshot.
func Build(
	ctx context.Context, path string, c Content, check func(ctx context.Context, out *Snapshot) error,
) (WriteResult, error) {
	return Write(ctx, path, nil, nil, WriteConfig{Build: &c, Check: check})
}

// Output is a file under construction. Publish gives the complete file its name, in a folder or
// another location, and never replaces another file (fs.ErrExist). After an error of Publish, and
// after Discard, nothing is left. Discard after Publish does nothing.
type Output interface {
	File() *os.File
	Publish() error
	Discard() error
}

// Draft is an output without a name.
type Draft struct {
	target Output
	file   *os.File // of target
	path   string   // the future name of the output
	src    *Snapshot
	copied *pass[struct{}] // of the pages of src
	sound  *pass[struct{}] // the check of src

	foreseen *pass[layout]    // of the changes of Foresee
	same     func() bool      // reports whether the changes of Foresee are those of Write
	hashed   *pass[hash.Hash] // of the meta pages and the old pages; nil before the pass

	cfg     WriteConfig
	changes iter.Seq2[Change, error]
	x       *index         // of src
	grants  []bolt.Element // entries of the lease bucket, sorted
	out     *Snapshot      // the written file; nil until read back
}

// Begin begins a changed copy of src in out, to be published as path. src may be nil for an output
// of [WriteConfig.Build]. The caller ends with Write or Discard.
func Begin(path string, out Output, src *Snapshot) *Draft {
	d := &Draft{target: out, file: out.File(), path: path, src: src, same: func() bool { return false }}
	d.copied = task(src, d.copyImage)
	d.sound = task(src, func(ctx context.Context) error { return src.Sound(ctx) })
	d.foreseen = newPass(func(context.Context) (none layout, err error) { return none, nil })
	return d
}

// Copy begins to copy and compare the old pages in the background, while changes are planned. An
// output of new pages only does not need the copy, and Stop ends it.
func (d *Draft) Copy() { d.copied.start() }

// Stop ends Copy and Foresee. Write does their work itself if needed.
func (d *Draft) Stop() {
	d.copied.stop()
	d.stopLayout()
}

func (d *Draft) stopLayout() {
	d.foreseen.stop()
	if d.hashed != nil {
		d.hashed.stop()
	}
	d.hashed = nil
}

// Progress returns the part of the old pages in the digest of the output, from 0 to 1: most of the
// work of Write, unless all pages are new. Progress may be called at any time.
func (d *Draft) Progress() float64 {
	return min(1, float64(d.src.rehashed.Load())/float64(d.src.db.Bytes()))
}

// Discard removes the written file. After Write, Discard does nothing.
func (d *Draft) Discard() error {
	d.Stop()
	d.sound.stop()
	return d.target.Discard()
}

// Write completes and publishes the output (see [Write]). After an error no file is left.
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

// guardedMake is make, with the errors of a wrong or changing input.
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
		if err != nil { // caused by the change of the file
			now = fmt.Errorf("%w: %v", now, err)
		}
		err = d.src.wrap(now)
	}
	return res, err
}

// make writes the file, reads it back, compares it with the plan, and calls the caller's check.
func (d *Draft) make(ctx context.Context) (res WriteResult, err error) {
	write, leases := d.append, d.cfg.Leases
	switch {
	case d.cfg.Build != nil:
		write, leases = d.build, d.cfg.Build.Leases
	case d.cfg.LogHistory != nil:
		write = func(ctx context.Context) (WriteResult, error) { return addLogHistory(ctx, d) }
	case d.cfg.Scrub != nil || d.cfg.Compact != nil:
		write = d.rewrite
	default:
		d.Copy()
	}
	if d.src != nil && d.cfg.Build == nil {
		if _, err := d.sound.wait(ctx); err != nil {
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

// open opens the written file, with digest sum, like any snapshot. The file begins with the pages
// of old, unless old is nil.
func (d *Draft) open(ctx context.Context, old *Snapshot, sum *pass[Digest]) (err error) {
	d.out, err = openFile(ctx, newInput(d.path, d.file, false), Config{SkipDigest: true}, old)
	if err == nil && d.out.raw {
		err = errors.New("its size is not that of a snapshot")
	}
	if err == nil {
		d.out.digest = sum
	}
	return err
}

// check writes the digest, completes res and calls the caller's check.
func (d *Draft) check(ctx context.Context, res *WriteResult) (err error) {
	sum, err := d.out.Digest(ctx)
	if err == nil {
		_, err = d.file.WriteAt(sum.Image[:], d.out.db.Bytes())
	}
	if err == nil {
		err = compareFile(d.file, make([]byte, sha256.Size), d.out.db.Bytes(), sum.Image[:])
	}
	if err == nil {
		d.out.info, err = d.file.Stat()
	}
	res.Path, res.Bytes, res.SHA256 = d.path, d.out.Size(), fmt.Sprintf("%x", sum.File)
	if err == nil && d.cfg.Check != nil {
		err = d.out.guard(func() error { return d.cfg.Check(ctx, d.out) })
	}
	return err
}
