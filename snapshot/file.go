package snapshot

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
	"github.com/etcdshift/etcdshift/snapshot/internal/expand"
	"github.com/etcdshift/etcdshift/snapshot/internal/wal"
)

// Config configures Open. The zero value is the most careful setting.
type Config struct {
	SkipDigest bool   // leave the SHA-256 of the image unchecked, but not the structure
	LateDigest bool   // compute the SHA-256 of a raw file, which has no digest to check, only when Digest is called
	MaxExpand  int64  // maximum size of an expanded file in bytes; 0: DefaultMaxExpand
	ScratchDir string // folder of the unnamed expanded file; "": os.TempDir

	// FreePages lets History, Records, Scan and Deleted also yield the records that a compaction
	// removed, as far as their bytes are still in free pages: single records, not the state of the
	// store. See [Record.FreePage].
	FreePages bool

	// UntilRevision and UntilTime end delta snapshots of etcdbrctl: the snapshot has no later
	// revision, and none that etcdbrctl received later. Zero: all of them.
	UntilRevision int64
	UntilTime     time.Time

	// LogDir is the folder of the log of a data directory; "": its member/wal.
	LogDir string
	// Peers are data directories of other members of the cluster, or their logs: entries in a
	// majority of the logs count as committed.
	Peers []string

	// File, if set, is read instead of the file at path; path is then only the name in messages.
	// File is closed with the snapshot, unless KeepFile is set.
	File     *os.File
	KeepFile bool
}

// DefaultMaxExpand is the default maximum size of an expanded file in bytes: twice the largest
// quota advised by etcd's documentation (8 GiB).
const DefaultMaxExpand = 16 << 30

// limit returns the maximum size of an expanded file in bytes.
func (c Config) limit() int64 { return cmp.Or(max(0, c.MaxExpand), DefaultMaxExpand) }

// Snapshot is an open file. Methods never change the file and are safe for concurrent use.
type Snapshot struct {
	records
	raw    bool // a member/snap/db: no digest, possibly larger than its image
	digest *pass[Digest]
}

// Open maps the file at path and checks its size, both metas, and every page above the leaves. A
// leaf is checked on the first read. The SHA-256 is computed in the background: Digest, Write and
// Verify wait for it.
//
// A folder with snapshots of etcdbrctl is read as its newest full snapshot with all later delta
// snapshots; the path of a delta snapshot ends them with that one.
//
// A raw member/snap/db is accepted with a warning: the file has no digest and may be larger than
// its image. Both kinds may be compressed (gzip, zstd, zip) or be the only database of an archive
// (zip, tar, tar.gz), recognized by the content: Open reads an expanded copy.
//
// The data directory of a stopped member, or its folder "member", is accepted too: Open reads its
// database and the entries of the log after it, from a copy. A restarted server would serve the
// same. Errors wrap [ErrNotSnapshot], [ErrTruncated], [ErrDamaged], [ErrExpand], [ErrRunning],
// [ErrLog], [ErrScratch] or an error of the file system.
func Open(ctx context.Context, path string, cfg Config) (*Snapshot, error) {
	in, err := inputOf(path, cfg)
	if err != nil {
		return nil, err
	}
	return openFile(ctx, in, cfg, nil)
}

// Begins returns an error ([ErrNotSnapshot], [ErrExpand]) if the first bytes of a stream, a
// mebibyte or all, exclude a snapshot of at most limit bytes. The rest need not be read.
func Begins(head []byte, limit int64) error {
	if expand.Format(bytes.NewReader(head)) != "" {
		return nil
	}
	return expand.Begins(head, limit)
}

// openNow is wal.OpenNow with an error without the path.
func openNow(path string) (*os.File, error) {
	f, err := wal.OpenNow(path)
	return f, reason(err)
}

