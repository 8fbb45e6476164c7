package snapshot

import (
	"os"

	"golang.org/x/sys/unix"
)

// startWriteback asks the kernel to begin writing a range to disk, so that the final sync finishes
// sooner. The call is a hint: errors are ignored.
func startWriteback(f *os.File, at, n int64) {
	_ = unix.SyncFileRange(int(f.Fd()), at, n, unix.SYNC_FILE_RANGE_WRITE)
}

// copyRange copies up to n bytes at an offset, inside the kernel if possible; on some filesystems
// both files then share blocks. After any error of the kernel, which differs by filesystem, the
// copy goes through memory: a true error occurs again there.
func copyRange(out, in *os.File, at, n int64) (int64, error) {
	from, to := at, at
	copied, err := unix.CopyFileRange(int(in.Fd()), &from, int(out.Fd()), &to, int(n), 0)
	if err != nil || copied == 0 {
		return copyThrough(out, in, at, n)
	}
	return int64(copied), nil
}

// populate maps the pages of a part of a mapped file, beginning at a page boundary, and reads
// missing pages from the disk. An unreadable page is an error, not a fault.
func populate(part []byte) error { return unix.Madvise(part, unix.MADV_POPULATE_READ) }
