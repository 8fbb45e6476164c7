package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"sync"

	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
)

const copyBlock = 1 << 20 // bytes read, written and read back at a time

// copyImage copies the image of src, with the metas of m if there is one, reads every block back
// and compares it. It appends the digest of the copy and of the new pages behind it.
func (e *edit) copyImage(ctx context.Context, m *bolt.Meta) (d Digest, err error) {
	h := sha256.New()
	image := e.src.db.Bytes()
	size, metas := image, []byte(nil)
	if m != nil {
		size, metas = m.Bytes(), m.Pages()
	}
	if err := e.copyBlocks(ctx, image, metas, h); err != nil {
		return d, err
	}
	if err := hashRange(ctx, h, e.file, image, size); err != nil {
		return d, err
	}
	return e.appendDigest(h, size)
}

// copyBlocks copies the image, metas over its beginning. Each block is hashed beside the copy of
// the next ones.
func (e *edit) copyBlocks(ctx context.Context, image int64, metas []byte, h io.Writer) error {
	var hashing sync.WaitGroup
	defer hashing.Wait()
	in, back, hashed := make([]byte, copyBlock), make([]byte, copyBlock), make([]byte, copyBlock)
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
		back = back[:len(b)]
		if n, err := e.file.ReadAt(back, at); n < len(back) {
			return fmt.Errorf("read back at %d: %w", at+int64(n), err)
		}
		if !bytes.Equal(b, back) {
			return fmt.Errorf("%w: bytes at %d are not those that were written", ErrVerify, at)
		}
		hashing.Wait()
		back, hashed = hashed, back
		block := hashed
		hashing.Go(func() { _, _ = h.Write(block) })
	}
	return nil
}

// appendDigest appends the digest of the image of that many bytes, which h has seen.
func (o output) appendDigest(h hash.Hash, image int64) (Digest, error) {
	d := Digest{Present: true}
	h.Sum(d.Image[:0])
	if _, err := o.file.WriteAt(d.Image[:], image); err != nil {
		return Digest{}, err
	}
	_, _ = h.Write(d.Image[:])
	h.Sum(d.File[:0])
	return d, nil
}
