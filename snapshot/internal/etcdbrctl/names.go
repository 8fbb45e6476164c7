package etcdbrctl

import (
	"cmp"
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
)

// ErrGap is the error for delta snapshots that do not continue their full snapshot.
var ErrGap = finding.WithLasting(errors.New("the delta snapshots do not continue the full snapshot"),
	"add the missing files; or give the path of the last delta snapshot before the gap, or of the full snapshot")

// Backup is a file of etcdbrctl, the backup program of Gardener: a full snapshot, or the events of
// some revisions after it (github.com/gardener/etcd-backup-restore, pkg/types/snapstore.go).
type Backup struct {
	Path        string
	Delta       bool
	first, last int64 // revisions; those of a full snapshot are at most last, or a little later
	created     int64 // seconds since 1970
	Packing     string
}

// backupName matches a name: kind, first and last revision, time of creation, compression.
var backupName = pattern.New(`^(Full|Incr)-([0-9]{8,19})-([0-9]{8,19})-([0-9]{9,12})(|\.gz|\.zlib|\.Z)$`)

// Parse reads a file name.
func Parse(path string) (b Backup, is bool) {
	m := backupName().FindStringSubmatch(filepath.Base(path))
	if m == nil {
		return b, false
	}
	b = Backup{Path: path, Delta: m[1] == "Incr", Packing: m[5]}
	for i, to := range []*int64{&b.first, &b.last, &b.created} {
		n, err := strconv.ParseInt(m[i+2], 10, 64)
		if err != nil {
			return b, false
		}
		*to = n
	}
	return b, b.first <= b.last
}

// Find returns the newest full snapshot before the end, and all later delta snapshots, for a
// path: a folder of etcdbrctl, or a delta snapshot in it, which is then the last one. If every full
// snapshot comes after the end, the first one is returned.
func Find(path string, end Until) (full Backup, deltas []Backup, is bool, err error) {
	folder, last := path, int64(-1)
	if b, delta := Parse(path); delta && b.Delta {
		folder, last = filepath.Dir(path), b.last
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return full, nil, last >= 0, err
	}
	var all []Backup
	for _, e := range entries {
		if b, is := Parse(filepath.Join(folder, e.Name())); is && (last < 0 || b.last <= last) {
			all = append(all, b)
		}
	}
	slices.SortFunc(all, func(a, b Backup) int {
		return cmp.Or(cmp.Compare(a.last, b.last), cmp.Compare(a.created, b.created), strings.Compare(a.Path, b.Path))
	})
	for _, b := range all {
		switch {
		case b.Delta:
			deltas = append(deltas, b)
		case full.Path == "" || !end.isBefore(b):
			full, deltas = b, nil
		}
	}
	if full.Path == "" && len(deltas) > 0 {
		return full, nil, true, fmt.Errorf("%w: no full snapshot is in %s", ErrGap, folder)
	}
	return full, deltas, full.Path != "", nil
}

// Until ends a chain of delta snapshots; the zero value does not.
type Until struct {
	Revision int64     // the last revision; 0 for none
	Time     time.Time // no event received later; zero for none
}

// excludes reports whether an event comes after the end.
func (u Until) excludes(e *deltaEvent) bool {
	return u.Revision > 0 && e.EtcdEvent.KV.ModRevision > u.Revision || !u.Time.IsZero() && e.Time.After(u.Time)
}

// isBefore reports whether the end is before a full snapshot.
func (u Until) isBefore(full Backup) bool {
	return u.Revision > 0 && full.last > u.Revision || !u.Time.IsZero() && u.Time.Before(time.Unix(full.created, 0))
}

// ErrEnd is the error for an end outside of the files.
var ErrEnd = finding.WithLasting(errors.New("the backups do not reach the given end"),
	"give an end between the first full snapshot and the last delta snapshot")

// Check returns an error for an end outside of the files.
func (u Until) Check(full Backup, first, last int64) error {
	switch {
	case u.Revision > last:
		return fmt.Errorf("%w: revision %d is after the last delta snapshot, which ends with revision %d", ErrEnd,
			u.Revision, last)
	case u.Revision > 0 && u.Revision < first:
		return fmt.Errorf("%w: revision %d is before that of %s, revision %d", ErrEnd, u.Revision,
			filepath.Base(full.Path), first)
	case !u.Time.IsZero() && u.Time.Before(time.Unix(full.created, 0)):
		return fmt.Errorf("%w: it is before the time of %s, %s", ErrEnd, filepath.Base(full.Path),
			time.Unix(full.created, 0).UTC().Format(time.RFC3339))
	}
	return nil
}
