//go:build unix

package snapshot

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// mapFile maps the first size bytes of a file, read-only.
func mapFile(f *os.File, size int) ([]byte, error) {
	return unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
}

func unmap(data []byte) error { return unix.Munmap(data) }

// onDisk returns the number of bytes of a file with blocks on the disk.
func onDisk(info fs.FileInfo) int64 {
	stat, is := info.Sys().(*syscall.Stat_t)
	if !is {
		return info.Size()
	}
	return stat.Blocks * 512
}
