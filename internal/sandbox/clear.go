package sandbox

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"regexp"
)

var (
	errInUse = errors.New("the folder is in use")
	errGone  = errors.New("the folder is gone")
)

// Clear removes the folders that killed runs of this user left in dir, "" for the system's
// temporary one, and returns their paths. A folder of a running sandbox stays. An error does not
// keep Clear from the other folders.
func Clear(dir string) (removed []string, err error) {
	dir, err = filepath.Abs(cmp.Or(dir, os.TempDir()))
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	named := regexp.MustCompile(`^` + prefix + `[0-9]+$`)
	var failed []error
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		if !named.MatchString(entry.Name()) || !private(entry) || empty(path) {
			continue
		}
		switch err := remove(path); {
		case err == nil:
			removed = append(removed, path)
		case !errors.Is(err, errInUse) && !errors.Is(err, errGone):
			failed = append(failed, err)
		}
	}
	return removed, errors.Join(failed...)
}

// private is whether it is a folder of this user that no other user may enter.
func private(entry os.DirEntry) bool {
	info, err := entry.Info()
	return err == nil && info.IsDir() && info.Mode().Perm() == 0o700 && ownedByUs(info)
}

// empty is whether a folder is empty, as one that a run beside us has just made.
func empty(path string) bool {
	entries, err := os.ReadDir(path)
	return err == nil && len(entries) == 0
}

// remove removes a folder that no sandbox uses.
func remove(path string) error {
	lock, err := lockFolder(path)
	if err != nil {
		return err
	}
	defer lock.Close()
	return os.RemoveAll(path)
}

// lockFolder opens and locks a folder: errInUse if it is locked, errGone if it has been removed.
func lockFolder(path string) (*os.File, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, errGone
	} else if err != nil {
		return nil, err
	}
	if err = tryLock(f); err == nil {
		err = check(f, path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// check is whether the locked folder still has its name: another process may have removed it just
// before the lock.
func check(f *os.File, path string) error {
	locked, err := f.Stat()
	if err != nil {
		return err
	}
	named, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && !os.SameFile(locked, named) {
		return errGone
	}
	return err
}
