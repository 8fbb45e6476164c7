package snapshot

import (
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"

	"github.com/etcdshift/etcdshift/publish"
)

// DefaultMaxExpand is how many bytes a compressed file may expand to where Config does not say: twice the largest quota that
// etcd's documentation advises (8 GiB).
const DefaultMaxExpand = 16 << 30

const (
	// A snapshot of Kubernetes shrinks to a tenth or so. A file that expands more than this many times over is one made to fill
	// a disk; freeExpand leaves room for a database file that is empty but for the space it has set aside.
	maxExpandRatio = 200
	freeExpand     = 64 << 20 // bytes

	// zstdWindow is the most memory that a zstd stream may ask for, in bytes: as much as the zstd tool gives it unasked.
	zstdWindow = 128 << 20
	// zipDirectory bounds what is read to find the one file of an archive, in bytes: a directory may list millions.
	zipDirectory = 1 << 20

	// emptyZip is the record that ends a zip archive, with which one of no files begins.
	emptyZip = "PK\x05\x06"

	expandBlock = 1 << 20 // bytes
)

// Compression is how the file given was compressed, by the name of its format: "gzip", "zstd" or "zip"; empty for one that was not.
func (s *Snapshot) Compression() string { return s.compression }

// compressionOf recognises by its content a file that Open expands.
func compressionOf(f io.ReaderAt) string {
	head := make([]byte, 6)
	n, _ := f.ReadAt(head, 0) // what cannot be read is told by whoever reads it next
	head = head[:n]
	if len(head) >= 4 && head[0]&0xf0 == 0x50 && bytes.Equal(head[1:4], []byte("\x2a\x4d\x18")) {
		return "zstd" // a skippable frame, with which pzstd begins
	}
	if what := archive(head); what == "gzip" || what == "zstd" || what == "zip" {
		return what
	}
	return ""
}

// expand makes s.file a scratch file with what the given file was compressed from. No name that the file holds is used.
func (s *Snapshot) expand(ctx context.Context, cfg Config) error {
	dir := cfg.ScratchDir
	if dir == "" {
		dir = os.TempDir()
	}
	scratch, err := publish.Scratch(dir)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrScratch, err)
	}
	s.file = scratch
	in := &packed{ctx: ctx, file: s.given, size: s.info.Size(), limit: cfg.MaxExpand}
	if in.limit <= 0 {
		in.limit = DefaultMaxExpand
	}
	n, err := in.expand(s.compression, scratch)
	if err != nil {
		return err
	}
	s.warnings = append(s.warnings, fmt.Sprintf("compressed with %s: expanded to %d bytes in a temporary file", s.compression, n))
	return nil
}

// packed reads a compressed file and keeps count.
type packed struct {
	ctx   context.Context
	file  io.ReaderAt
	size  int64 // bytes, of the file
	limit int64 // bytes that it may expand to

	read     int64 // bytes, so far
	mostRead int64 // an error beyond; 0 for none
	err      error // what reading failed with, which decoders may hide
}

func (p *packed) ReadAt(b []byte, at int64) (int, error) {
	if err := p.ctx.Err(); err != nil {
		p.err = err
		return 0, err
	}
	if p.mostRead > 0 && p.read > p.mostRead {
		p.err = fmt.Errorf("%w: its zip directory is too long for one file", ErrNotSnapshot)
		return 0, p.err
	}
	n, err := p.file.ReadAt(b, at)
	p.read += int64(n)
	if err != nil && err != io.EOF {
		p.err = err
	}
	return n, err
}

// expand writes what the file was compressed from to out and returns its size in bytes.
func (p *packed) expand(format string, out io.Writer) (n int64, err error) {
	r, err := p.open(format)
	if err != nil {
		return 0, p.explain(format, err)
	}
	defer func() { _ = r.Close() }()
	block := make([]byte, expandBlock)
	for err == nil {
		var got int
		if got, err = fill(r, block); err != nil && err != io.EOF {
			return n, p.explain(format, err)
		}
		if gone := p.ctx.Err(); gone != nil { // much may come out of what was read already
			return n, gone
		}
		n += int64(got)
		if tooMuch := p.bounded(n); tooMuch != nil {
			return n, tooMuch
		}
		if n == int64(got) {
			if wrong := p.promising(block[:got]); wrong != nil {
				return n, wrong
			}
		}
		if _, full := out.Write(block[:got]); full != nil {
			return n, fmt.Errorf("%w: %w", ErrScratch, full)
		}
	}
	return n, nil
}

