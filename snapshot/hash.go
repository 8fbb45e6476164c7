package snapshot

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"math/big"
	"sync/atomic"

	"github.com/etcdshift/etcdshift/internal/stream"
	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

// Digest is the SHA-256 of a file.
type Digest struct {
	Image   [sha256.Size]byte // of the database image, equal to the trailer
	File    [sha256.Size]byte // of the file as given, equal to the output of sha256sum
	Present bool              // the file has a digest, equal to Image
}

func knownDigest(d Digest) *pass[Digest] {
	return newPass(func(context.Context) (Digest, error) { return d, nil })
}

// sum computes the digest of the file with an image of the given size.
func (s *Snapshot) sum(ctx context.Context, image int64) (d Digest, err error) {
	h, size := sha256.New(), int64(len(s.data))
	if err := s.hashMapped(ctx, h, 0, image, &s.hashed); err != nil {
		return d, err
	}
	s.hashed.Store(image)
	h.Sum(d.Image[:0])
	if err := hashRange(ctx, h, s.file, image, size); err != nil {
		return d, err
	}
	h.Sum(d.File[:0])
	if !s.raw {
		var trailer [sha256.Size]byte
		if _, err := s.file.ReadAt(trailer[:], image); err != nil {
			return d, fmt.Errorf("read the digest: %w", err)
		}
		if trailer != d.Image {
			return d, fmt.Errorf("%w: the file says %x, its image has %x", ErrDigest, trailer, d.Image)
		}
	}
	if s.compression != "" && !s.isFolder() {
		h.Reset()
		err = hashRange(ctx, h, s.given, 0, s.info.Size())
		h.Sum(d.File[:0])
	}
	d.Present = !s.raw
	return d, err
}

// hashMapped adds the bytes [at, end) of the mapped file to h, without a copy; other readers then
// find the pages mapped. at is the beginning of a page. done counts the bytes. If the
// kernel cannot map the pages, plain reads return the bytes or the error of the disk.
func (s *Snapshot) hashMapped(ctx context.Context, h hash.Hash, at, end int64, done *atomic.Int64) error {
	for ; at < end; at += copyBlock {
		if err := ctx.Err(); err != nil {
			return err
		}
		block := s.data[at:min(at+copyBlock, end)]
		if populate(block) != nil {
			return hashRange(ctx, h, s.file, at, end)
		}
		err := s.guard(func() error { _, err := h.Write(block); return err })
		if err != nil {
			return cmp.Or(hashRange(ctx, sha256.New(), s.file, at, at+int64(len(block))), err)
		}
		done.Add(int64(len(block)))
	}
	return nil
}

// hashRange adds the bytes [from, to) of f to h.
func hashRange(ctx context.Context, h hash.Hash, f io.ReaderAt, from, to int64) error {
	buf := make([]byte, min(copyBlock, to-from))
	for from < to {
		if err := ctx.Err(); err != nil {
			return err
		}
		b := buf[:min(int64(len(buf)), to-from)]
		n, err := f.ReadAt(b, from)
		if n < len(b) {
			if err == nil || err == io.EOF {
				err = ErrTruncated
			}
			return fmt.Errorf("read at %d: %w", from+int64(n), err)
		}
		_, _ = h.Write(b)
		from += int64(n)
	}
	return nil
}

// ContentHash identifies the live keys and their stored values, regardless of order, revisions,
// leases and history: for files with the same hash, etcd returns the same keys and values. HashKV
// and the hashes of etcdutl differ between two saves of the same content.
//
// The hash is the sum, modulo 2^256, of the SHA-256 of each record (the length of the key in 8
// bytes, the key, the value): a protection from accidents, not from forged records.
func (s *Snapshot) ContentHash(ctx context.Context) (out [sha256.Size]byte, err error) {
	var sum, one big.Int
	hash := func(rec *Record, found [][]byte) ([][]byte, error) {
		h := sha256.New()
		_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(rec.Key))))
		_, _ = h.Write(rec.Key)
		_, _ = h.Write(rec.Value)
		return append(found, h.Sum(nil)), nil
	}
	err = stream.Each(Visit(ctx, s, nil, hash), func(digest []byte) error {
		sum.Add(&sum, one.SetBytes(digest))
		return nil
	})
	one.Lsh(big.NewInt(1), 8*sha256.Size)
	sum.Mod(&sum, &one).FillBytes(out[:])
	return out, err
}

// Restored is the answer of a server to "endpoint hashkv" after it starts on a restored file.
type Restored struct {
	Revision        int64  `json:"revision"`        // current revision
	CompactRevision int64  `json:"compactRevision"` // -1 for none, as in a server
	HashKV          uint32 `json:"hashKV"`          // at the current revision
}

