package publish

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// host returns the calls of Linux.
func host() system {
	return system{
		nameless:        openNameless,
		nameNameless:    nameNameless,
		named:           openNamed,
		renameNoReplace: renameNoReplace,
		link:            (*os.Root).Link,
		sync:            (*os.File).Sync,
	}
}

// openNameless opens a file with O_TMPFILE (open(2)); O_EXCL excludes a later name.
func openNameless(root *os.Root, path string, linkable bool) (*os.File, error) {
	flags := unix.O_TMPFILE | unix.O_RDWR | unix.O_CLOEXEC
	if !linkable {
		flags |= unix.O_EXCL
	}
	fd := -1
	err := inFolder(root, func(dir int) (err error) {
		fd, err = unix.Openat(dir, ".", flags, uint32(mode.Perm()))
		return err
	})
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	file := os.NewFile(uintptr(fd), path)
	if linkable {
		// The name will be linked through /proc: check access now, not after hours of writing.
		if _, err := os.Stat(procPath(fd)); err != nil {
			file.Close()
			return nil, err
		}
	}
	return file, nil
}

// nameNameless links through /proc, as described in open(2): AT_EMPTY_PATH needs
// CAP_DAC_READ_SEARCH.
func nameNameless(root *os.Root, file *os.File, name string) error {
	return inFolder(root, func(dir int) error {
		conn, err := file.SyscallConn()
		if err != nil {
			return err
		}
		var linkErr error
		err = conn.Control(func(fd uintptr) {
			linkErr = unix.Linkat(unix.AT_FDCWD, procPath(int(fd)), dir, name, unix.AT_SYMLINK_FOLLOW)
		})
		if err != nil {
			return err
		}
		return linkErr
	})
}

// renameNoReplace calls renameat2(2) with RENAME_NOREPLACE.
func renameNoReplace(root *os.Root, from, to string) error {
	return inFolder(root, func(dir int) error {
		return unix.Renameat2(dir, from, dir, to, unix.RENAME_NOREPLACE)
	})
}

// inFolder calls do with the folder's descriptor, and retries after a signal.
func inFolder(root *os.Root, do func(dir int) error) error {
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	for {
		if err := do(int(dir.Fd())); err != unix.EINTR {
			return err
		}
	}
}

func procPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }
