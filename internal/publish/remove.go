package publish

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrReplaced is the error for a file that stays because it is not the one to remove.
var ErrReplaced = errors.New("it was changed or replaced, and is not removed")

// Remove removes the file, the socket or the empty folder that made describes, if path is still its
// name. Another one of that name stays, and so does a file that was changed: the error wraps
// ErrReplaced. A name that is gone is no error.
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

// removeIn is Remove for a name in a folder. A file system may give the number of a removed file to
// the next one, so the time and the size count too.
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

// drop closes a file and removes its name, "" for none. One that is closed has no name any more.
func drop(root *os.Root, name string, file *os.File) error {
	made, err := file.Stat() // before Close: Windows removes no open file
	if errors.Is(err, fs.ErrClosed) {
		return nil
	}
	err = errors.Join(err, file.Close())
	if name == "" || made == nil {
		return err
	}
	return errors.Join(err, removeIn(root, name, made))
}
