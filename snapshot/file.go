package snapshot

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Config says how to open a file. Its zero value is the careful choice.
type Config struct {
	// SkipDigest leaves the SHA-256 of the image unchecked. Structure is checked all the same.
	SkipDigest bool
	// MaxExpand is how many bytes a compressed file may expand to; 0: DefaultMaxExpand.
	MaxExpand int64
	// ScratchDir is the folder in which a compressed file is expanded, into a file without a name; "": os.TempDir.
	ScratchDir string
}

// Snapshot is an open file. Its methods may be called from several goroutines at once; none changes the file.
type Snapshot struct {
	path   string
	given  *os.File    // at path
	info   fs.FileInfo // of given
	file   *os.File    // given itself, or a scratch file with what it was compressed from
	data   []byte      // the whole of file, mapped read-only
	image  []byte      // data up to the high-water mark
	meta   meta
	raw    bool // a member/snap/db: no digest, possibly larger than its image
	shared bool // given belongs to the caller

	compression string // of given, "" for none
	warnings    []string
	buckets     []bucket
	reachable   uint64 // pages in use, the two metas and the free list not counted
	freeList    error  // what is wrong with it
	digest      *digestPass

	mu  sync.Mutex
	idx *index // nil until the first scan has ended
	bad error  // what the first scan found wrong
}

// Open maps the file at path and checks, before anything is believed: size, both metas, and the structure of every page that
// can be reached above the leaves (leaves are judged when they are first read). The SHA-256 is computed behind Open's back,
// at the same time as the caller's work: Digest waits for it, and Write and Verify publish or approve nothing before.
//
// A raw member/snap/db is accepted: it has no digest and may be larger than its image; Warnings says so. Either may be compressed
// (gzip, zstd, or zip with one file), which the content tells, not the name: it is expanded first, which takes its time, and what
// is then read is the copy. Errors wrap ErrNotSnapshot, ErrTruncated, ErrDamaged, ErrExpand or ErrScratch, or are those of the file
// system.
func Open(ctx context.Context, path string, cfg Config) (*Snapshot, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // a named pipe is refused below, not waited for
	if err != nil {
		return nil, &FileError{path, reason(err)}
	}
	s, err := openFile(ctx, f, path, cfg)
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	s.shared = false
	return s, nil
}

// FileError is an error about the snapshot at Path.
type FileError struct {
	Path string
	Err  error
}

func (e *FileError) Error() string { return "snapshot " + e.Path + ": " + e.Err.Error() }
func (e *FileError) Unwrap() error { return e.Err }

// reason is what the file system says of a path without the path, which the error around it names.
func reason(err error) error {
	if p, ok := err.(*fs.PathError); ok {
		return p.Err
	}
	return err
}

// openFile is Open for a file the caller keeps: Close does not close it.
func openFile(ctx context.Context, f *os.File, path string, cfg Config) (*Snapshot, error) {
	s := &Snapshot{path: path, given: f, file: f, shared: true}
	if err := s.read(ctx, cfg); err != nil {
		err = s.wrap(err)
		_ = s.unmap()
		_ = s.closeScratch()
		return nil, err
	}
	if cfg.SkipDigest {
		s.digest = skippedDigest()
	} else {
		s.digest = startDigest(s)
	}
	return s, nil
}

// read maps the file, expanded where it is compressed, and checks its structure.
func (s *Snapshot) read(ctx context.Context, cfg Config) error {
	if err := s.look(); err != nil {
		return err
	}
	if s.compression = compressionOf(s.given); s.compression != "" {
		if err := s.expand(ctx, cfg); err != nil {
			return err
		}
	}
	if err := s.mapFile(); err != nil {
		return err
	}
	return s.guard(func() error {
		if err := s.geometry(); err != nil {
			return err
		}
		return s.walk(ctx)
	})
}

// wrap names the file in front of an error. When the file is no longer the one that was opened the error is ErrChanged: what
// else was found is not true of either.
func (s *Snapshot) wrap(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if !errors.Is(err, ErrChanged) && errors.Is(s.unchanged(), ErrChanged) {
		err = fmt.Errorf("%w: %v", ErrChanged, err)
	}
	return &FileError{s.path, err}
}

// look refuses what is no file with something in it.
func (s *Snapshot) look() error {
	info, err := s.given.Stat()
	if err != nil {
		return err
	}
	s.info = info
	switch {
	case info.IsDir():
		return fmt.Errorf("%w: it is a directory", ErrNotSnapshot)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w: it is not a regular file", ErrNotSnapshot)
	case info.Size() == 0:
		return foreign(nil)
	}
	return nil
}

