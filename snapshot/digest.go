package snapshot

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"os"
)

// Digest is the SHA-256 of a file.
type Digest struct {
	Image   [sha256.Size]byte // of the database image, as the trailer holds it
	File    [sha256.Size]byte // of the file as it was given, as sha256sum prints it
	Present bool              // the file carries a digest; it is equal to Image
}

func knownDigest(d Digest) *pass[Digest] {
	return newPass(func(context.Context) (Digest, error) { return d, nil })
}

// sum computes the digest of the file with an image of that many bytes.
func (s *Snapshot) sum(ctx context.Context, image int64) (d Digest, err error) {
	h, size := sha256.New(), int64(len(s.data))
	if err := s.hashMapped(ctx, h, image); err != nil {
		return d, err
	}
	s.hashed.Store(image)
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

// hashMapped adds the first size bytes of the mapped file to h: without a copy, and other readers
// find the pages mapped. Where the kernel cannot map them, plain reads get the bytes or the error
// of the disk.
func (s *Snapshot) hashMapped(ctx context.Context, h hash.Hash, size int64) error {
	for at := int64(0); at < size; at += copyBlock {
		if err := ctx.Err(); err != nil {
			return err
		}
		block := s.data[at:min(at+copyBlock, size)]
		if populate(block) != nil {
			return hashRange(ctx, h, s.file, at, size)
		}
		err := s.guard(func() error {
			_, _ = h.Write(block)
			return nil
		})
		if err != nil {
			return cmp.Or(hashRange(ctx, sha256.New(), s.file, at, at+int64(len(block))), err)
		}
		s.hashed.Add(int64(len(block)))
	}
	return nil
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

// appendDigest appends the digest of the image of that many bytes, which h has seen.
func appendDigest(f *os.File, h hash.Hash, image int64) (Digest, error) {
	d := Digest{Present: true}
	h.Sum(d.Image[:0])
	if _, err := f.WriteAt(d.Image[:], image); err != nil {
		return Digest{}, err
	}
	_, _ = h.Write(d.Image[:])
	h.Sum(d.File[:0])
	return d, nil
}
