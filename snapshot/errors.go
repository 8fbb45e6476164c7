package snapshot

import "errors"

var (
	// ErrNotSnapshot is returned for a file that is not a bbolt database image of any kind: empty, a directory, text,
	// an archive of several files.
	ErrNotSnapshot = errors.New("not an etcd snapshot")
	// ErrTruncated is returned when the file is shorter than its own metadata says.
	ErrTruncated = errors.New("file is truncated")
	// ErrDigest is returned when the SHA-256 at the end of the file is not that of the image before it.
	ErrDigest = errors.New("digest does not match")
	// ErrDamaged is returned when a reachable page or record is not what etcd writes.
	ErrDamaged = errors.New("file is damaged")
	// ErrExpand is returned when a compressed file expands to more than it may: Config.MaxExpand, or more times its size than
	// any snapshot does.
	ErrExpand = errors.New("compressed file expands too far")
	// ErrScratch is returned when there is no place, or no room, for the file in which a compressed one is expanded.
	ErrScratch = errors.New("scratch file for the expanded snapshot")
	// ErrChanged is returned when the input changed while it was being read.
	ErrChanged = errors.New("file changed while it was read")
	// ErrCompacted is returned for a revision below the oldest one that the file keeps whole.
	ErrCompacted = errors.New("revision is compacted")
	// ErrFuture is returned for a revision above the last one of the file.
	ErrFuture = errors.New("revision is in the future")
	// ErrConflict is returned by Write when what is to be written does not fit what the file has: a change that was planned against
	// another revision of its key, a lease that is there already; or when it does not fit together.
	ErrConflict = errors.New("plan does not fit the file")
	// ErrVerify is returned by Write when the output, read back, is not what was to be written. Nothing is published.
	ErrVerify = errors.New("output failed verification")
)
