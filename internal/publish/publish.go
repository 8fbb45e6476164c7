package publish

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// mode is that of every file made here: snapshots and reports hold what the cluster holds, Secrets included.
const mode fs.FileMode = 0o600

// File is a file under construction. It has no name, or a temporary one, until Publish gives it its own.
// It is not safe for concurrent use, except for what os.File allows on File().
type File struct {
	sys  system
	file *os.File
	root *os.Root // the folder, held open: names below are relative to it
	path string   // as the caller gave it, for errors
	base string   // the name to publish, in root
	temp string   // the temporary name in root, "" for a nameless file
	done bool     // published or discarded
}

// Create starts the file that Publish will call path, in path's folder, empty and with mode 0600. The caller must end
// with Publish or Discard. An existing path, be it a symbolic link that leads nowhere, is refused at once with an error
// that wraps fs.ErrExist.
func Create(path string) (*File, error) {
	return create(path, host())
}

func create(path string, sys system) (_ *File, err error) {
	dir, base := filepath.Split(path)
	if base == "" {
		return nil, &fs.PathError{Op: "create", Path: path, Err: errors.New("not the name of a file")}
	}
	if dir == "" {
		dir = "."
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("create %q: %w", path, err)
	}
	f := &File{sys: sys, root: root, path: path, base: base}
	defer func() {
		if err != nil {
			f.Discard()
		}
	}()
	switch _, err := root.Lstat(base); {
	case err == nil:
		return nil, &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("create %q: %w", path, err)
	}
	f.file, f.temp, err = open(root, base, path, sys, true)
	if err != nil {
		return nil, fmt.Errorf("create %q: %w", path, err)
	}
	return f, nil
}

// File returns the open file, for reading and writing at will. It is closed by Publish and Discard; the caller does
// not close it. Its Name may be a name that does not exist.
func (f *File) File() *os.File { return f.file }

// Publish syncs the data, gives the file its name, syncs the folder and closes the file. When another file has taken
// the name since Create, the error wraps fs.ErrExist and that file is untouched. After any error nothing is left
// behind, and the file can't be published any more.
func (f *File) Publish() error {
	if f.done {
		return &fs.PathError{Op: "publish", Path: f.path, Err: fs.ErrClosed}
	}
	if err := f.publish(); err != nil {
		f.Discard() // what went wrong first is what the caller must hear
		return fmt.Errorf("publish %q: %w", f.path, err)
	}
	f.done = true
	f.root.Close()
	return nil
}

func (f *File) publish() error {
	if err := f.sys.sync(f.file); err != nil {
		return err
	}
	made, err := f.file.Stat()
	if err != nil {
		return err
	}
	if err := f.name(); err != nil {
		return err
	}
	if err := f.settle(); err != nil {
		f.withdraw(made)
		return err
	}
	return nil
}

// name gives the file its name, at once and never over another.
func (f *File) name() error {
	if f.temp == "" {
		return f.sys.nameNameless(f.root, f.file, f.base)
	}
	// A rename first: it leaves no moment with two names. Not every filesystem can promise not to replace (NFS can't),
	// and those link; those that can't link (vfat) rename.
	err := f.sys.renameNoReplace(f.root, f.temp, f.base)
	if err == nil {
		f.temp = ""
		return nil
	}
	if errors.Is(err, fs.ErrExist) {
		return err
	}
	if linkErr := f.sys.link(f.root, f.temp, f.base); linkErr != nil {
		if errors.Is(linkErr, fs.ErrExist) {
			return linkErr
		}
		return errors.Join(err, linkErr)
	}
	return nil
}

// settle makes the name last: the temporary one is gone, the data closed and the folder on disk.
func (f *File) settle() error {
	if f.temp != "" {
		if err := f.root.Remove(f.temp); err != nil {
			return err
		}
		f.temp = ""
	}
	if err := f.file.Close(); err != nil {
		return err
	}
	return syncFolder(f.root, f.sys)
}

// withdraw takes the name back from a file that could not be settled, if it is still ours.
func (f *File) withdraw(made fs.FileInfo) {
	if now, err := f.root.Lstat(f.base); err == nil && os.SameFile(made, now) {
		f.root.Remove(f.base)
	}
}

// Discard closes the file and removes what was made. It does nothing after Publish or a first Discard, so it can be
// deferred right after Create.
func (f *File) Discard() error {
	if f.done {
		return nil
	}
	f.done = true
	var errs []error
	if f.file != nil {
		if err := f.file.Close(); err != nil && !errors.Is(err, fs.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if f.temp != "" {
		if err := f.root.Remove(f.temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	f.root.Close() // a folder open for reading: nothing to lose
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("discard %q: %w", f.path, err)
	}
	return nil
}

// Scratch opens an empty file with mode 0600 in dir that has no name and so is gone when it is closed, however the
// process ends. Spooled values belong here and not in a shared temporary folder.
func Scratch(dir string) (*os.File, error) {
	return scratch(dir, host())
}

func scratch(dir string, sys system) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("scratch file in %q: %w", dir, err)
	}
	defer root.Close()
	file, temp, err := open(root, "scratch", filepath.Join(dir, "scratch"), sys, false)
	if err != nil {
		return nil, fmt.Errorf("scratch file in %q: %w", dir, err)
	}
	if temp == "" {
		return file, nil
	}
	if err := root.Remove(temp); err != nil {
		file.Close()
		return nil, fmt.Errorf("scratch file in %q: %w", dir, err)
	}
	return file, nil
}

// WriteFile publishes data as path, with all that Create and Publish promise.
func WriteFile(path string, data []byte) error {
	return writeFile(path, data, host())
}

func writeFile(path string, data []byte, sys system) error {
	f, err := create(path, sys)
	if err != nil {
		return err
	}
	defer f.Discard()
	if _, err := f.file.Write(data); err != nil {
		return fmt.Errorf("write %q: %w", path, err)
	}
	return f.Publish()
}
