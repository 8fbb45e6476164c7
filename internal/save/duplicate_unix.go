//go:build unix

package save

import (
	"os"

	"golang.org/x/sys/unix"
)

// duplicate opens an open file, which may have no name, once more: either is closed alone.
func duplicate(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("dup", err)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}
