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

const copyBlock = 1 << 20 // bytes read and compared at a time

// proveImage waits for the copy of the image of src, writes the metas of m over it if there is one,
// reads every block back and compares it. It appends the digest of the copy and of the new pages
// behind it.
func (e *edit) proveImage(ctx context.Context, m *bolt.Meta) (d Digest, err error) {
	err = e.copied.wait(ctx)
	if err != nil && ctx.Err() == nil { // it was stopped, or the disk was full while the changes were planned
		err = copyPages(ctx, e.file, e.src.file, e.src.db.Bytes())
	}
	if err != nil {
		if _, bad := e.src.Digest(ctx); bad != nil { // it reads the same bytes, and can tell whose fault it is
			err = bad
		}
		return d, err
	}
	image := e.src.db.Bytes()
	size, metas := image, []byte(nil)
	if m != nil {
		size, metas = m.Bytes(), m.Pages()
		if _, err := e.file.WriteAt(metas, 0); err != nil {
			return d, err
		}
	}
	h := sha256.New()
	if err := e.compareBlocks(ctx, image, metas, h); err != nil {
		return d, err
	}
	if err := hashRange(ctx, h, e.file, image, size); err != nil {
		return d, err
	}
	return e.appendDigest(h, size)
}

// compareBlocks reads the copy of the image back and compares it with src, but for the metas at its
// beginning. Each block is hashed beside the next one.
func (e *edit) compareBlocks(ctx context.Context, image int64, metas []byte, h io.Writer) error {
	var hashing sync.WaitGroup
	defer hashing.Wait()
	back, hashed := make([]byte, copyBlock), make([]byte, copyBlock)
	for at := int64(0); at < image; at += copyBlock {
		if err := ctx.Err(); err != nil {
			return err
		}
		back = back[:min(copyBlock, image-at)]
		if n, err := e.file.ReadAt(back, at); n < len(back) {
			return fmt.Errorf("read back at %d: %w", at+int64(n), err)
		}
		same := min(len(back), max(0, len(metas)-int(at))) // the metas of m, which differ
		if !bytes.Equal(back[:same], metas[min(int(at), len(metas)):][:same]) || !bytes.Equal(back[same:], e.src.data[at:][same:len(back)]) {
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
