package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"hash"

	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
)

const (
	copyBlock = 1 << 20 // bytes read, written and read back at a time
	copyRing  = 8       // blocks between the copy and the hash
)

// copyImage copies the image of src, with the metas of m if there is one, reads every block back
// and compares it. It appends the digest of that and of the new pages behind, hashed beside the
// copy.
func (e *edit) copyImage(ctx context.Context, m *bolt.Meta) (d Digest, err error) {
	h := sha256.New()
	free, full := make(chan []byte, copyRing), make(chan []byte, copyRing)
	for range copyRing {
		free <- make([]byte, copyBlock)
	}
	go func() {
		defer close(free)
		for b := range full {
			_, _ = h.Write(b)
			free <- b[:copyBlock]
		}
	}()
	image := e.src.db.Bytes()
	err = e.copyBlocks(ctx, image, m, free, full)
	close(full)
	for range free { // until everything was hashed
	}
	if err != nil {
		return d, err
	}
	size := image
	if m != nil {
		size = m.Bytes()
	}
	if err := hashRange(ctx, h, e.file, image, size); err != nil {
		return d, err
	}
	return e.seal(h, size)
}

func (e *edit) copyBlocks(ctx context.Context, image int64, m *bolt.Meta, free <-chan []byte, full chan<- []byte) error {
	var metas []byte
	if m != nil {
		metas = m.Pages()
	}
	in := make([]byte, copyBlock)
	for at := int64(0); at < image; at += copyBlock {
		if err := ctx.Err(); err != nil {
			return err
		}
		b := in[:min(copyBlock, image-at)]
		if n, err := e.src.file.ReadAt(b, at); n < len(b) {
			return e.src.wrap(fmt.Errorf("read at %d: %w", at+int64(n), err))
		}
		copy(b, metas[min(at, int64(len(metas))):])
		if _, err := e.file.WriteAt(b, at); err != nil {
			return err
		}
		startWriteback(e.file, at, int64(len(b)))
		back := (<-free)[:len(b)]
		if n, err := e.file.ReadAt(back, at); n < len(back) {
			return fmt.Errorf("read back at %d: %w", at+int64(n), err)
		}
		if !bytes.Equal(b, back) {
			return fmt.Errorf("%w: bytes at %d are not those that were written", ErrVerify, at)
		}
		full <- back
	}
	return nil
}

// seal appends the digest of the image of that many bytes, which h has seen.
func (o output) seal(h hash.Hash, image int64) (Digest, error) {
	d := Digest{Present: true}
	h.Sum(d.Image[:0])
	if _, err := o.file.WriteAt(d.Image[:], image); err != nil {
		return Digest{}, err
	}
	_, _ = h.Write(d.Image[:])
	h.Sum(d.File[:0])
	return d, nil
}
