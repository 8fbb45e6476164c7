package snapshot

import (
	"os"

	"golang.org/x/sys/unix"
)

// startWriteback asks the kernel to begin writing a range to disk, so that the sync at the end does
// not find all of it waiting. It is a hint: an error changes nothing.
func startWriteback(f *os.File, at, n int64) {
	_ = unix.SyncFileRange(int(f.Fd()), at, n, unix.SYNC_FILE_RANGE_WRITE)
}
