package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"os"
)

const (
	copyBlock = 1 << 20 // bytes read, written and read back at a time
	copyRing  = 8       // blocks between the copy and the hash
)

// copyTo copies the image of s into f, with the metas of m where there is one, reads every block back and compares it with what
// was to be there, then hashes what was read back and the new pages behind it, and appends that digest. The copy and the hash
// run at the same time. It returns that digest.
func (s *Snapshot) copyTo(ctx context.Context, f *os.File, m *meta) (Digest, error) {
	h := sha256.New()
	q := newHashQueue(h)
	err := s.copyImage(ctx, f, m, q)
	q.close()
	if err != nil {
		return Digest{}, err
	}
	size := int64(len(s.image))
	if m != nil {
		size = int64(m.highWater) * int64(m.pageSize)
	}
	if err := hashRange(ctx, h, f, int64(len(s.image)), size, make([]byte, copyBlock)); err != nil {
		return Digest{}, err
	}
	return sealed(f, h, size)
}

// sealed appends the digest of the image of that many bytes, which h has seen.
func sealed(f *os.File, h hash.Hash, image int64) (Digest, error) {
	d := Digest{Present: true}
	h.Sum(d.Image[:0])
	if _, err := f.WriteAt(d.Image[:], image); err != nil {
		return Digest{}, err
	}
	_, _ = h.Write(d.Image[:])
	h.Sum(d.File[:0])
	return d, nil
}

func (s *Snapshot) copyImage(ctx context.Context, f *os.File, m *meta, q *hashQueue) error {
	in := make([]byte, copyBlock)
	for at := int64(0); at < int64(len(s.image)); at += copyBlock {
		if err := ctx.Err(); err != nil {
			return err
		}
		b := in[:min(copyBlock, int64(len(s.image))-at)]
		if n, err := s.file.ReadAt(b, at); n < len(b) {
			return s.wrap(fmt.Errorf("read at %d: %w", at+int64(n), err))
		}
		m.over(b, at)
		if _, err := f.WriteAt(b, at); err != nil {
			return err
		}
		startWriteback(f, at, int64(len(b)))
		back := q.buffer(len(b))
		if n, err := f.ReadAt(back, at); n < len(back) {
			return fmt.Errorf("read back at %d: %w", at+int64(n), err)
		}
		if !bytes.Equal(b, back) {
			return fmt.Errorf("%w: bytes at %d are not those that were written", ErrVerify, at)
		}
		q.add(back)
	}
	return nil
}

// over puts both metas over the part of b, which lies at offset at of the image, that they cover: page 0 with the new
// transaction, page 1 with the one before, as bbolt's own copy has them (tx.go, WriteTo). A nil meta changes nothing.
func (m *meta) over(b []byte, at int64) {
	if m == nil || at >= int64(2*m.pageSize) {
		return
	}
	pages := make([]byte, 2*m.pageSize)
	m.put(pages[:m.pageSize], 0)
	older := *m
	older.txid--
	older.put(pages[m.pageSize:], 1)
	copy(b, pages[at:])
}

// hashQueue hashes blocks in order on its own goroutine, with a fixed number of buffers.
type hashQueue struct {
	free chan []byte
	full chan []byte
	done chan struct{}
}

func newHashQueue(h hash.Hash) *hashQueue {
	q := &hashQueue{free: make(chan []byte, copyRing), full: make(chan []byte, copyRing), done: make(chan struct{})}
	for range copyRing {
		q.free <- make([]byte, copyBlock)
	}
	go func() {
		defer close(q.done)
		for b := range q.full {
			_, _ = h.Write(b)
			q.free <- b[:copyBlock]
		}
	}()
	return q
}

func (q *hashQueue) buffer(n int) []byte { return (<-q.free)[:n] }
func (q *hashQueue) add(b []byte)        { q.full <- b }

// close waits until everything was hashed.
func (q *hashQueue) close() {
	close(q.full)
	<-q.done
}
