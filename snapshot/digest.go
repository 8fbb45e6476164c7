package snapshot

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"os"
)

// Digest is what the sequential pass over a file found.
type Digest struct {
	Image   [sha256.Size]byte // of the database image, which is what the trailer holds
	File    [sha256.Size]byte // of the whole file as it was given, compressed or not, which is what sha256sum prints
	Present bool              // the file carries a digest; it is equal to Image
}

// digestPass reads the file once with plain reads, on its own goroutine: it is the longest part of any run, it warms the
// page cache for the mapped reads, and read errors of the disk come back as errors there instead of faults here.
type digestPass struct {
	done   chan struct{}
	cancel context.CancelFunc
	sum    Digest
	err    error
}

func skippedDigest() *digestPass { return knownDigest(Digest{}) }

// knownDigest is a pass that found d.
func knownDigest(d Digest) *digestPass {
	p := &digestPass{done: make(chan struct{}), cancel: func() {}, sum: d}
	close(p.done)
	return p
}

func startDigest(s *Snapshot) *digestPass {
	ctx, cancel := context.WithCancel(context.Background())
	p := &digestPass{done: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(p.done)
		p.sum, p.err = digestFile(ctx, s.file, int64(len(s.data)), int64(len(s.image)), s.raw)
		if p.err == nil && s.compression != "" {
			p.sum.File, p.err = fileSum(ctx, s.given, s.info.Size())
		}
	}()
	return p
}

func (p *digestPass) wait(ctx context.Context) (Digest, error) {
	select {
	case <-p.done:
		return p.sum, p.err
	case <-ctx.Done():
		return Digest{}, ctx.Err()
	}
}

func (p *digestPass) stop() {
	p.cancel()
	<-p.done
}

// digestFile hashes the first image bytes of f and then, from a copy of that state, the rest of its size bytes.
func digestFile(ctx context.Context, f *os.File, size, image int64, raw bool) (Digest, error) {
	var d Digest
	h := sha256.New()
	buf := make([]byte, 1<<20)
	if err := hashRange(ctx, h, f, 0, image, buf); err != nil {
		return d, err
	}
	h.Sum(d.Image[:0])
	if err := hashRange(ctx, h, f, image, size, buf); err != nil {
		return d, err
	}
	h.Sum(d.File[:0])
	if raw {
		return d, nil
	}
	var trailer [sha256.Size]byte
	if _, err := f.ReadAt(trailer[:], image); err != nil {
		return d, fmt.Errorf("read the digest: %w", err)
	}
	if trailer != d.Image {
		return d, fmt.Errorf("%w: the file says %x, its image has %x", ErrDigest, trailer, d.Image)
	}
	d.Present = true
	return d, nil
}

// fileSum is the digest of the first size bytes of f.
func fileSum(ctx context.Context, f *os.File, size int64) (sum [sha256.Size]byte, err error) {
	h := sha256.New()
	err = hashRange(ctx, h, f, 0, size, make([]byte, 1<<20))
	h.Sum(sum[:0])
	return sum, err
}

// hashRange adds the bytes [from, to) of f to h.
func hashRange(ctx context.Context, h hash.Hash, f io.ReaderAt, from, to int64, buf []byte) error {
	for from < to {
		if err := ctx.Err(); err != nil {
			return err
		}
		b := buf[:min(int64(len(buf)), to-from)]
		n, err := f.ReadAt(b, from)
		if n < len(b) {
			if err == nil || err == io.EOF {
				err = ErrTruncated
			}
			return fmt.Errorf("read at %d: %w", from+int64(n), err)
		}
		_, _ = h.Write(b)
		from += int64(n)
	}
	return nil
}
