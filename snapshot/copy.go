package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"iter"
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

// Foresee begins the digest of the output in the background, as if the changes and leases were all.
// Write completes that digest if the output gets the same meta pages, and otherwise computes
// another. A digest is half of the work after the plan, on one core.
func (d *Draft) Foresee(ctx context.Context, changes iter.Seq2[Change, error], leases []Lease) {
	var m *bolt.Meta
	planned := &Draft{src: d.src, changes: changes}
	err := d.src.Guard(func() (err error) {
		if planned.x, err = d.src.index(ctx); err == nil {
			planned.grants, err = grantEntries(leases)
		}
		if err == nil {
			m, err = planned.layOut(ctx, nowhere{}, newAppender(planned.x, nil))
		}
		return err
	})
	if err == nil && m != nil { // Write finds the same error
		d.hashOld(m)
	}
}

// nowhere is a writer that keeps nothing.
type nowhere struct{}

func (nowhere) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }

// hashOld begins the hash of the meta pages of m, nil for those of src, and the old pages.
func (d *Draft) hashOld(m *bolt.Meta) {
	if d.hashed != nil {
		d.hashed.stop()
	}
	var metas []byte
	if m != nil {
		metas = m.Pages()
	}
	d.foreseen = m
	d.hashed = newPass(func(ctx context.Context) (hash.Hash, error) {
		h := sha256.New()
		_, _ = h.Write(metas)
		return h, d.src.hashMapped(ctx, h, int64(len(metas)), d.src.db.Bytes(), nil)
	})
	d.hashed.start()
}

// proveImage waits for the copy of the image of src, overwrites the metas with those of m unless m
// is nil, reads every block back and compares the blocks. proveImage appends the digest of the copy
// and of the new pages after the copy.
func (d *Draft) proveImage(ctx context.Context, m *bolt.Meta) (sum Digest, err error) {
	image := d.src.db.Bytes()
	same := m == nil && d.src.compression == "" && d.src.HasDigest() // as src
	if !same && (d.hashed == nil || m == nil || d.foreseen == nil || *d.foreseen != *m) {
		d.hashOld(m)
	}
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
	if same {
		if sum, err = d.src.Digest(ctx); err == nil {
			err = d.compareCopy(ctx, nil)
		}
		if err == nil {
			_, err = d.file.WriteAt(sum.Image[:], image)
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
	if err := d.compareCopy(ctx, metas); err != nil {
		return sum, err
	}
	h, err := d.hashed.wait(ctx)
	if err != nil {
		return sum, err
	}
	if err := hashRange(ctx, h, d.file, image, size); err != nil {
		return sum, err
	}
	return appendDigest(d.file, h, size)
}

// compareCopy reads the copy of the image back and compares it with src, and its beginning with the
// new metas.
func (d *Draft) compareCopy(ctx context.Context, metas []byte) error {
	image := d.src.db.Bytes()
	buffers := sync.Pool{New: func() any { return new([copyBlock]byte) }}
	return d.src.Parallel(ctx, int((image+copyBlock-1)/copyBlock), func(i int) error {
		at, back := int64(i)*copyBlock, buffers.Get().(*[copyBlock]byte)
		defer buffers.Put(back)
		return compareBlock(d, back[:min(copyBlock, image-at)], at, metas)
	})
}

// compareBlock reads a block of the copy d back and compares the block with src, or with the new
// metas at the beginning of the copy.
func compareBlock(d *Draft, back []byte, at int64, metas []byte) error {
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
