// Package publish writes a file that gets its name only when complete.
//
// Invariants, each with a test named after it:
//
//   - An existing name is never overwritten, even if created in the meantime: a file, a folder, or
//     a dangling symbolic link. The caller sees fs.ErrExist. Only CreateOver replaces a file,
//     atomically: the name always has the old or the new content.
//   - A published file is complete: the data is on disk before the name, and the name before
//     Publish returns.
//   - A published file has mode 0600, regardless of the umask or a default ACL of the folder.
//   - A failed publish, and a killed process, leave nothing. Exception: a kill on a filesystem
//     without nameless files (O_TMPFILE), or during CreateOver, leaves ".<name>.etcdshift-*",
//     mode 0600.
//   - A file of CreateElsewhere never has a local name: closing the file removes it.
//   - The folder is opened once, in Create: later changes of the working directory or the folder's
//     name have no effect.
package publish

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/etcdshift/etcdshift/finding"
)

// mode is the mode of every file: snapshots and reports may hold Secrets.
const mode fs.FileMode = 0o600

// File is a file under construction. It has no name, or a temporary one, until Publish. It is not
// safe for concurrent use, except for File().
type File struct {
	sys  system
	file *os.File
	root *os.Root    // the open folder; the names below are relative to it
	path string      // the caller's path, for errors
	base string      // the name to publish, in root
	temp string      // the temporary name in root, "" for a nameless file
	over bool        // replace an existing file
	done bool        // published or discarded
	made fs.FileInfo // of the published file

	upload func(file *os.File) error // uploads the file; nil for a file in a folder
}

// Create starts an empty file with mode 0600 in the folder of path; Publish names the file path.
// The caller must end with Publish or Discard. An existing path, even a dangling symbolic link, is
// refused with an error that wraps fs.ErrExist.
func Create(path string) (*File, error) { return create(path, host()) }

// CreateOver is Create for a path where a regular file may exist: Publish replaces the file.
func CreateOver(path string) (*File, error) { return begin(path, true, host()) }

func create(path string, sys system) (*File, error) { return begin(path, false, sys) }

func begin(path string, over bool, sys system) (_ *File, err error) {
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
	f := &File{sys: sys, root: root, path: path, base: base, over: over}
	defer func() {
		if err != nil {
			f.Discard()
		}
	}()
	switch old, err := root.Lstat(base); {
	case err == nil && !(over && old.Mode().IsRegular()):
		return nil, &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("create %q: %w", path, err)
	}
	if over { // a nameless file cannot take an existing name
		sys.nameless = func(*os.Root, string, bool) (*os.File, error) { return nil, errors.ErrUnsupported }
	}
	f.file, f.temp, err = open(root, base, path, sys, true)
	if err != nil {
		return nil, fmt.Errorf("create %q: %w", path, err)
	}
	return f, nil
}

// CreateElsewhere starts a nameless file in the folder of temporary files. Publish calls upload to
// store the content under path outside the file system: upload must set the name only for a
// complete file, and never replace an existing name.
func CreateElsewhere(path string, upload func(file *os.File) error) (*File, error) {
	file, err := Scratch(os.TempDir())
	if err != nil {
		return nil, fmt.Errorf("create %q: %w", path, err)
	}
	return &File{sys: host(), file: file, path: path, upload: upload}, nil
}

// File returns the open file, closed by Publish and Discard. Its Name may not exist.
func (f *File) File() *os.File { return f.file }

// Publish syncs the data, names the file, syncs the folder and closes the file. If the name was
// taken after Create, the error wraps fs.ErrExist and the other file is untouched. After any error
// nothing is left, and the file cannot be published any more.
func (f *File) Publish() error {
	if f.done {
		return &fs.PathError{Op: "publish", Path: f.path, Err: fs.ErrClosed}
	}
	if f.upload != nil {
		err := f.upload(f.file)
		return errors.Join(err, f.Discard())
	}
	if err := f.publish(); err != nil {
		f.Discard() // the first error is reported
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
	f.made = made
	if err := f.name(); err != nil {
		return err
	}
	if err = f.finish(); err != nil {
		_ = removeIn(f.root, f.base, f.made) // take the name back
	}
	return err
}

// name names the file, and replaces an existing file only for CreateOver.
func (f *File) name() error {
	if f.over {
		err := f.root.Rename(f.temp, f.base)
		if err == nil {
			f.temp = ""
		}
		return err
	}
	if f.temp == "" {
		return f.sys.nameNameless(f.root, f.file, f.base)
	}
	// Prefer a rename, which never has two names at once. Filesystems whose rename may replace
	// (NFS) use link; filesystems without links (vfat) use rename.
	err := f.sys.renameNoReplace(f.root, f.temp, f.base)
	if err == nil {
		f.temp = ""
	}
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	linkErr := f.sys.link(f.root, f.temp, f.base)
	if linkErr == nil || errors.Is(linkErr, fs.ErrExist) {
		return linkErr
	}
	return errors.Join(err, linkErr)
}

// finish removes the temporary name, closes the file and syncs the folder.
func (f *File) finish() error {
	if f.temp != "" {
		if err := removeIn(f.root, f.temp, f.made); err != nil {
			return err
		}
		f.temp = ""
	}
	if err := f.file.Close(); err != nil {
		return err
	}
	return syncFolder(f.root, f.sys)
}

// Discard closes and removes the file. After Publish or a first Discard it does nothing, so it can
// be deferred right after Create.
func (f *File) Discard() error {
	if f.done {
		return nil
	}
	f.done = true
	var err error
	if f.file != nil {
		err = drop(f.root, f.temp, f.file)
	}
	if f.root != nil {
		f.root.Close() // opened for reading: nothing can be lost
	}
	if err != nil {
		return fmt.Errorf("discard %q: %w", f.path, err)
	}
	return nil
}

// Remove removes a published file like the function Remove.
func (f *File) Remove() error { return Remove(f.path, f.made) }

// ErrScratch is the error for a failure to create a scratch file.
var ErrScratch = finding.WithHint(errors.New("scratch file"),
	"scratch files are made in the folder of the output, else in TMPDIR or /tmp: it must exist, let you write, "+
		"and have room")

// Scratch opens a nameless empty file with mode 0600 in dir, which disappears on close or when the
// process ends. Spooled values belong here, not in a shared temporary folder.
func Scratch(dir string) (*os.File, error) { return scratch(dir, host()) }

func scratch(dir string, sys system) (file *os.File, err error) {
	root, err := os.OpenRoot(dir)
	if err == nil {
		defer root.Close()
		var temp string
		if file, temp, err = open(root, "scratch", filepath.Join(dir, "scratch"), sys, false); err == nil &&
			temp != "" {
			if err = forget(root, temp, file); err != nil {
				file.Close()
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w in %q: %w", ErrScratch, dir, err)
	}
	return file, nil
}
