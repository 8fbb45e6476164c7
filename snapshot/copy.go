package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
)

const copyBlock = 1 << 20 // bytes read and compared at once

// copyPages copies the first n bytes of in to the beginning of out.
func copyPages(ctx context.Context, out, in *os.File, n int64) error {
	const step = 8 << 20 // bytes between two checks of ctx
	for at := int64(0); at < n; {
		if err := ctx.Err(); err != nil {
			return err
		}
		copied, err := copyRange(out, in, at, min(step, n-at))
		if err == nil && copied == 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return fmt.Errorf("copy at %d: %w", at, err)
		}
		startWriteback(out, at, copied)
		at += copied
	}
	return nil
}

// copyThrough copies a range through memory.
func copyThrough(out, in *os.File, at, n int64) (int64, error) {
	return io.Copy(io.NewOffsetWriter(out, at), struct{ io.Reader }{io.NewSectionReader(in, at, n)})
}

// proveImage waits for the copy of the image of src, overwrites the metas with those of m unless m
// is nil, reads every block back and compares the blocks. proveImage appends the digest of the copy
// and of the new pages after the copy.
func (d *Draft) proveImage(ctx context.Context, m *bolt.Meta) (sum Digest, err error) {
	image := d.src.db.Bytes()
	_, err = d.copied.wait(ctx)
	if err != nil && ctx.Err() == nil { // the copy was stopped, or the disk was full while the changes were planned
		err = copyPages(ctx, d.file, d.src.file, image)
	}
	if err != nil {
		if _, bad := d.src.Digest(ctx); bad != nil { // Digest reads the same bytes, and can name the faulty file
			err = bad
		}
		return sum, err
	}
	size, metas := image, []byte(nil)
	if m != nil {
		size, metas = m.Bytes(), m.Pages()
		if _, err := d.file.WriteAt(metas, 0); err != nil {
			return sum, err
		}
	}
	if m == nil && d.src.compression == "" {
		sum, err = d.src.Digest(ctx)
		if err == nil && sum.Present {
			err = d.proveCopy(ctx, sum)
		}
		if err != nil || sum.Present {
			return sum, err
		}
	}
	h := sha256.New()
	if err := d.hashBlocks(ctx, image, metas, h); err != nil {
		return sum, err
	}
	if err := hashRange(ctx, h, d.file, image, size); err != nil {
		return sum, err
	}
	return appendDigest(d.file, h, size)
}

// proveCopy compares the copy of the whole image with src and appends the digest sum of src: the
// same bytes have the same digest.
func (d *Draft) proveCopy(ctx context.Context, sum Digest) error {
	image := d.src.db.Bytes()
	buffers := sync.Pool{New: func() any { return new([copyBlock]byte) }}
	err := d.src.Parallel(ctx, int((image+copyBlock-1)/copyBlock), func(i int) error {
		at, back := int64(i)*copyBlock, buffers.Get().(*[copyBlock]byte)
		defer buffers.Put(back)
		return d.compareBlock(back[:min(copyBlock, image-at)], at, nil)
	})
	if err == nil {
		_, err = d.file.WriteAt(sum.Image[:], image)
	}
	return err
}

// hashBlocks compares the copy of the image with src, except for the metas at the beginning. Each
// block is hashed while the next one is compared.
func (d *Draft) hashBlocks(ctx context.Context, image int64, metas []byte, h io.Writer) error {
	var hashing sync.WaitGroup
	defer hashing.Wait()
	back, hashed := make([]byte, copyBlock), make([]byte, copyBlock)
	for at := int64(0); at < image; at += copyBlock {
		if err := ctx.Err(); err != nil {
			return err
		}
		back = back[:min(copyBlock, image-at)]
		if err := d.compareBlock(back, at, metas); err != nil {
			return err
		}
		hashing.Wait()
		back, hashed = hashed, back
		block := hashed
		hashing.Go(func() { _, _ = h.Write(block) })
	}
	return nil
}

// compareBlock reads a block of the copy back and compares the block with src, or with the new
// metas at the beginning of the copy.
func (d *Draft) compareBlock(back []byte, at int64, metas []byte) error {
	if n, err := d.file.ReadAt(back, at); n < len(back) {
		return fmt.Errorf("read back at %d: %w", at+int64(n), err)
	}
	metas = metas[min(int(at), len(metas)):] // metas in this block and later
	same := min(len(back), len(metas))
	if !bytes.Equal(back[:same], metas[:same]) || !bytes.Equal(back[same:], d.src.data[at:][same:len(back)]) {
		return fmt.Errorf("%w: bytes at %d are not those that were written", ErrVerify, at)
	}
	d.src.copied.Add(int64(len(back)))
	return nil
}
