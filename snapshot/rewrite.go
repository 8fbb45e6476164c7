package snapshot

import (
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"os"
)

// bucketSource is a bucket to be written: entries yields its elements in key order, the same each time.
type bucketSource struct {
	name     string
	sequence uint64
	entries  func() iter.Seq2[element, error]
}

// inlineShare is the part of a page that an inline bucket takes at most (bbolt bucket.go, maxInlineBucketSize).
const inlineShare = 4

// bucket writes the pages of src and returns the value that the root bucket has for it: a header, or the whole of a bucket that is
// small enough to be inline. The key bucket never is: a file has four pages at least.
func (w *pageWriter) bucket(src bucketSource) ([]byte, error) {
	lb := newLeafBuilder(w)
	for el, err := range src.entries() {
		if err == nil {
			err = lb.add(el)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(lb.leaves) == 0 && lb.size <= w.pageSize/inlineShare && src.name != "key" {
		p := make([]byte, lb.size)
		fillPage(p, 0, flagLeaf, 1, lb.cur)
		return append(bucketHeader(0, src.sequence), p...), nil
	}
	root, err := lb.root()
	return bucketHeader(root, src.sequence), err
}

// bucketHeader is the value of a bucket that is not inline, and the front of one that is, with root 0.
func bucketHeader(root, sequence uint64) []byte {
	return le.AppendUint64(le.AppendUint64(nil, root), sequence)
}

// writeNew writes a file of new pages alone to o: the buckets of sources, which are sorted by name, with the page size, root sequence
// and transaction of m. It then reads the file back and compares it with sources, while it computes the digest. The caller closes
// what it returns.
func writeNew(ctx context.Context, o output, m meta, sources []bucketSource) (*Snapshot, Digest, error) {
	w := &pageWriter{out: eager{o.file}, pageSize: m.pageSize, next: 2}
	root := newLeafBuilder(w)
	for _, src := range sources {
		value, err := w.bucket(src)
		if err == nil {
			err = root.addBucket(src.name, value)
		}
		if err != nil {
			return nil, Digest{}, err
		}
	}
	var err error
	if m.root, err = root.root(); err != nil {
		return nil, Digest{}, err
	}
	m.freelist, m.highWater = noFreelist, w.next
	if err := w.flush(); err != nil {
		return nil, Digest{}, err
	}
	metas := make([]byte, 2*m.pageSize)
	m.over(metas, 0)
	if _, err := o.file.WriteAt(metas, 0); err != nil {
		return nil, Digest{}, err
	}
	return proveNew(ctx, o, int64(m.highWater)*int64(m.pageSize), sources)
}

// proveNew compares the written file, whose image has that many bytes, with sources and gives it its digest. Both take a pass over
// the file, at the same time; until they end there is a digest of zeros, without which the file would not be a snapshot.
func proveNew(ctx context.Context, o output, image int64, sources []bucketSource) (proved *Snapshot, d Digest, err error) {
	if _, err := o.file.WriteAt(make([]byte, sha256.Size), image); err != nil {
		return nil, d, err
	}
	out, err := o.open(ctx)
	if err != nil {
		return nil, d, fmt.Errorf("%w: %w", ErrVerify, err)
	}
	defer func() {
		if proved == nil { // a panic of a source among others
			_ = out.Close()
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	h := sha256.New()
	hashed := make(chan error, 1)
	go func() { hashed <- hashRange(ctx, h, o.file, 0, image, make([]byte, copyBlock)) }()
	if err := out.guard(func() error { return out.checkNew(ctx, sources) }); err != nil {
		cancel()
		<-hashed
		return nil, d, err
	}
	if err := <-hashed; err != nil {
		return nil, d, err
	}
	if d, err = sealed(o.file, h, image); err != nil {
		return nil, d, err
	}
	return out, d, nil
}

// eager is a file whose pages are sent to the disk as they are written.
type eager struct{ *os.File }

func (f eager) WriteAt(b []byte, at int64) (int, error) {
	n, err := f.File.WriteAt(b, at)
	startWriteback(f.File, at, int64(n))
	return n, err
}
