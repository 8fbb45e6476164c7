package snapshot

import (
	"context"
	"errors"
	"io/fs"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/publish"
	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
	"github.com/etcdshift/etcdshift/snapshot/internal/expand"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

// Errors of files that cannot be used, or only in part.
var (
	ErrNotSnapshot = bolt.ErrNotBolt   // no bbolt database image: empty, text, an archive of several files
	ErrTruncated   = bolt.ErrTruncated // shorter than its own metadata says
	ErrDamaged     = bolt.ErrDamaged   // a reachable page or record is not as etcd writes it
	ErrDigest      = bolt.ErrDigest    // the SHA-256 of the image differs from the digest at the end
	// ErrFreeList is returned for a wrong free list, which harms no record.
	ErrFreeList = finding.WithHint(errors.New("free list"),
		"no record is harmed: \"etcdshift migrate\" writes a copy without the list, and that restores")
	// ErrExpand is returned for a compressed file beyond Config.MaxExpand, or beyond the ratio of a
	// snapshot.
	ErrExpand  = expand.ErrTooFar
	ErrScratch = publish.ErrScratch // a scratch file cannot be made or filled
	ErrChanged = bolt.ErrChanged    // the file changed while it was read
)

// IsDamage reports whether an error of [Open] or [Verify] is damage of a snapshot, not a failed
// read and not a file of another format.
func IsDamage(err error) bool {
	return !errors.Is(err, context.Canceled) &&
		(errors.Is(err, ErrDamaged) || errors.Is(err, ErrDigest) || errors.Is(err, ErrTruncated) ||
			errors.Is(err, ErrLog) && !errors.As(err, new(*fs.PathError)))
}

// Errors of requests.
var (
	ErrCompacted = errors.New("revision is compacted")     // below the first revision kept in the file
	ErrFuture    = errors.New("revision is in the future") // above the last revision
	// ErrVerify is returned for an output that differs from the plan. Nothing is published.
	ErrVerify = finding.WithHint(errors.New("output failed verification"),
		"nothing was written; this is a fault of etcdshift or of the disk: try another disk, and report it")

	// errConflict is returned for a change planned for another revision of its key, for two changes
	// of one key, and for an existing lease.
	errConflict = errors.New("plan does not fit the file")
)

// FileError is an error about the snapshot at Path.
type FileError struct {
	Path string
	Err  error
}

func (e *FileError) Error() string { return "snapshot " + e.Path + ": " + e.Err.Error() }
func (e *FileError) Unwrap() error { return e.Err }

// reason returns the error of a file system without the path, which the outer error names.
func reason(err error) error {
	if p, ok := err.(*fs.PathError); ok {
		return p.Err
	}
	return err
}

// Class is the effect of an error of [Verify] or [Odd] on a restored file.
type Class string

// The classes, worst first.
const (
	// Fatal: etcdutl or a server of etcd 3.4 to 3.7 crashes, at the start or later.
	Fatal Class = "fatal"
	// Lies: a server starts, and serves numbers or records that no writer stored.
	Lies Class = "lies"
	// Warning: a server works.
	Warning Class = "warning"
)

// ClassOf returns the class of an error of [Open], [Verify] or [Odd]. A page that etcd would not
// write is Fatal: the effect on a server is random.
func ClassOf(err error) Class {
	switch {
	case errors.As(err, new(mvcc.Lie)):
		return Lies
	case errors.Is(err, mvcc.ErrOdd) && !errors.Is(err, mvcc.ErrNewer):
		return Warning
	}
	return Fatal
}
