package publish

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrReplaced is the error for a file that was not removed because it is not the expected file.
var ErrReplaced = errors.New("it was changed or replaced, and is not removed")

// Remove removes the file, the socket or the empty folder described by made, if path still names
// it. A different or changed file stays, and the error wraps ErrReplaced. A missing name is no
// error.
func Remove(path string, made fs.FileInfo) error {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err == nil {
		defer root.Close()
		err = removeIn(root, filepath.Base(path), made)
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return &fs.PathError{Op: "remove", Path: path, Err: reason(err)}
}

// removeIn is Remove for a name in a folder. It compares time and size too, because a file system
// may reuse the inode number of a removed file.
func removeIn(root *os.Root, name string, made fs.FileInfo) error {
	now, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	same := os.SameFile(made, now) && made.Mode().Type() == now.Mode().Type()
	if same && !made.IsDir() {
		same = made.Size() == now.Size() && made.ModTime().Equal(now.ModTime())
	}
	if !same {
		return ErrReplaced
	}
	return root.Remove(name)
}

// forget removes the name of an open file.
func forget(root *os.Root, name string, file *os.File) error {
	made, err := file.Stat()
	if err != nil {
		return err
	}
	return removeIn(root, name, made)
}

// drop closes a file and removes its name, if any. A closed file no longer has a name.
func drop(root *os.Root, name string, file *os.File) error {
	made, err := file.Stat() // before Close: Windows does not remove open files
	if errors.Is(err, fs.ErrClosed) {
		return nil
	}
	err = errors.Join(err, file.Close())
	if name == "" || made == nil {
		return err
	}
	return errors.Join(err, removeIn(root, name, made))
}
