package snapshot

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
)

// Digest is the SHA-256 of a file.
type Digest struct {
	Image   [sha256.Size]byte // of the database image, as the trailer holds it
	File    [sha256.Size]byte // of the file as it was given, as sha256sum prints it
	Present bool              // the file carries a digest; it is equal to Image
}

// digestPass computes the digest of a file on its own goroutine.
type digestPass struct {
	done   chan struct{}
	cancel context.CancelFunc
	sum    Digest
	err    error
}

func startDigest(fn func(ctx context.Context) (Digest, error)) *digestPass {
	ctx, cancel := context.WithCancel(context.Background())
	p := &digestPass{done: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(p.done)
		p.sum, p.err = fn(ctx)
	}()
	return p
}

func knownDigest(d Digest) *digestPass {
	return startDigest(func(context.Context) (Digest, error) { return d, nil })
}

func (p *digestPass) wait(ctx context.Context) (Digest, error) {
	select {
	case <-p.done:
		return p.sum, p.err
	case <-ctx.Done():
		return Digest{}, ctx.Err()
	}
}

// sum reads the file once with plain reads: they warm the page cache for the mapped reads, and the
// disk answers with errors instead of faults.
func (s *Snapshot) sum(ctx context.Context) (d Digest, err error) {
	h := sha256.New()
	image, size := s.db.Bytes(), int64(len(s.data))
	if err := hashRange(ctx, h, s.file, 0, image); err != nil {
		return d, err
	}
	h.Sum(d.Image[:0])
	if err := hashRange(ctx, h, s.file, image, size); err != nil {
		return d, err
	}
	h.Sum(d.File[:0])
	if !s.raw {
		var trailer [sha256.Size]byte
		if _, err := s.file.ReadAt(trailer[:], image); err != nil {
			return d, fmt.Errorf("read the digest: %w", err)
		}
		if trailer != d.Image {
			return d, fmt.Errorf("%w: the file says %x, its image has %x", ErrDigest, trailer, d.Image)
		}
	}
	if s.compression != "" {
		h.Reset()
		err = hashRange(ctx, h, s.given, 0, s.info.Size())
		h.Sum(d.File[:0])
	}
	d.Present = !s.raw
	return d, err
}

// hashRange adds the bytes [from, to) of f to h.
func hashRange(ctx context.Context, h hash.Hash, f io.ReaderAt, from, to int64) error {
	buf := make([]byte, min(copyBlock, to-from))
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
