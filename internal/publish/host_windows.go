package publish

import (
	"errors"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/windows"
)

// host returns the calls of Windows, which has no nameless files but deletes a scratch file on
// close.
func host() system {
	return system{
		nameless: func(root *os.Root, _ string, linkable bool) (*os.File, error) {
			if linkable {
				return nil, errors.ErrUnsupported
			}
			return createPrivate(root, tempName("scratch"),
				windows.FILE_ATTRIBUTE_TEMPORARY|windows.FILE_FLAG_DELETE_ON_CLOSE)
		},
		nameNameless: func(*os.Root, *os.File, string) error { return errors.ErrUnsupported },
		named: func(root *os.Root, name string) (*os.File, error) {
			return createPrivate(root, name, windows.FILE_ATTRIBUTE_NORMAL)
		},
		renameNoReplace: renameNoReplace,
		link:            (*os.Root).Link,
		sync:            syncFile,
	}
}

// createPrivate creates a file that only this user may open, like mode 0600. File systems without
// owners (FAT, exFAT) ignore the restriction. Other users may rename and remove the file while it
// is open.
func createPrivate(root *os.Root, name string, attributes uint32) (*os.File, error) {
	path, err := pathIn(root, name)
	if err != nil {
		return nil, err
	}
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return nil, os.NewSyscallError("GetTokenUser", err)
	}
	only, err := windows.SecurityDescriptorFromString("D:P(A;;FA;;;" + user.User.Sid.String() + ")")
	if err != nil {
		return nil, os.NewSyscallError("SecurityDescriptorFromString", err)
	}
	security := &windows.SecurityAttributes{SecurityDescriptor: only}
	security.Length = uint32(unsafe.Sizeof(*security))
	h, err := windows.CreateFile(path, windows.GENERIC_READ|windows.GENERIC_WRITE|windows.DELETE,
		windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE, security,
		windows.CREATE_NEW, attributes, 0)
	if err != nil {
		return nil, &os.PathError{Op: "create", Path: name, Err: err}
	}
	return os.NewFile(uintptr(h), filepath.Join(root.Name(), name)), nil
}

// renameNoReplace returns after the new name is on disk.
func renameNoReplace(root *os.Root, from, to string) error {
	old, err := pathIn(root, from)
	if err != nil {
		return err
	}
	now, err := pathIn(root, to)
	if err != nil {
		return err
	}
	return windows.MoveFileEx(old, now, windows.MOVEFILE_WRITE_THROUGH)
}

// syncFile skips folders, which Windows cannot sync; renameNoReplace syncs names.
func syncFile(f *os.File) error {
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		return errors.ErrUnsupported
	}
	return errors.Join(err, f.Sync())
}

// pathIn returns the full path of a name in the folder, independent of the working directory.
func pathIn(root *os.Root, name string) (*uint16, error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	path := make([]uint16, windows.MAX_LONG_PATH)
	n, err := windows.GetFinalPathNameByHandle(windows.Handle(dir.Fd()), &path[0], uint32(len(path)), 0)
	if err != nil {
		return nil, os.NewSyscallError("GetFinalPathNameByHandle", err)
	}
	return windows.UTF16PtrFromString(windows.UTF16ToString(path[:n]) + `\` + name)
}