func (s *Snapshot) mapFile() error {
	info, err := s.file.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	if size != int64(int(size)) {
		return fmt.Errorf("%d bytes cannot be mapped on this machine", size)
	}
	s.data, err = unix.Mmap(int(s.file.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map: %w", err)
	}
	return nil
}

// geometry makes the checks that cost nothing: the size rules and both metas.
func (s *Snapshot) geometry() error {
	metas, errs := findMetas(s.data)
	if errs[0] != nil && errs[1] != nil {
		if err := foreign(s.data); err != nil {
			return err
		}
		return fmt.Errorf("meta page 0: %w", errs[0])
	}
	s.meta = metas[0]
	if errs[0] != nil || (errs[1] == nil && metas[1].txid > metas[0].txid) {
		s.meta = metas[1]
	}
	size, ps := uint64(len(s.data)), uint64(s.meta.pageSize)
	s.raw = size%512 != sha256.Size
	if s.meta.highWater > size/ps {
		return fmt.Errorf("%w: it has %d bytes, its metadata says %d pages of %d", ErrTruncated, size, s.meta.highWater, ps)
	}
	image := s.meta.highWater * ps
	s.image = s.data[:image:image]
	if !s.raw {
		return s.snapshotGeometry(errs, size, image)
	}
	return s.rawGeometry(errs, size, image)
}

func (s *Snapshot) snapshotGeometry(errs [2]error, size, image uint64) error {
	if size != image+sha256.Size {
		return fmt.Errorf("%w: %d bytes follow the image of %d bytes, want a digest of %d", ErrDamaged, size-image, image, sha256.Size)
	}
	for i, err := range errs {
		if err != nil { // the server writes both afresh, so a snapshot with one bad meta was damaged later
			return fmt.Errorf("%w: meta page %d: %s", ErrDamaged, i, metaFault(err))
		}
	}
	return nil
}

func (s *Snapshot) rawGeometry(errs [2]error, size, image uint64) error {
	if size%512 != 0 {
		return fmt.Errorf("%w: %d bytes are neither a snapshot (a multiple of 512 and a digest of %d) nor a database file", ErrTruncated, size, sha256.Size)
	}
	s.warnings = append(s.warnings, "no digest: this is a database file (member/snap/db), not an etcdctl snapshot; the write-ahead log beside it may hold later changes")
	if size > image {
		s.warnings = append(s.warnings, fmt.Sprintf("%d bytes behind the high-water mark are not part of the database", size-image))
	}
	for i, err := range errs {
		if err != nil {
			s.warnings = append(s.warnings, fmt.Sprintf("meta page %d is not valid (%s); the other one is used", i, metaFault(err)))
		}
	}
	return nil
}

// Path is the name the file was opened by.
func (s *Snapshot) Path() string { return s.path }

// Warnings are things a person should know about the file that do not keep it from being used. The first of a compressed file is
// that it is.
func (s *Snapshot) Warnings() []string { return s.warnings }

// Digest waits for the SHA-256 pass that Open started. The error wraps ErrDigest when the file carries another digest; a
// raw database file carries none, which is no error. With Config.SkipDigest it is the zero Digest.
func (s *Snapshot) Digest(ctx context.Context) (Digest, error) {
	d, err := s.digest.wait(ctx)
	return d, s.wrap(err)
}

// unchanged is ErrChanged when the file is no longer the one that was opened.
func (s *Snapshot) unchanged() error {
	if s.info == nil {
		return nil // it never was looked at
	}
	now, err := s.given.Stat()
	if err != nil {
		return err
	}
	if now.Size() != s.info.Size() || !now.ModTime().Equal(s.info.ModTime()) {
		return ErrChanged
	}
	return nil
}

// Close stops the digest pass and unmaps the file: every Record becomes invalid.
func (s *Snapshot) Close() error {
	s.digest.stop()
	err := errors.Join(s.unmap(), s.closeScratch())
	if !s.shared {
		err = errors.Join(err, s.given.Close())
	}
	return err
}

// closeScratch closes the expanded copy, where there is one, which is gone then.
func (s *Snapshot) closeScratch() error {
	if s.file == s.given {
		return nil
	}
	return s.file.Close()
}

func (s *Snapshot) unmap() error {
	if s.data == nil {
		return nil
	}
	b := s.data
	s.data, s.image = nil, nil
	return unix.Munmap(b)
}
