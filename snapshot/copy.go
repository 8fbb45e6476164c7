package snapshot

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"os"

	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
)

const copyBlock = 1 << 20    // bytes read and hashed at once
const cacheBlock = 256 << 10 // bytes copied and compared at once, in the cache of a processor

// copyImage copies the image of src to the beginning of the output, reads every block back, and
// compares the block with src.
func (d *Draft) copyImage(ctx context.Context) error {
	image, back := d.src.db.Bytes(), make([]byte, cacheBlock)
	for at := int64(0); at < image; {
		if err := ctx.Err(); err != nil {
			return err
		}
		copied, err := copyRange(d.file, d.src.file, at, min(cacheBlock, image-at))
		if err == nil && copied == 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return fmt.Errorf("copy at %d: %w", at, err)
		}
		if err := compareFile(d.file, back[:copied], at, d.src.data[at:]); err != nil {
			return err
		}
		if at += copied; at%(8*copyBlock) == 0 || at == image {
			startWriteback(d.file, 0, at)
		}
	}
	return nil
}

// compareFile reads a block of the output back and compares the block with the beginning of want.
func compareFile(f io.ReaderAt, back []byte, at int64, want []byte) error {
	if n, err := f.ReadAt(back, at); n < len(back) {
		return fmt.Errorf("read back at %d: %w", at+int64(n), err)
	}
	if !bytes.Equal(back, want[:len(back)]) {
		return fmt.Errorf("%w: bytes at %d are not those that were written", ErrVerify, at)
	}
	return nil
}

// copyThrough copies a range through memory.
func copyThrough(out, in *os.File, at, n int64) (int64, error) {
	return io.Copy(io.NewOffsetWriter(out, at), struct{ io.Reader }{io.NewSectionReader(in, at, n)})
}

// Foresee begins to check src, to write the new pages and to hash the output in the background.
// Write uses the pages if same returns true: the changes and leases are still these.
func (d *Draft) Foresee(changes iter.Seq2[Change, error], leases []Lease, same func() bool) {
	d.stopLayout()
	planned := &Draft{src: d.src, file: d.file, changes: changes}
	d.same = same
	d.sound.start()
	d.foreseen = newPass(func(ctx context.Context) (l layout, err error) {
		defer func() {
			if r := recover(); r != nil { // of changes; Write panics again, where the caller sees it
				err = fmt.Errorf("panic: %v", r)
			}
		}()
		err = d.src.Guard(func() (err error) {
			if planned.x, err = d.src.index(ctx); err == nil {
				planned.grants, err = grantEntries(leases)
			}
			if err == nil {
				l, err = planned.layOut(ctx)
			}
			return err
		})
		if err == nil { // Write finds the same error
			d.hashOld(l.meta)
		}
		return l, err
	})
	d.foreseen.start()
}

// hashOld begins the hash of the meta pages of m, nil for those of src, and the old pages, unless
// the output is as src, whose digest is known.
func (d *Draft) hashOld(m *bolt.Meta) {
	var metas []byte
	if m != nil {
		metas = m.Pages()
	} else if d.src.compression == "" && d.src.HasDigest() {
		return
	}
	image := d.src.db.Bytes()
	d.src.rehashed.Store(int64(len(metas)))
	d.hashed = newPass(func(ctx context.Context) (hash.Hash, error) {
		h := sha256.New()
		_, _ = h.Write(metas)
		return h, d.src.hashMapped(ctx, h, int64(len(metas)), image, &d.src.rehashed)
	})
	d.hashed.start()
}

// finishImage waits for the copy of the image of src, overwrites the metas with those of m unless m
// is nil, and begins the digest of the copy and of the new pages after the copy.
func (d *Draft) finishImage(ctx context.Context, m *bolt.Meta) (*pass[Digest], error) {
	_, err := d.copied.wait(ctx)
	if err != nil && ctx.Err() == nil && !errors.Is(err, ErrVerify) { // stopped, or the disk was full during the plan
		err = d.copyImage(ctx)
	}
	if err != nil {
		if _, bad := d.src.Digest(ctx); bad != nil { // Digest reads the same bytes, and can name the faulty file
			err = bad
		}
		return nil, err
	}
	size := d.src.db.Bytes()
	if m != nil {
		size = m.Bytes()
		if _, err = d.file.WriteAt(m.Pages(), 0); err == nil {
			err = compareFile(d.file, make([]byte, 2*m.PageSize), 0, m.Pages())
		}
		if err != nil {
			return nil, err
		}
	}
	if d.hashed == nil { // as src
		sum, err := d.src.Digest(ctx)
		return knownDigest(sum), cmp.Or(err, d.file.Truncate(size+sha256.Size))
	}
	return beginDigest(d.file, d.hashed, d.src.db.Bytes(), size)
}

// beginDigest begins the digest of an image of a size in f. hashed already has the bytes before the
// offset from. Until check writes the digest, the file ends with zeros, and so can be opened.
func beginDigest(f *os.File, hashed *pass[hash.Hash], from, size int64) (*pass[Digest], error) {
	sum := newPass(func(ctx context.Context) (Digest, error) {
		h, err := hashed.wait(ctx)
		if err == nil {
			err = hashRange(ctx, h, f, from, size)
		}
		if err != nil {
			return Digest{}, err
		}
		sum := Digest{Image: [sha256.Size]byte(h.Sum(nil)), Present: true}
		_, _ = h.Write(sum.Image[:])
		h.Sum(sum.File[:0])
		return sum, nil
	})
	sum.start()
	return sum, f.Truncate(size + sha256.Size)
}