// Restored computes the numbers of a server after "etcdutl snapshot restore", with "--bump-revision
// bump --mark-compacted" unless bump is 0 (etcd server/storage/mvcc/hash.go). HashKV is CRC-32C
// over the name of the bucket and each record; up to the compact revision only live records count.
// A server first finishes a scheduled compaction, and treats the record of --bump-revision as one
// with an empty key.
func (s *Snapshot) Restored(ctx context.Context, bump int64) (r Restored, err error) {
	x, err := s.index(ctx)
	if err != nil {
		return r, err
	}
	if bump < 0 || bump > MostBump(x.revision()) {
		return r, fmt.Errorf("snapshot %s: no server can raise revision %d by %d", s.path, x.revision(), bump)
	}
	unnamed, compacted := x.unnamed, x.compacted()
	r = Restored{Revision: x.revision(), CompactRevision: compacted}
	switch {
	case bump > 0: // etcdutl raises the last record, not the current revision
		unnamed = Revision{Main: x.last.Main + bump}
		compacted = max(x.finished, unnamed.Main)
		r.Revision, r.CompactRevision = compacted, compacted
	case compacted == 0:
		r.CompactRevision = -1
	}
	counts, err := x.counted(ctx, compacted, unnamed)
	if err != nil {
		return r, err
	}
	h := newChecksum()
	err = s.read(func() error { return h.add("key", x.entries(ctx, counts)) })
	if bump > 0 {
		_, _ = h.Write(mvcc.AppendRevisionKey(nil, unnamed, false))
	}
	r.HashKV = h.Sum32()
	return r, err
}

// checksums returns Hash and HashKV of Status, from one pass over the file.
func (s *Snapshot) checksums(ctx context.Context) (hash, hashKV uint32, err error) {
	x, err := s.index(ctx)
	if err != nil {
		return 0, 0, err
	}
	counts, err := x.counted(ctx, x.compacted(), x.unnamed)
	if err != nil {
		return 0, 0, err
	}
	all, kv := newChecksum(), newChecksum()
	err = s.read(func() error {
		for i := range s.db.Buckets {
			b := &s.db.Buckets[i]
			from := s.db.Entries(ctx, b)
			if b.Name == "key" {
				_, _ = kv.Write([]byte(b.Name))
				from = x.entries(ctx, func(ordinal uint32, el bolt.Element) (bool, error) {
					counted, err := counts(ordinal, el)
					if counted {
						kv.entry(el)
					}
					return true, err
				})
			}
			if err := all.add(b.Name, from); err != nil {
				return err
			}
		}
		return nil
	})
	return all.Sum32(), kv.Sum32(), err
}

// checksum is the CRC-32C of buckets in etcd's order: the name of each bucket, then keys and
// values.
type checksum struct{ hash.Hash32 }

func newChecksum() checksum { return checksum{crc32.New(crc32.MakeTable(crc32.Castagnoli))} }

func (c checksum) add(bucket string, from entries) error {
	_, _ = c.Write([]byte(bucket))
	return stream.Each(from, func(el bolt.Element) error {
		c.entry(el)
		return nil
	})
}

func (c checksum) entry(el bolt.Element) {
	_, _ = c.Write(el.Key)
	_, _ = c.Write(el.Value)
}

// counted returns a function that selects the entries counted by HashKV: all above the compact
// revision, and below only live entries. Without a live key a server omits only entries removed by
// a compaction, and deletions at the compact revision.
func (x *index) counted(
	ctx context.Context, compacted int64, unnamed Revision,
) (func(uint32, bolt.Element) (bool, error), error) {
	c := &compaction{x: x, rev: compacted, unnamed: unnamed, gone: make(bits, len(x.live))}
	empty := x.alive == 0 && unnamed == Revision{}
	if empty && compacted > x.finished && compacted < x.last.Main {
		if err := c.loadPast(ctx); err != nil {
			return nil, err
		}
	}
	return func(ordinal uint32, el bolt.Element) (bool, error) {
		rev, tombstone, err := mvcc.ParseRevisionKey(el.Key)
		switch {
		case err != nil || rev.Main > compacted:
			return true, err
		case tombstone && (rev.Main == compacted || !empty):
			return false, nil
		case !empty:
			return x.live.has(ordinal) || rev == unnamed, nil
		}
		if compacted == x.finished {
			return true, nil
		}
		return c.keeps(ordinal, el)
	}, nil
}
