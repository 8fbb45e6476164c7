package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/pattern"
	"github.com/etcdshift/etcdshift/internal/phrase"
	"github.com/etcdshift/etcdshift/internal/publish"
)

// ErrBackups is returned for delta snapshots of etcdbrctl that do not continue their full snapshot.
var ErrBackups = finding.WithLasting(errors.New("the delta snapshots do not continue the full snapshot"),
	"add the missing files; or give the path of the last delta snapshot before the gap, or of the full snapshot")

// Etcdbrctl is the compression of a snapshot read from a full and delta snapshots of etcdbrctl.
const Etcdbrctl = "etcdbrctl"

// backup is a file of etcdbrctl, the backup program of Gardener: a full snapshot, or the events of
// some revisions after it (github.com/gardener/etcd-backup-restore, pkg/types/snapstore.go).
type backup struct {
	path        string
	delta       bool
	first, last int64 // revisions; those of a full snapshot are at most last, or a little later
	created     int64 // seconds since 1970
	packing     string
}

// backupName matches a name: kind, first and last revision, time of creation, compression.
var backupName = pattern.New(`^(Full|Incr)-([0-9]{8,19})-([0-9]{8,19})-([0-9]{9,12})(|\.gz|\.zlib|\.Z)$`)

// parseBackup reads a file name.
func parseBackup(path string) (b backup, is bool) {
	m := backupName().FindStringSubmatch(filepath.Base(path))
	if m == nil {
		return b, false
	}
	b = backup{path: path, delta: m[1] == "Incr", packing: m[5]}
	for i, to := range []*int64{&b.first, &b.last, &b.created} {
		n, err := strconv.ParseInt(m[i+2], 10, 64)
		if err != nil {
			return b, false
		}
		*to = n
	}
	return b, b.first <= b.last
}

// findBackups returns the newest full snapshot before the end, and all later delta snapshots, for a
// path: a folder of etcdbrctl, or a delta snapshot in it, which is then the last one. If every full
// snapshot comes after the end, the first one is returned.
func findBackups(path string, end until) (full backup, deltas []backup, is bool, err error) {
	folder, last := path, int64(-1)
	if b, delta := parseBackup(path); delta && b.delta {
		folder, last = filepath.Dir(path), b.last
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return full, nil, last >= 0, reason(err)
	}
	var all []backup
	for _, e := range entries {
		if b, is := parseBackup(filepath.Join(folder, e.Name())); is && (last < 0 || b.last <= last) {
			all = append(all, b)
		}
	}
	slices.SortFunc(all, func(a, b backup) int {
		return cmp.Or(cmp.Compare(a.last, b.last), cmp.Compare(a.created, b.created), strings.Compare(a.path, b.path))
	})
	for _, b := range all {
		switch {
		case b.delta:
			deltas = append(deltas, b)
		case full.path == "" || !end.isBefore(b):
			full, deltas = b, nil
		}
	}
	if full.path == "" && len(deltas) > 0 {
		return full, nil, true, fmt.Errorf("%w: no full snapshot is in %s", ErrBackups, folder)
	}
	return full, deltas, full.path != "", nil
}

// isBackups reports whether the path is that of a folder of etcdbrctl, or of a delta snapshot.
func (in *input) isBackups(cfg Config) bool {
	if in.info.IsDir() {
		_, dataDir := findDataDir(in.path)
		return !dataDir && IsFolder(in.path)
	}
	b, is := parseBackup(in.path)
	return is && b.delta && cfg.File == nil
}

// loadBackups sets in.file to a scratch file with a full snapshot of etcdbrctl and the records of
// the delta snapshots after it.
func (in *input) loadBackups(ctx context.Context, cfg Config) (size int64, err error) {
	end := until{cfg.UntilRevision, cfg.UntilTime}
	full, deltas, _, err := findBackups(in.path, end)
	if err != nil {
		return 0, err
	}
	for _, b := range append([]backup{full}, deltas...) {
		info, err := in.watch(b.path)
		if err == nil && !info.Mode().IsRegular() {
			err = fmt.Errorf("%w: it is not a regular file", ErrNotSnapshot)
		}
		if err != nil {
			return 0, &FileError{b.path, err}
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
	d := &deltaRecords{ctx: ctx, from: revision, last: Revision{Main: revision},
		until: end, limit: cfg.limit()}
	if in.file, err = publish.Scratch(cmp.Or(cfg.ScratchDir, os.TempDir())); err != nil {
		in.file = in.given
		return 0, err
	}
	used := 0
	err = base.Guard(func() error {
		size, err = base.onTop(ctx, in.file, func(add func(*Record) error) error {
			for _, b := range deltas {
				before := d.last
				if err := d.read(b, add); err != nil {
					return err
				}
				if d.last != before { // not a file that only shows the end
					used++
				}
				if d.ended {
					return nil
				}
			}
			return nil
		}, func() map[string]map[string][]byte { return nil })
		return err
	})
	if err == nil {
		err = d.until.check(full, revision, d.last.Main)
	}
	if of := (*FileError)(nil); errors.As(err, &of) {
		return 0, of
	}
	if err != nil {
		return 0, err
	}
	in.compression = Etcdbrctl
	in.warn("a full snapshot of etcdbrctl (%s), revision %d, and %s up to revision %d",
		filepath.Base(full.path), revision, phrase.Count(used, "delta snapshot"), d.last.Main)
	return size, nil
}

// errEnd is the error for an end outside of the files.
var errEnd = finding.WithLasting(errors.New("the backups do not reach the given end"),
	"give an end between the first full snapshot and the last delta snapshot")

// check returns an error for an end outside of the files.
func (u until) check(full backup, first, last int64) error {
	switch {
	case u.revision > last:
		return fmt.Errorf("%w: revision %d is after the last delta snapshot, which ends with revision %d", errEnd,
			u.revision, last)
	case u.revision > 0 && u.revision < first:
		return fmt.Errorf("%w: revision %d is before that of %s, revision %d", errEnd, u.revision,
			filepath.Base(full.path), first)
	case !u.time.IsZero() && u.time.Before(time.Unix(full.created, 0)):
		return fmt.Errorf("%w: it is before the time of %s, %s", errEnd, filepath.Base(full.path),
			time.Unix(full.created, 0).UTC().Format(time.RFC3339))
	}
	return nil
}

// openFull opens a full snapshot. Open itself recognizes gzip, but not the other formats of
// etcdbrctl.
func openFull(ctx context.Context, full backup, cfg Config) (*Snapshot, error) {
	c := Config{MaxExpand: cfg.MaxExpand, ScratchDir: cfg.ScratchDir}
	if full.packing != ".zlib" && full.packing != ".Z" {
		return Open(ctx, full.path, c)
	}
	f, err := openNow(full.path)
	if err != nil {
		return nil, &FileError{full.path, err}
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, &FileError{full.path, reason(err)}
	}
	if c.File, err = publish.Scratch(cmp.Or(cfg.ScratchDir, os.TempDir())); err != nil {
		return nil, err
	}
	p := &packed{ctx: ctx, format: full.packing, file: f, size: info.Size(),
		limit: cfg.limit()}
	if _, err = p.expand(c.File); err != nil {
		return nil, errors.Join(&FileError{full.path, err}, c.File.Close())
	}
	return Open(ctx, full.path, c)
}
