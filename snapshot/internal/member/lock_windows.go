package member

import (
	"math"
	"os"

	"golang.org/x/sys/windows"
)

// inUse reports whether another process has the database open. Bbolt locks one byte far behind the
// end (bolt_windows.go, flock), so that all bytes can still be read.
func inUse(f *os.File) bool {
	at := &windows.Overlapped{Offset: math.MaxUint32, OffsetHigh: math.MaxUint32}
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, at)
	if err == nil {
		_ = windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, at)
	}
	return err == windows.ERROR_LOCK_VIOLATION
}
