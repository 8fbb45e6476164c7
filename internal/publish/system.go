package publish

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// system holds the calls of the operating system. A test replaces them to be a filesystem that
// lacks one, or fails in it.
type system struct {
	// nameless opens a file without a name in the folder, for a later nameNameless only if
	// linkable. After any error the caller tries a named file.
	nameless func(root *os.Root, path string, linkable bool) (*os.File, error)
	// nameNameless names a file of nameless, in its folder.
	nameNameless func(root *os.Root, file *os.File, name string) error
	// named makes a file with a name that no other file of the folder has.
	named func(root *os.Root, name string) (*os.File, error)
	// renameNoReplace renames within the folder, or fails with fs.ErrExist for a taken name.
	renameNoReplace func(root *os.Root, from, to string) error
	// link gives a file of the folder a second name, or fails with fs.ErrExist if it is taken.
	link func(root *os.Root, from, to string) error
	// sync is fsync(2), of files and of folders.
	sync func(file *os.File) error
}

// open makes an empty file of mode 0600 in the folder: without a name if the system can (temp is
// ""), otherwise with a temporary one built on base. path names the nameless file in errors.
func open(root *os.Root, base, path string, sys system, linkable bool) (_ *os.File, temp string, err error) {
	file, err := sys.nameless(root, path, linkable)
	if err != nil {
		temp = tempName(base)
		if file, err = sys.named(root, temp); err != nil {
			return nil, "", reason(err)
		}
	}
	// The umask may have removed bits, a default ACL of the folder may have added some.
	if err := file.Chmod(mode); err != nil {
		return nil, "", errors.Join(err, drop(root, temp, file))
	}
	return file, temp, nil
}

// openNamed uses O_EXCL and 122 random bits: the name is ours, and no planted link is followed.
func openNamed(root *os.Root, name string) (*os.File, error) {
	return root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
}

// reason is err without the random name.
func reason(err error) error {
	if p, ok := err.(*fs.PathError); ok {
		return p.Err
	}
	return err
}

// tempName is ".<base>.etcdshift-<random>", with base cut to stay below 255 bytes.
func tempName(base string) string {
	return "." + base[:min(len(base), 200)] + ".etcdshift-" + rand.Text()
}

// syncFolder syncs the names in the folder. It accepts filesystems without fsync for folders (some
// of FUSE, CIFS), which answer EINVAL or not supported.
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
