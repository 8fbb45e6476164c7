package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"

	"github.com/etcdshift/etcdshift/finding"
)

// prefix begins the name of each folder; os.MkdirTemp adds digits.
const prefix = "etcdshift-rehearse-"

// maxPath limits the folder's path: a unix socket address has at most 103 bytes on some systems,
// including a slash and the socket name of up to 14 bytes.
const maxPath = 103 - 15

var (
	// ErrNoSpace reports a filesystem with less space than the sandbox needs.
	ErrNoSpace = finding.WithHint(errors.New("not enough space"),
		"name a folder of a larger file system with --dir")
	// ErrLongPath reports a folder whose path is too long for unix sockets.
	ErrLongPath = finding.WithHint(errors.New("the path is too long for unix sockets"),
		"name a folder with a short path, such as /var/tmp, with --dir")
	// ErrClosed reports the start of a process in a closed sandbox.
	ErrClosed = errors.New("the sandbox is closed")
)

// Sandbox is a locked folder with its processes.
type Sandbox struct {
	path string
	lock *os.File // the folder; processes inherit the file and with it the lock
	most uint64   // memory limit of a process, in bytes

	mu        sync.Mutex
	closed    bool
	processes []*Process
}

// New creates a folder with space for that many bytes in dir, or in the system's temporary folder
// for "". Without enough free space it writes nothing (ErrNoSpace).
func New(dir string, bytes int64) (*Sandbox, error) {
	dir, err := filepath.Abs(cmp.Or(dir, os.TempDir()))
	if err != nil {
		return nil, err
	}
	if path := filepath.Join(dir, prefix+"0123456789"); len(path) > maxPath {
		return nil, fmt.Errorf("%s: %w: %d bytes, at most %d", path, ErrLongPath, len(path), maxPath)
	}
	free, err := freeBytes(dir)
	if err != nil {
		return nil, err
	}
	if free < bytes {
		const mib = 1 << 20
		return nil, fmt.Errorf("%s: %w: %d MiB are needed, %d MiB are free", dir, ErrNoSpace, bytes/mib, free/mib)
	}
	path, err := os.MkdirTemp(dir, prefix)
	if err != nil {
		return nil, err
	}
	lock, err := lockFolder(path)
	if err == nil {
		// The file marks the folder as locked: [Clear] skips an empty folder, because its creator
		// may not have locked it yet.
		err = os.WriteFile(filepath.Join(path, "pid"), fmt.Appendln(nil, os.Getpid()), 0o600)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(path))
	}
	return &Sandbox{path: path, lock: lock, most: memory(bytes)}, nil
}

// memory returns the memory limit of a process for data of a size: much more than any server needs.
// A process that exceeds the limit, for example for an object with endless defaults, dies.
func memory(bytes int64) uint64 { return 4<<30 + 4*uint64(bytes) }

// Path returns the absolute path of the folder, the working directory of the processes.
func (s *Sandbox) Path() string { return s.path }

// Close kills all processes, the last started first, and removes the folder. It may be called more
// than once, and during starts of processes.
func (s *Sandbox) Close() error {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	if closed {
		return nil
	}
	for _, p := range slices.Backward(s.processes) {
		p.kill()
	}
	return errors.Join(os.RemoveAll(s.path), s.lock.Close())
}

// Start runs a part (see Main) of this program under a name, with config as JSON. The context
// covers only the start; Stop and Close end the process.
func (s *Sandbox) Start(ctx context.Context, name, part string, config any) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("%s: %w", name, ErrClosed)
	}
	p, err := start(s, name, part, config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	s.processes = append(s.processes, p)
	return p, nil
}

// started returns the number of processes started so far.
func (s *Sandbox) started() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.processes)
}

// Command runs an external program under a name, like Start.
func (s *Sandbox) Command(ctx context.Context, name, binary string, args ...string) (*Process, error) {
	binary, err := filepath.Abs(binary) // the child has another working directory
	if err != nil {
		return nil, err
	}
	return s.Start(ctx, name, runPart, command{Path: binary, Args: args})
}

var (
	errInUse = errors.New("the folder is in use")
	errGone  = errors.New("the folder is gone")
)

// Clear removes the folders left by killed runs of this user in dir, or in the system's temporary
// folder for "", and returns their paths. Folders of running sandboxes stay. After an error Clear
// continues with the other folders.
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

// private reports whether entry is a folder of this user that no other user can enter.
func private(entry os.DirEntry) bool {
	info, err := entry.Info()
	return err == nil && info.IsDir() && info.Mode().Perm() == 0o700 && ownedByUs(info)
}

// empty reports whether a folder is empty, possibly just created by a concurrent run.
func empty(path string) bool {
	entries, err := os.ReadDir(path)
	return err == nil && len(entries) == 0
}

// remove removes an unused folder.
func remove(path string) error {
	lock, err := lockFolder(path)
	if err != nil {
		return err
	}
	defer lock.Close()
	return os.RemoveAll(path)
}

// lockFolder opens and locks a folder. It returns errInUse for a locked folder, and errGone for a
// removed folder.
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

// check checks whether the locked folder still has its name: another process may have removed the
// folder just before the lock.
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
