package snapshot

import (
	"context"
	"errors"
	"io/fs"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/publish"
	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
)

// Errors of files that cannot be used, or not to the end.
var (
	ErrNotSnapshot = bolt.ErrNotBolt   // no bbolt database image: empty, text, an archive of several files
	ErrTruncated   = bolt.ErrTruncated // shorter than its own metadata says
	ErrDamaged     = bolt.ErrDamaged   // a reachable page or record is not as etcd writes it
	// ErrDigest is of an image that is not that of the SHA-256 at its end.
	ErrDigest = finding.WithLasting(errors.New("digest does not match"),
		"the file differs from the one that etcd saved; try another copy, or take a new snapshot with "+
			"\"etcdctl snapshot save\"")
	// ErrFreeList is of a wrong free list, which harms no record.
	ErrFreeList = finding.WithHint(errors.New("free list"),
		"no record is harmed: \"etcdshift migrate\" writes a copy without the list, and that restores")
	// ErrExpand is of a compressed file beyond Config.MaxExpand, or beyond the ratio of a snapshot.
	ErrExpand = finding.WithLasting(errors.New("compressed file expands too far"),
		"if you know the file, raise the limit with --max-expand, or expand it yourself and give the result")
	ErrScratch = publish.ErrScratch // a scratch file cannot be made or filled
	ErrChanged = finding.WithHint(errors.New("file changed while it was read"),
		"something writes to the file; work on a copy")
)

// IsDamage reports whether an error of [Open] or [Verify] is damage of a snapshot: not a failure to
// read it, and not a file that is none.
func IsDamage(err error) bool {
	return !errors.Is(err, context.Canceled) &&
		(errors.Is(err, ErrDamaged) || errors.Is(err, ErrDigest) || errors.Is(err, ErrTruncated))
}

// Errors of requests.
var (
	ErrCompacted = errors.New("revision is compacted")     // below the first revision that the file keeps
	ErrFuture    = errors.New("revision is in the future") // above the last revision
	// ErrVerify is of an output that, read back, differs from the plan. Nothing is published.
	ErrVerify = finding.WithHint(errors.New("output failed verification"),
		"nothing was written; this is a fault of etcdshift or of the disk: try another disk, and report it")

	// errConflict is of a change planned against another revision of its key, of two changes of one
	// key, and of a lease that exists.
	errConflict = errors.New("plan does not fit the file")
	// errOdd marks an entry that etcd never writes, but that a restore and a server accept.
	errOdd = errors.New("odd, but etcd accepts it")
	// errNewer marks a version on which the servers that this package knows do not start.
	errNewer = errors.New("of that release")
)

// FileError is an error about the snapshot at Path.
type FileError struct {
	Path string
	Err  error
}

func (e *FileError) Error() string { return "snapshot " + e.Path + ": " + e.Err.Error() }
func (e *FileError) Unwrap() error { return e.Err }

// reason is the error of a file system without the path, which the error around it names.
func reason(err error) error {
	if p, ok := err.(*fs.PathError); ok {
		return p.Err
	}
	return err
}

// Class is what becomes of a restored file because of an error of [Verify] or [Odd].
type Class string

// The classes, worst first.
const (
	// Fatal: etcdutl or a server of etcd 3.4 to 3.7 dies of it, at once or when it gets there.
	Fatal Class = "fatal"
	// Lies: a server starts, and serves numbers or records that no writer stored.
	Lies Class = "lies"
	// Warning: a server lives with it.
	Warning Class = "warning"
)

// ClassOf returns the class of an error of [Open], [Verify] or [Odd]. A page that is not as etcd
// writes it is Fatal: what a server reads there is chance.
func ClassOf(err error) Class {
	switch {
	case errors.As(err, new(lie)):
		return Lies
	case errors.Is(err, errOdd) && !errors.Is(err, errNewer):
		return Warning
	}
	return Fatal
}

// lie is an error of class Lies.
type lie struct{ error }

func (l lie) Unwrap() error { return l.error }
