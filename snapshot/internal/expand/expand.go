package expand

import (
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"compress/lzw"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/publish"
	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
)

// ErrTooFar is returned for a compressed file beyond the limit, or beyond the ratio of a snapshot.
var ErrTooFar = finding.WithLasting(errors.New("compressed file expands too far"),
	"if you know the file, raise the limit with --max-expand, or expand it yourself and give the result")

const (
	// A snapshot of Kubernetes compresses about tenfold; a far higher ratio is an attempt to fill a
	// disk. The first freeExpand bytes are for a database file with many free pages.
	maxExpandRatio = 200
	freeExpand     = 64 << 20 // bytes

	zstdWindow   = 128 << 20 // bytes of memory for a zstd stream: the default of the zstd tool
	expandBlock  = 1 << 20   // bytes expanded at once
	zipDirectory = 1 << 20   // bytes read to find the file of an archive, which may list millions
)

// Format returns the format of a file that [File] expands, from its content, or "".
func Format(f io.ReaderAt) string {
	head := make([]byte, tarHeader)
	n, _ := f.ReadAt(head, 0) // the next read returns the error
	head = head[:n]
	if n >= 4 && head[0]&0xf0 == 0x50 && string(head[1:4]) == "\x2a\x4d\x18" {
		return "zstd" // a skippable frame, as in files of pzstd
	}
	if what := archive(head); what == "gzip" || what == "zstd" || what == "zip" {
		return what
	}
	if isTar(head) {
		return "tar"
	}
	return ""
}

// Archive describes the archive from which a file was taken; the zero value is none.
type Archive struct {
	Format string // such as "tar.gz"
	File   string // the name of the file in the archive
	HasLog bool   // it also has files of a write-ahead log
}

// File writes the expanded content of a file of a size to out, at most limit bytes, and returns its
// size. Format is from func Format, or ".zlib" or ".Z". The names in an archive are not used.
func File(
	ctx context.Context, file io.ReaderAt, size int64, format string, limit int64, out io.Writer,
) (n int64, from Archive, err error) {
	p := &packed{ctx: ctx, format: format, file: file, size: size, limit: limit}
	n, err = p.expand(out)
	return n, Archive{p.archive, p.member, p.beside != nil && p.beside.log}, err
}

// packed reads a compressed file and counts the bytes.
type packed struct {
	ctx    context.Context
	format string
	file   io.ReaderAt
	size   int64 // size of the file in bytes
	limit  int64 // maximum size of the expanded file in bytes

	archive, member string   // the format, such as "tar.gz", and the file taken from the archive; "" for none
	beside          *members // the files of the archive; nil for none or a single one

	read     int64 // bytes read so far
	mostRead int64 // maximum of read; 0 for no limit
	err      error // the error of a read; decoders may hide it
}

func (p *packed) ReadAt(b []byte, at int64) (n int, err error) {
	if err = p.ctx.Err(); err == nil && p.mostRead > 0 && p.read > p.mostRead {
		err = fmt.Errorf("%w: its zip directory is too long for one file", bolt.ErrNotBolt)
	}
	if err == nil {
		n, err = p.file.ReadAt(b, at)
	}
	p.read += int64(n)
	if err != nil && err != io.EOF {
		p.err = err
	}
	return n, err
}

// expand writes the expanded content to out and returns its size in bytes.
func (p *packed) expand(out io.Writer) (n int64, err error) {
	stream, err := p.open()
	if err != nil {
		return 0, p.explain(err)
	}
	defer func() { _ = stream.Close() }()
	r, err := p.content(stream)
	if err != nil {
		return 0, p.explain(err)
	}
	block := bytes.NewBuffer(make([]byte, 0, expandBlock+bytes.MinRead))
	for done := false; !done; {
		got, err := io.CopyN(block, r, expandBlock)
		if done = err == io.EOF; err != nil && !done {
			return n, p.explain(err)
		}
		n += got
		err = p.checkSize(n)
		if err == nil && n == got {
			err = p.checkStart(block.Bytes())
		}
		if err != nil {
			return n, err
		}
		if _, err := block.WriteTo(out); err != nil {
			return n, fmt.Errorf("%w: %w", publish.ErrScratch, err)
		}
	}
	return n, nil
}

// open returns the reader of the expanded content.
func (p *packed) open() (io.ReadCloser, error) {
	whole := io.NewSectionReader(p, 0, p.size)
	switch p.format {
	case "tar":
		return io.NopCloser(whole), nil
	case "gzip":
		return gzip.NewReader(whole)
	case ".zlib", ".Z": // of etcdbrctl
		r, err := Unpacked(whole, p.format)
		return io.NopCloser(r), err
	case "zstd":
		z, err := zstd.NewReader(whole,
			zstd.WithDecoderConcurrency(1), // the caller's goroutine: packed counts without a lock
			zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(zstdWindow))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	}
	return p.openZip()
}

