//go:build unix

package member

import (
	"os"

	"golang.org/x/sys/unix"
)

// inUse reports whether another process has the database open: bbolt holds an exclusive lock.
func inUse(f *os.File) bool {
	err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if err == nil {
		_ = unix.Flock(int(f.Fd()), unix.LOCK_UN)
	}
	return err == unix.EWOULDBLOCK
}
