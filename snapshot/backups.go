package snapshot

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/snapshot/internal/etcdbrctl"
	"github.com/etcdshift/etcdshift/snapshot/internal/expand"
	"github.com/etcdshift/etcdshift/snapshot/internal/member"
)

// ErrBackups is returned for delta snapshots of etcdbrctl that do not continue their full snapshot.
var ErrBackups = etcdbrctl.ErrGap

// Etcdbrctl is the compression of a snapshot read from a full and delta snapshots of etcdbrctl.
const Etcdbrctl = "etcdbrctl"

// isBackups reports whether the path is that of a folder of etcdbrctl, or of a delta snapshot.
func (in *input) isBackups(cfg Config) bool {
	if in.info.IsDir() {
		_, dataDir := member.Find(in.path)
		return !dataDir && IsFolder(in.path)
	}
	b, is := etcdbrctl.Parse(in.path)
	return is && b.Delta && cfg.File == nil
}

// loadBackups sets in.file to a scratch file with a full snapshot of etcdbrctl and the records of
// the delta snapshots after it.
func (in *input) loadBackups(ctx context.Context, cfg Config) (size int64, err error) {
	end := etcdbrctl.Until{Revision: cfg.UntilRevision, Time: cfg.UntilTime}
	full, deltas, _, err := etcdbrctl.Find(in.path, end)
	if err != nil {
		return 0, reason(err)
	}
	for _, b := range append([]etcdbrctl.Backup{full}, deltas...) {
		info, err := in.watch(b.Path)
		if err == nil && !info.Mode().IsRegular() {
			err = fmt.Errorf("%w: it is not a regular file", ErrNotSnapshot)
		}
		if err != nil {
			return 0, &FileError{b.Path, err}
		}
	}
	base, err := openFull(ctx, full, cfg)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, base.Close()) }()
	if _, err := base.Digest(ctx); err != nil {
		return 0, err
	}
	revision, err := base.Revision(ctx)
	if err != nil {
		return 0, err
	}
	d := etcdbrctl.NewDeltas(ctx, revision, end, cfg.limit())
	if in.file, err = scratch(cfg); err != nil {
		in.file = in.given
		return 0, err
	}
	used := 0
	err = base.Guard(func() error {
		size, err = base.onTop(ctx, in.file, func(add func(*Record) error) error {
			for _, b := range deltas {
				before := d.Last
				if err := readDeltas(d, b, add); err != nil {
					return &FileError{b.Path, err}
				}
				if d.Last != before { // not a file that only shows the end
					used++
				}
				if d.Ended {
					return nil
				}
			}
			return nil
		}, func() map[string]map[string][]byte { return nil })
		return err
	})
	if err == nil {
		err = end.Check(full, revision, d.Last.Main)
	}
	if of := (*FileError)(nil); errors.As(err, &of) {
		return 0, of
	}
	if err != nil {
		return 0, err
	}
	in.compression = Etcdbrctl
	in.warn("a full snapshot of etcdbrctl (%s), revision %d, and %s up to revision %d",
		filepath.Base(full.Path), revision, phrase.Count(used, "delta snapshot"), d.Last.Main)
	return size, nil
}

// readDeltas calls fn with each record of a delta snapshot.
func readDeltas(d *etcdbrctl.Deltas, b etcdbrctl.Backup, fn func(*Record) error) error {
	f, err := openNow(b.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	return d.Read(f, b, fn)
}

// openFull opens a full snapshot. Open itself recognizes gzip, but not the other formats of
// etcdbrctl.
func openFull(ctx context.Context, full etcdbrctl.Backup, cfg Config) (*Snapshot, error) {
	c := Config{MaxExpand: cfg.MaxExpand, ScratchDir: cfg.ScratchDir}
	if full.Packing != ".zlib" && full.Packing != ".Z" {
		return Open(ctx, full.Path, c)
	}
	f, err := openNow(full.Path)
	if err != nil {
		return nil, &FileError{full.Path, err}
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, &FileError{full.Path, reason(err)}
	}
	if c.File, err = scratch(cfg); err != nil {
		return nil, err
	}
	if _, _, err = expand.File(ctx, f, info.Size(), full.Packing, cfg.limit(), c.File); err != nil {
		return nil, errors.Join(&FileError{full.Path, err}, c.File.Close())
	}
	return Open(ctx, full.Path, c)
}