// Unpacked returns the reader of the content of a file with an ending of etcdbrctl.
func Unpacked(f io.Reader, packing string) (io.Reader, error) {
	switch packing {
	case ".gz":
		return gzip.NewReader(f)
	case ".zlib":
		return zlib.NewReader(f)
	case ".Z":
		return lzw.NewReader(f, lzw.LSB, 8), nil
	}
	return f, nil
}

// openZip opens the file of a zip archive to read.
func (p *packed) openZip() (io.ReadCloser, error) {
	p.mostRead = zipDirectory
	z, err := zip.NewReader(p, p.size)
	if errors.Is(err, zip.ErrFormat) {
		return nil, fmt.Errorf("%w: its zip directory, which comes last, is missing or damaged", bolt.ErrTruncated)
	}
	if err != nil {
		return nil, err
	}
	p.mostRead = 0
	f, err := p.zipMember(z.File)
	if err != nil {
		return nil, err
	}
	switch {
	case !f.Mode().IsRegular():
		return nil, fmt.Errorf("%w: a zip archive of something that is not a regular file", bolt.ErrNotBolt)
	case f.Flags&1 != 0:
		return nil, fmt.Errorf("%w: an encrypted zip archive; decrypt it first", bolt.ErrNotBolt)
	case f.Method != zip.Store && f.Method != zip.Deflate:
		return nil, fmt.Errorf("%w: a zip archive with compression method %d; expand it first",
			bolt.ErrNotBolt, f.Method)
	case f.UncompressedSize64 > uint64(p.limit):
		return nil, fmt.Errorf("%w: it says that it expands to %d bytes, the limit is %d",
			ErrTooFar, f.UncompressedSize64, p.limit)
	}
	return f.Open()
}

// checkSize returns an error if a file has expanded to n bytes, too many for a snapshot.
func (p *packed) checkSize(n int64) error {
	switch {
	case p.ctx.Err() != nil: // a few compressed bytes may expand to many
		return p.ctx.Err()
	case n > p.limit:
		return fmt.Errorf("%w: it expands to more than %d bytes", ErrTooFar, p.limit)
	case n > freeExpand && (n-freeExpand)/maxExpandRatio > p.read:
		return fmt.Errorf("%w: %d bytes of it expand more than %d-fold, which no snapshot does",
			ErrTooFar, p.read, maxExpandRatio)
	}
	return nil
}

// checkStart checks the first block, so that neither another file nor too large a file fills the
// disk.
func (p *packed) checkStart(head []byte) error {
	if what := archive(head); what != "" {
		return fmt.Errorf("%w: it is compressed twice (%s within); expand it once first", bolt.ErrNotBolt, what)
	}
	err := Begins(head, p.limit)
	if err != nil && !errors.Is(err, ErrTooFar) {
		return fmt.Errorf("what it expands to: %w", err)
	}
	return err
}

// Begins checks the first bytes of a database of at most limit bytes.
func Begins(head []byte, limit int64) error {
	metas, errs := bolt.Metas(head)
	for i, m := range metas {
		if errs[i] == nil && m.HighWater > uint64(limit)/uint64(m.PageSize) {
			return fmt.Errorf("%w: it says that it expands to %d pages of %d bytes, the limit is %d bytes",
				ErrTooFar, m.HighWater, m.PageSize, limit)
		}
	}
	if errs[0] != nil && errs[1] != nil {
		return cmp.Or(Foreign(head), errs[0])
	}
	return nil
}

// explain distinguishes an unreadable, a truncated and a damaged file.
func (p *packed) explain(err error) error {
	switch {
	case p.err != nil:
		return p.err
	case p.ctx.Err() != nil:
		return p.ctx.Err()
	case errors.Is(err, bolt.ErrNotBolt), errors.Is(err, ErrTooFar), errors.Is(err, bolt.ErrTruncated):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fmt.Errorf("%w: its %s stream has no end", bolt.ErrTruncated, p.format)
	case errors.Is(err, zstd.ErrWindowSizeExceeded):
		return fmt.Errorf("%w: it needs a zstd window of more than %d bytes; "+
			"expand it first with \"zstd -d --long=31\"", ErrTooFar, zstdWindow)
	}
	return fmt.Errorf("%w: %s: %w", bolt.ErrDamaged, p.format, err)
}