// open makes the reader of what the file was compressed from.
func (p *packed) open(format string) (io.ReadCloser, error) {
	whole := io.NewSectionReader(p, 0, p.size)
	switch format {
	case "gzip":
		return gzip.NewReader(whole)
	case "zstd":
		// One goroutine, the caller's: packed counts without a lock.
		z, err := zstd.NewReader(whole, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(zstdWindow))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	}
	return p.openZip()
}

// openZip finds the one file of an archive, as k3s makes them.
func (p *packed) openZip() (io.ReadCloser, error) {
	p.mostRead = zipDirectory
	z, err := zip.NewReader(p, p.size)
	if errors.Is(err, zip.ErrFormat) {
		return nil, fmt.Errorf("%w: its zip directory, which comes last, is missing or damaged", ErrTruncated)
	}
	if err != nil {
		return nil, err
	}
	p.mostRead = 0
	var only *zip.File
	files := 0
	for _, f := range z.File {
		if !f.Mode().IsDir() {
			only, files = f, files+1
		}
	}
	switch {
	case files != 1:
		return nil, fmt.Errorf("%w: a zip archive of %d files, want exactly one", ErrNotSnapshot, files)
	case !only.Mode().IsRegular():
		return nil, fmt.Errorf("%w: a zip archive of something that is not a regular file", ErrNotSnapshot)
	case only.Flags&1 != 0:
		return nil, fmt.Errorf("%w: an encrypted zip archive; decrypt it first", ErrNotSnapshot)
	case only.Method != zip.Store && only.Method != zip.Deflate:
		return nil, fmt.Errorf("%w: a zip archive with compression method %d; expand it first", ErrNotSnapshot, only.Method)
	case only.UncompressedSize64 > uint64(p.limit):
		return nil, p.tooLarge(only.UncompressedSize64)
	}
	return only.Open()
}

// bounded is ErrExpand where n bytes are more than the file may expand to.
func (p *packed) bounded(n int64) error {
	switch {
	case n > p.limit:
		return fmt.Errorf("%w: it expands to more than %d bytes", ErrExpand, p.limit)
	case n > freeExpand && (n-freeExpand)/maxExpandRatio > p.read:
		return fmt.Errorf("%w: %d bytes of it expand more than %d-fold, which no snapshot does", ErrExpand, p.read, maxExpandRatio)
	}
	return nil
}

func (p *packed) tooLarge(claimed uint64) error {
	return fmt.Errorf("%w: it says that it expands to %d bytes, the limit is %d", ErrExpand, claimed, p.limit)
}

// promising judges the first block, so that what is no snapshot, or one too large, ends here and not with the disk.
func (p *packed) promising(head []byte) error {
	if what := archive(head); what != "" {
		return fmt.Errorf("%w: it is compressed twice (%s within)", ErrNotSnapshot, what)
	}
	metas, errs := findMetas(head)
	for i, err := range errs {
		if err == nil && metas[i].highWater > uint64(p.limit)/uint64(metas[i].pageSize) {
			return fmt.Errorf("%w: it says that it expands to %d pages of %d bytes, the limit is %d bytes", ErrExpand, metas[i].highWater, metas[i].pageSize, p.limit)
		}
	}
	if errs[0] != nil && errs[1] != nil {
		return fmt.Errorf("what it expands to: %w", cmp.Or(foreign(head), errs[0]))
	}
	return nil
}

// explain tells a file that cannot be read, one that is cut short and one that is damaged apart.
func (p *packed) explain(format string, err error) error {
	switch {
	case p.err != nil:
		return p.err
	case errors.Is(err, ErrNotSnapshot), errors.Is(err, ErrExpand), errors.Is(err, ErrTruncated):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fmt.Errorf("%w: its %s stream has no end", ErrTruncated, format)
	case errors.Is(err, zstd.ErrWindowSizeExceeded):
		return fmt.Errorf("%w: it needs a zstd window of more than %d bytes; expand it first with \"zstd -d --long=31\"", ErrExpand, zstdWindow)
	}
	return fmt.Errorf("%w: %s: %w", ErrDamaged, format, err)
}

// fill reads into b until it is full or nothing more comes.
func fill(r io.Reader, b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var m int
		m, err = r.Read(b[n:])
		n += m
	}
	return n, err
}
