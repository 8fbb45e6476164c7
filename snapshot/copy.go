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
	_, err = e.copied.wait(ctx)
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
	if m == nil && e.src.compression == "" {
		d, err = e.src.Digest(ctx)
		if err == nil && d.Present {
			err = e.proveCopy(ctx, d)
		}
		if err != nil || d.Present {
			return d, err
		}
	}
	h := sha256.New()
	if err := e.hashBlocks(ctx, image, metas, h); err != nil {
		return d, err
	}
	if err := hashRange(ctx, h, e.file, image, size); err != nil {
		return d, err
	}
	return e.appendDigest(h, size)
}

// proveCopy compares the copy of the whole image with src, which has the digest d: the same bytes
// have the same digest.
func (e *edit) proveCopy(ctx context.Context, d Digest) error {
	image := e.src.db.Bytes()
	buffers := sync.Pool{New: func() any { return new([copyBlock]byte) }}
	err := e.src.Parallel(ctx, int((image+copyBlock-1)/copyBlock), func(i int) error {
		at, back := int64(i)*copyBlock, buffers.Get().(*[copyBlock]byte)
		defer buffers.Put(back)
		return e.compareBlock(back[:min(copyBlock, image-at)], at, nil)
	})
	if err == nil {
		_, err = e.file.WriteAt(d.Image[:], image)
	}
	return err
}

// hashBlocks compares the copy of the image with src, but for the metas at its beginning. Each
// block is hashed beside the next one.
func (e *edit) hashBlocks(ctx context.Context, image int64, metas []byte, h io.Writer) error {
	var hashing sync.WaitGroup
	defer hashing.Wait()
	back, hashed := make([]byte, copyBlock), make([]byte, copyBlock)
	for at := int64(0); at < image; at += copyBlock {
		if err := ctx.Err(); err != nil {
			return err
		}
		back = back[:min(copyBlock, image-at)]
		if err := e.compareBlock(back, at, metas); err != nil {
			return err
		}
		hashing.Wait()
		back, hashed = hashed, back
		block := hashed
		hashing.Go(func() { _, _ = h.Write(block) })
	}
	return nil
}

// compareBlock reads a block of the copy back and compares it with src, or with the metas that were
// written over the beginning of the copy.
func (e *edit) compareBlock(back []byte, at int64, metas []byte) error {
	if n, err := e.file.ReadAt(back, at); n < len(back) {
		return fmt.Errorf("read back at %d: %w", at+int64(n), err)
	}
	same := min(len(back), max(0, len(metas)-int(at))) // the metas, which differ
	if !bytes.Equal(back[:same], metas[min(int(at), len(metas)):][:same]) || !bytes.Equal(back[same:], e.src.data[at:][same:len(back)]) {
		return fmt.Errorf("%w: bytes at %d are not those that were written", ErrVerify, at)
	}
	e.src.copied.Add(int64(len(back)))
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