// openFile is Open for an open file. The file begins with the pages of old, unless old is nil.
func openFile(ctx context.Context, in input, cfg Config, old *Snapshot) (*Snapshot, error) {
	s := &Snapshot{records: records{input: in, freePages: cfg.FreePages}}
	s.digest = knownDigest(Digest{})
	err := s.load(ctx, cfg)
	if err == nil {
		err = s.guard(func() error { return s.parse(ctx, cfg, old) })
	}
	if err != nil {
		err = s.wrap(err)
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// parse checks the structure of the file, but not its digest.
func (s *Snapshot) parse(ctx context.Context, cfg Config, old *Snapshot) error {
	var oldPages *bolt.DB
	if old != nil {
		s.old, oldPages = &old.input, old.db
	}
	m, err := s.geometry()
	if cfg.SkipDigest || cfg.LateDigest && s.raw {
		s.hashed.Store(m.Bytes()) // no caller waits for the digest
	}
	if err == nil && !cfg.SkipDigest {
		s.digest = newPass(func(ctx context.Context) (Digest, error) { return s.sum(ctx, m.Bytes()) })
		if !cfg.LateDigest || !s.raw {
			s.digest.start()
		}
	}
	if err == nil {
		s.db, err = bolt.Open(ctx, s.data[:m.Bytes():m.Bytes()], m, oldPages)
	}
	if err == nil && s.db.Bucket("key") == nil {
		err = fmt.Errorf("%w: it is a bbolt file without etcd's key bucket", ErrNotSnapshot)
	}
	return err
}

// geometry checks the size and both metas, and returns the meta in use.
func (s *Snapshot) geometry() (m bolt.Meta, err error) {
	metas, errs := bolt.Metas(s.data)
	if errs[0] != nil && errs[1] != nil {
		if err := expand.Foreign(s.data); err != nil {
			return m, err
		}
		return m, fmt.Errorf("meta page 0: %w", errs[0])
	}
	m = metas[0]
	if errs[0] != nil || errs[1] == nil && metas[1].TxID > m.TxID {
		m = metas[1]
	}
	size := int64(len(s.data))
	if m.HighWater > uint64(size)/uint64(m.PageSize) {
		return m, fmt.Errorf("%w: it has %d bytes, its metadata says %d pages of %d",
			ErrTruncated, size, m.HighWater, m.PageSize)
	}
	s.raw = size%512 != sha256.Size
	switch rest := size - m.Bytes(); {
	case !s.raw && rest != sha256.Size:
		return m, fmt.Errorf("%w: %d bytes follow the image of %d bytes, want a digest of %d",
			ErrDamaged, rest, m.Bytes(), sha256.Size)
	case size%512 != 0 && s.raw:
		return m, fmt.Errorf("%w: %d bytes are neither a snapshot (a multiple of 512 and a digest of %d) "+
			"nor a database file", ErrTruncated, size, sha256.Size)
	case s.isFolder(): // load warns
	case s.raw:
		s.warn("no digest: this is a database file (member/snap/db), not an etcdctl snapshot; " +
			"the write-ahead log beside it may hold later changes")
		if rest > 0 {
			s.warn("%d bytes behind the high-water mark are not part of the database", rest)
		}
	}
	for i, err := range errs {
		if err == nil {
			continue
		}
		_, fault, _ := strings.Cut(err.Error(), ": ") // without the text of ErrNotSnapshot, which does not apply
		if !s.raw {                                   // a server saves two valid metas
			return m, fmt.Errorf("%w: meta page %d: %s", ErrDamaged, i, fault)
		}
		s.warn("meta page %d is not valid (%s); the other one is used", i, fault)
	}
	return m, nil
}

// Digest waits for the SHA-256 pass started by Open; with Config.SkipDigest the result is the zero
// Digest. The error wraps ErrDigest if the file has another digest; a raw database file has none.
func (s *Snapshot) Digest(ctx context.Context) (Digest, error) {
	d, err := s.digest.wait(ctx)
	return d, s.wrap(err)
}

// HasDigest reports whether the file has a digest. A raw database file has none.
func (s *Snapshot) HasDigest() bool { return !s.raw }

// FileInfo identifies a snapshot file.
type FileInfo struct {
	Path     string `json:"path"`
	SHA256   string `json:"sha256"` // of the whole file
	Revision int64  `json:"revision"`
	Keys     int    `json:"keys"`  // live
	Bytes    int64  `json:"bytes"` // of the file
}

// Info returns the FileInfo of the file. Info waits for the digest; a wrong digest is an error.
func (s *Snapshot) Info(ctx context.Context) (FileInfo, error) {
	f := FileInfo{Path: s.path}
	d, err := s.Digest(ctx)
	if err != nil {
		return f, err
	}
	f.SHA256, f.Bytes = fmt.Sprintf("%x", d.File), s.Size()
	if f.Revision, err = s.Revision(ctx); err != nil {
		return f, err
	}
	f.Keys, err = s.Keys(ctx)
	return f, err
}

// Progress returns the finished part of a reader's work, from 0 to 1: the pass that builds the
// index, the given number of passes over values, each as long as cost times the first pass, and the
// concurrent SHA-256. Progress may be called during reads.
func (s *Snapshot) Progress(passes int, cost float64) float64 {
	leaves := float64(max(1, s.db.Bucket("key").LeafCount()))
	indexed := min(leaves, float64(s.indexed.Load()))
	scanned := min(leaves*float64(passes), float64(s.scanned.Load()))
	read := (indexed + scanned*cost) / (leaves * (1 + float64(passes)*cost))
	return min(read, float64(s.hashed.Load())/float64(s.db.Bytes()))
}

// Close stops the digest pass and unmaps the file: every Record becomes invalid.
func (s *Snapshot) Close() error {
	s.digest.stop()
	return s.close()
}

// Space is the page usage of a file.
type Space struct {
	PageSize  int    // bytes
	Pages     uint64 // of the image
	FreePages uint64 // pages without a reference; old values remain there until a defragmentation
}

// Space returns the page usage.
func (s *Snapshot) Space() Space {
	return Space{PageSize: s.db.PageSize, Pages: s.db.HighWater, FreePages: s.db.Free}
}

// FreeList returns the error of a wrong free list (ErrFreeList and ErrDamaged), or nil for a right
// or missing free list. Write stores no free list, which repairs the file.
func (s *Snapshot) FreeList() error {
	if s.db.FreelistErr == nil {
		return nil
	}
	return s.wrap(fmt.Errorf("%w: %w", ErrFreeList, s.db.FreelistErr))
}
