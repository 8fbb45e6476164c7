package publish

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// system is what publishing asks of the operating system. It is a value and not a set of functions so that a test can
// be a filesystem that lacks one of them, or fails in it.
type system struct {
	// nameless opens a file without a name in the folder, for a later nameNameless only when linkable. Any error makes
	// the caller try a named file: where the obstacle is a real one, that meets it too and reports it.
	nameless func(root *os.Root, path string, linkable bool) (*os.File, error)
	// nameNameless gives a file of nameless a name in the folder it was made in.
	nameNameless func(root *os.Root, file *os.File, name string) error
	// renameNoReplace renames within the folder, or fails with fs.ErrExist where the new name is taken.
	renameNoReplace func(root *os.Root, from, to string) error
	// link gives a file of the folder a second name, or fails with fs.ErrExist where it is taken.
	link func(root *os.Root, from, to string) error
	// sync is fsync(2), of files and of folders.
	sync func(file *os.File) error
}

// open makes an empty file of mode 0600 in the folder: without a name where the system can (temp is then ""), else with
// a temporary one built on base. path is what errors of the nameless file call it.
func open(root *os.Root, base, path string, sys system, linkable bool) (_ *os.File, temp string, err error) {
	file, err := sys.nameless(root, path, linkable)
	if err != nil {
		temp = tempName(base)
		// O_EXCL and 122 random bits: the name is ours, and no link that somebody planted is followed.
		if file, err = root.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode); err != nil {
			return nil, "", reason(err)
		}
	}
	// The umask may have taken bits away, a default ACL of the folder may have added some.
	if err := file.Chmod(mode); err != nil {
		file.Close()
		if temp != "" {
			root.Remove(temp)
		}
		return nil, "", err
	}
	return file, temp, nil
}

// reason is err without the random name, which would make each error another.
func reason(err error) error {
	if p, ok := err.(*fs.PathError); ok {
		return p.Err
	}
	return err
}

// tempName is ".<base>.etcdshift-<random>", with so much of base that no filesystem finds it too long (255 bytes).
func tempName(base string) string {
	const room = 200
	if len(base) > room {
		base = base[:room]
	}
	return "." + base + ".etcdshift-" + rand.Text()
}

// syncFolder makes names in the folder last. Filesystems that have no fsync for folders (some of FUSE, CIFS) say EINVAL
// or that it is not supported: there a name is as safe as it gets without.
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

// linkIn is link(2) within the folder.
func linkIn(root *os.Root, from, to string) error { return root.Link(from, to) }

// fsync is fsync(2).
func fsync(file *os.File) error { return file.Sync() }
