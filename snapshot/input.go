package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/etcdshift/etcdshift/internal/publish"
	"github.com/etcdshift/etcdshift/snapshot/internal/expand"
)

// input is an open file, mapped into memory.
type input struct {
	path        string
	given       *os.File      // at path
	owned       bool          // close given with the input
	info        fs.FileInfo   // of given
	compression string        // of given, "" for none
	directory   *DataDir      // given is a data directory; nil for a file
	watched     []watchedFile // the files of a folder from which file was made
	logFolder   string        // of a data directory
	file        *os.File      // given, or a scratch file with its expanded content
	data        []byte        // whole content of file, mapped read-only
	old         *input        // the file whose pages are read in place of equal pages; nil for none
	warnings    []string
	*work
}

// watchedFile is a file that must stay as it is.
type watchedFile struct {
	path string
	info fs.FileInfo
}

// work counts the reads of a file.
type work struct {
	indexed atomic.Int64 // leaves, in passes that find the latest record of each key
	scanned atomic.Int64 // leaves, in passes that read records
	hashed  atomic.Int64 // bytes of the image

	rehashed atomic.Int64 // bytes of the image, in the digest of an output
}

// inputOf returns the file at path, which is not read yet.
func inputOf(path string, cfg Config) (in input, err error) {
	f := cfg.File
	if f == nil {
		if f, err = openNow(path); err != nil { // load rejects a named pipe
			return in, &FileError{path, err}
		}
	}
	return newInput(path, f, !cfg.KeepFile), nil
}

func newInput(path string, f *os.File, owned bool) input {
	return input{path: path, given: f, file: f, owned: owned, work: new(work)}
}

// Path returns the name by which the file was opened.
func (in *input) Path() string { return in.path }

// Size returns the size in bytes of the file as given, compressed or not; of a folder, the size of
// its image.
func (in *input) Size() int64 {
	if in.isFolder() {
		return int64(len(in.data))
	}
	return in.info.Size()
}

// isFolder reports whether the snapshot was made from the files of a folder.
func (in *input) isFolder() bool { return len(in.watched) > 0 }

// Image returns the file in the form for etcdutl: expanded, the digest included.
func (in *input) Image() *io.SectionReader {
	return io.NewSectionReader(in.file, 0, int64(len(in.data)))
}

// Compression returns the format of a compressed file, "gzip", "zstd" or "zip", or "etcdbrctl" for
// delta snapshots of that program; empty for any other.
func (in *input) Compression() string { return in.compression }

// Warnings returns warnings about a usable file, such as its compression.
func (in *input) Warnings() []string { return in.warnings }

func (in *input) warn(format string, args ...any) {
	in.warnings = append(in.warnings, fmt.Sprintf(format, args...))
}

// A file without blocks on the disk, such as a file of "truncate -s 1T", takes hours to hash. A
// database has no holes, except for zeros turned into holes by a copy.
const (
	leastSparse      = 16 << 30 // bytes
	leastSparseRatio = 64
)

// Solid returns an error (ErrNotSnapshot) for a large file with almost no blocks on the disk.
func Solid(info fs.FileInfo) error {
	if on := onDisk(info); info.Size() > leastSparse && on < info.Size()/leastSparseRatio {
		return fmt.Errorf("%w: it has %d bytes, and %d of them on the disk: no database has so many holes",
			ErrNotSnapshot, info.Size(), on)
	}
	return nil
}

// load maps the file, expanded if it is compressed.
func (in *input) load(ctx context.Context, cfg Config) (err error) {
	if in.info, err = in.given.Stat(); err != nil {
		return err
	}
	size := in.info.Size()
	switch {
	case in.isBackups(cfg):
		size, err = in.loadBackups(ctx, cfg)
	case in.info.IsDir():
		size, err = in.loadDirectory(ctx, cfg)
	case !in.info.Mode().IsRegular():
		return fmt.Errorf("%w: it is not a regular file", ErrNotSnapshot)
	case size == 0:
		return expand.Foreign(nil)
	}
	if err = cmp.Or(err, Solid(in.info)); err != nil {
		return err
	}
	if in.file == in.given {
		in.compression = expand.Format(in.given)
	}
	if in.compression != "" && in.file == in.given {
		if size, err = in.expand(ctx, cfg); err != nil {
			return err
		}
	}
	if size != int64(int(size)) {
		return fmt.Errorf("%d bytes cannot be mapped on this machine", size)
	}
	if in.data, err = mapFile(in.file, int(size)); err != nil {
		return fmt.Errorf("map: %w", err)
	}
	return nil
}

// expand sets in.file to a scratch file with the expanded content, and returns its size.
func (in *input) expand(ctx context.Context, cfg Config) (size int64, err error) {
	if in.file, err = scratch(cfg); err != nil {
		in.file = in.given
		return 0, err
	}
	size, from, err := expand.File(ctx, in.given, in.info.Size(), in.compression, cfg.limit(), in.file)
	if err != nil {
		return 0, err
	}
	if from.File == "" {
		in.warn("compressed with %s: expanded to %d bytes in a temporary file", in.compression, size)
		return size, nil
	}
	in.warn("an archive (%s): took %.200q, %d bytes, into a temporary file", from.Format, from.File, size)
	if from.HasLog {
		in.warn("the write-ahead log in the archive is not read: extract the archive, and give the data directory")
	}
	return size, nil
}

