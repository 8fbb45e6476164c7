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

// maxPath bounds the folder's path: the address of a unix socket has at most 103 bytes on some
// systems, and a slash and the name of a socket, up to 14 bytes, follow.
const maxPath = 103 - 15

var (
	// ErrNoSpace is for a filesystem that has less room than the sandbox needs.
	ErrNoSpace = finding.WithHint(errors.New("not enough space"),
		"name a folder of a larger file system with --dir")
	// ErrLongPath is for a folder in which unix sockets would have too long names.
	ErrLongPath = finding.WithHint(errors.New("the path is too long for unix sockets"),
		"name a folder with a short path, such as /var/tmp, with --dir")
	// ErrClosed is for a process that is started in a closed sandbox.
	ErrClosed = errors.New("the sandbox is closed")
)

// Sandbox is a locked folder and the processes in it.
type Sandbox struct {
	path string
	lock *os.File // the folder; processes inherit it, and with it the lock
	most uint64   // bytes of memory that a process may take

	mu        sync.Mutex
	closed    bool
	processes []*Process
}

// New makes a folder in dir, "" for the system's temporary one, that is to hold that many bytes.
// Nothing is written when they are not free (ErrNoSpace).
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
		// Clear takes an empty folder for one that has no lock yet.
		err = os.WriteFile(filepath.Join(path, "pid"), fmt.Appendln(nil, os.Getpid()), 0o600)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(path))
	}
	return &Sandbox{path: path, lock: lock, most: memory(bytes)}, nil
}

// memory is what a process may take for data of a size: much more than any server needs. One that
// takes more, as for an object with defaults without end, dies.
func memory(bytes int64) uint64 { return 4<<30 + 4*uint64(bytes) }

// Path is the folder, an absolute path. Processes have it as working directory.
func (s *Sandbox) Path() string { return s.path }

// Close kills all processes, the last started first, and removes the folder. It may be called more
// than once, and while processes are being started.
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

// Start runs a part (see Main) of this program under a name, with config as JSON. The context is
// for the start alone; Stop and Close end the process.
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

// Command runs a program of its own under a name, as Start does.
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
