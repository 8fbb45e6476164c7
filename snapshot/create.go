package snapshot

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"os"

	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
)

// create writes a file of new pages alone: the buckets of sources, which are sorted by name, with
// page size, sequence and transaction of m. It then reads the file back and compares it with
// sources, while it computes the digest. The caller closes what it returns.
func (o output) create(
	ctx context.Context, m bolt.Meta, sources []bolt.Source,
) (proved *Snapshot, d Digest, err error) {
	m, err = bolt.Create(eager{o.file}, m, sources)
	if err == nil {
		// A digest of zeros makes it a snapshot until the true one is known.
		_, err = o.file.WriteAt(make([]byte, sha256.Size), m.Bytes())
	}
	if err != nil {
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
	if d, err = o.prove(ctx, out, sources); err != nil {
		return nil, d, err
	}
	return out, d, nil
}

// prove compares the written file with sources and gives it its digest, in two passes over the file
// at the same time.
func (o output) prove(ctx context.Context, out *Snapshot, sources []bolt.Source) (d Digest, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	h := sha256.New()
	hashed := make(chan error, 1)
	go func() { hashed <- hashRange(ctx, h, o.file, 0, out.db.Bytes()) }()
	if err = out.guard(func() error { return checkNew(ctx, out, sources) }); err != nil {
		cancel()
	}
	if err = cmp.Or(err, <-hashed); err != nil {
		return d, err
	}
	return o.appendDigest(h, out.db.Bytes())
}

// checkNew proves that s, a file of new pages alone, is sound and holds the entries of sources and
// not one byte more.
func checkNew(ctx context.Context, s *Snapshot, sources []bolt.Source) error {
	if len(s.db.Buckets) != len(sources) {
		return fmt.Errorf("%w: %d buckets, want %d", ErrVerify, len(s.db.Buckets), len(sources))
	}
	if s.db.Free != 0 {
		return fmt.Errorf("%w: %d pages are not in use", ErrVerify, s.db.Free)
	}
	for i, src := range sources {
		if err := compareBucket(s.db, &s.db.Buckets[i], src); err != nil {
			return err
		}
	}
	err := s.db.CheckTight(ctx)
	if err == nil {
		err = s.Sound(ctx)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrVerify, err)
	}
	return nil
}

// eager is a file whose pages are sent to the disk as they are written.
type eager struct{ *os.File }

func (f eager) WriteAt(b []byte, at int64) (int, error) {
	n, err := f.File.WriteAt(b, at)
	startWriteback(f.File, at, int64(n))
	return n, err
}