// scratch makes an unnamed file.
func scratch(cfg Config) (*os.File, error) {
	return publish.Scratch(cmp.Or(cfg.ScratchDir, os.TempDir()))
}

// close unmaps and closes the file, and removes the expanded copy.
func (in *input) close() (err error) {
	if in.data != nil {
		err = unmap(in.data)
		in.data = nil
	}
	if in.file != in.given {
		err = errors.Join(err, in.file.Close())
	}
	if in.owned {
		err = errors.Join(err, in.given.Close())
	}
	return err
}

// unchanged returns ErrChanged if the file differs from the opened file.
func (in *input) unchanged() error {
	if in.info == nil {
		return nil // not read yet
	}
	for _, w := range in.watched {
		if now, err := os.Stat(w.path); err != nil || differs(now, w.info) {
			return ErrChanged
		}
	}
	now, err := in.given.Stat()
	if err == nil && !in.isFolder() && differs(now, in.info) {
		err = ErrChanged
	}
	return err
}

func differs(a, b fs.FileInfo) bool { return a.Size() != b.Size() || !a.ModTime().Equal(b.ModTime()) }

// wrap adds the path to an error, unless the error has a path. If the file differs from the opened
// file, the error is ErrChanged: other findings may be wrong for both.
func (in *input) wrap(err error) error {
	if _, named := err.(*FileError); named || err == nil ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if !errors.Is(err, ErrChanged) && errors.Is(in.unchanged(), ErrChanged) {
		err = fmt.Errorf("%w: %v", ErrChanged, err)
	}
	return &FileError{in.path, err}
}

// read runs fn under guard and adds the path to its error.
func (in *input) read(fn func() error) error { return in.wrap(in.guard(fn)) }

// addressFault is the runtime's panic for an unreadable mapped page if SetPanicOnFault is on.
type addressFault interface {
	error
	Addr() uintptr
}

// maps reports whether the file, or its old one, is mapped at an address.
func (in *input) maps(addr uintptr) bool {
	first := reflect.ValueOf(in.data).Pointer()
	return addr >= first && addr-first < uintptr(len(in.data)) || in.old != nil && in.old.maps(addr)
}

// guard runs fn and turns faults of the mapping into errors: the file changed after its check, or
// the disk cannot read a sector. Other panics continue. guard covers only the calling goroutine.
func (in *input) guard(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch r := recover().(type) {
		case nil:
		case addressFault:
			if !in.maps(r.Addr()) {
				panic(r) // of another file, possibly guarded by a caller
			}
			err = fmt.Errorf("%w: a page of it can no longer be read", ErrChanged)
		default: // decoders panic in different ways if bytes change during a read
			if !errors.Is(in.unchanged(), ErrChanged) && (in.old == nil || !errors.Is(in.old.unchanged(), ErrChanged)) {
				panic(r)
			}
			err = ErrChanged
		}
	}()
	return fn()
}

// Guard runs fn, which reads the bytes of records, and turns faults of the mapped file into errors
// that name the file and wrap ErrChanged. Guard covers only the calling goroutine.
func (in *input) Guard(fn func() error) (err error) {
	fault := in.read(func() error {
		err = fn()
		return nil
	})
	return cmp.Or(fault, err)
}

// Parallel calls work for 0 to n-1 on all processors, in about that order, until one call fails.
// work may read keys and values of records.
func (in *input) Parallel(ctx context.Context, n int, work func(i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range min(n, runtime.GOMAXPROCS(0)) {
		g.Go(func() error {
			return in.Guard(func() error { // each goroutine catches its own faults of the mapped file
				for i := next.Add(1); i <= int64(n); i = next.Add(1) {
					if err := ctx.Err(); err != nil {
						return err
					}
					if err := work(int(i) - 1); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
	return g.Wait()
}

// pass is work on its own goroutine. The first start, wait or stop begins the work.
type pass[T any] struct {
	start  func()
	done   chan struct{}
	cancel context.CancelFunc
	result T
	err    error
}

func newPass[T any](fn func(ctx context.Context) (T, error)) *pass[T] {
	ctx, cancel := context.WithCancel(context.Background())
	p := &pass[T]{done: make(chan struct{}), cancel: cancel}
	p.start = sync.OnceFunc(func() {
		go func() {
			defer close(p.done)
			p.result, p.err = fn(ctx)
		}()
	})
	return p
}

// task is a pass with no result but an error, within the guard of s. Without s there is no work.
func task(s *Snapshot, work func(ctx context.Context) error) *pass[struct{}] {
	return newPass(func(ctx context.Context) (none struct{}, err error) {
		if s != nil {
			err = s.Guard(func() error { return work(ctx) })
		}
		return none, err
	})
}

// stop cancels the work and waits for the end of its goroutine.
func (p *pass[T]) stop() {
	p.cancel()
	p.start()
	<-p.done
}

func (p *pass[T]) wait(ctx context.Context) (none T, err error) {
	p.start()
	select {
	case <-p.done:
		return p.result, p.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}
