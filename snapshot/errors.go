package snapshot

import (
	"errors"
	"io/fs"

	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
)

var (
	// ErrNotSnapshot is returned for a file that is not a bbolt database image of any kind: empty,
	// a directory, text, an archive of several files.
	ErrNotSnapshot = bolt.ErrNotBolt
	// ErrTruncated is returned if the file is shorter than its own metadata says.
	ErrTruncated = bolt.ErrTruncated
	// ErrDigest is returned if the SHA-256 at the end of the file is not that of the image before
	// it.
	ErrDigest = errors.New("digest does not match")
	// ErrDamaged is returned if a reachable page or record is not what etcd writes.
	ErrDamaged = bolt.ErrDamaged
	// ErrFreeList is wrapped by the error of a wrong free list. No record is harmed by it.
	ErrFreeList = errors.New("free list")
	// ErrExpand is returned if a compressed file expands to more than Config.MaxExpand, or more
	// times its size than any snapshot does.
	ErrExpand = errors.New("compressed file expands too far")
	// ErrScratch is returned if there is no place, or no room, to expand a compressed file.
	ErrScratch = errors.New("scratch file for the expanded snapshot")
	// ErrChanged is returned if the input changed while it was being read.
	ErrChanged = errors.New("file changed while it was read")
	// ErrCompacted is returned for a revision below the oldest one that the file keeps whole.
	ErrCompacted = errors.New("revision is compacted")
	// ErrFuture is returned for a revision above the last one of the file.
	ErrFuture = errors.New("revision is in the future")
	// ErrVerify is returned by Write if the output, read back, is not what was to be written.
	// Nothing is published.
	ErrVerify = errors.New("output failed verification")

	// errConflict is returned by Write if a change was planned against another revision of its key,
	// if a lease is there already, or if two changes contradict each other.
	errConflict = errors.New("plan does not fit the file")
	// errOdd marks what etcd never writes, and a restore and a server accept.
	errOdd = errors.New("odd, but etcd accepts it")
)

// FileError is an error about the snapshot at Path.
type FileError struct {
	Path string
	Err  error
}

func (e *FileError) Error() string { return "snapshot " + e.Path + ": " + e.Err.Error() }
func (e *FileError) Unwrap() error { return e.Err }

// reason is what the file system says of a path without the path, which the error around it names.
func reason(err error) error {
	if p, ok := err.(*fs.PathError); ok {
		return p.Err
	}
	return err
}
