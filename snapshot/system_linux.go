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

// copyRange copies up to n bytes at an offset, inside the kernel where the filesystem can; some of
// them then share the blocks. What the kernel cannot do for whatever reason, which filesystems tell
// in many ways, goes through memory: a true error comes again there.
func copyRange(out, in *os.File, at, n int64) (int64, error) {
	from, to := at, at
	copied, err := unix.CopyFileRange(int(in.Fd()), &from, int(out.Fd()), &to, int(n), 0)
	if err != nil || copied == 0 {
		return copyThrough(out, in, at, n)
	}
	return int64(copied), nil
}

// populate maps the pages of a part of a mapped file, which begins with a page. It reads them from
// the disk if need be; a page that cannot be read is an error, not a fault.
func populate(part []byte) error { return unix.Madvise(part, unix.MADV_POPULATE_READ) }
