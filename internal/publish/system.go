package publish

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// system holds the calls of the operating system. Tests replace calls to simulate filesystems
// without them, or with failures.
type system struct {
	// nameless opens a nameless file in the folder; nameNameless needs linkable. After any error
	// the caller tries a named file.
	nameless func(root *os.Root, path string, linkable bool) (*os.File, error)
	// nameNameless names a nameless file in its folder.
	nameNameless func(root *os.Root, file *os.File, name string) error
	// named creates a file with a new name.
	named func(root *os.Root, name string) (*os.File, error)
	// renameNoReplace renames within the folder, or fails with fs.ErrExist for an existing name.
	renameNoReplace func(root *os.Root, from, to string) error
	// link gives a file of the folder a second name, or fails with fs.ErrExist for an existing
	// name.
	link func(root *os.Root, from, to string) error
	// sync calls fsync(2) on files and folders.
	sync func(file *os.File) error
}

// open creates an empty file of mode 0600 in the folder: nameless if the system supports it (temp
// is ""), otherwise with a temporary name derived from base. path names a nameless file in errors.
func open(root *os.Root, base, path string, sys system, linkable bool) (_ *os.File, temp string, err error) {
	file, err := sys.nameless(root, path, linkable)
	if err != nil {
		temp = tempName(base)
		if file, err = sys.named(root, temp); err != nil {
			return nil, "", reason(err)
		}
	}
	// The umask may have removed mode bits, and a default ACL may have added some.
	if err := file.Chmod(mode); err != nil {
		return nil, "", errors.Join(err, drop(root, temp, file))
	}
	return file, temp, nil
}

// openNamed uses O_EXCL and 122 random bits: the name is new, and no planted link is followed.
func openNamed(root *os.Root, name string) (*os.File, error) {
	return root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
}

// reason returns err without the random name.
func reason(err error) error {
	if p, ok := err.(*fs.PathError); ok {
		return p.Err
	}
	return err
}

// tempName returns ".<base>.etcdshift-<random>", with base cut to stay below 255 bytes.
func tempName(base string) string {
	return "." + base[:min(len(base), 200)] + ".etcdshift-" + rand.Text()
}

// syncFolder syncs the names in the folder. It accepts filesystems without fsync for folders (some
// FUSE filesystems, CIFS), which return EINVAL or "not supported".
func syncFolder(root *os.Root, sys system) error {
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	err = sys.sync(dir)
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}
