package snapshot

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"
	"math/bits"
)

// ContentHash identifies the live keys and their values as they are stored, regardless of order,
// revisions, leases and history: two files have the same one if etcd would answer both with the
// same keys and values. HashKV and the hashes of etcdutl differ between two saves of the same
// content.
//
// It is the sum, modulo 2^256, of the SHA-256 of each record (the length of the key in 8 bytes, the
// key, the value): proof against accident, not against someone who makes up records to meet it.
func (s *Snapshot) ContentHash(ctx context.Context) (out [sha256.Size]byte, err error) {
	var sum [4]uint64
	h := sha256.New()
	var buf [sha256.Size]byte
	for rec, err := range s.Live(ctx, nil) {
		if err != nil {
			return out, err
		}
		err := s.Guard(func() error {
			h.Reset()
			_, _ = h.Write(binary.BigEndian.AppendUint64(buf[:0], uint64(len(rec.Key))))
			_, _ = h.Write(rec.Key)
			_, _ = h.Write(rec.Value)
			return nil
		})
		if err != nil {
			return out, err
		}
		digest, carry := h.Sum(buf[:0]), uint64(0)
		for i := 3; i >= 0; i-- {
			sum[i], carry = bits.Add64(sum[i], binary.BigEndian.Uint64(digest[8*i:]), carry)
		}
	}
	for i, word := range sum {
		binary.BigEndian.PutUint64(out[8*i:], word)
	}
	return out, nil
}

// HashKV is the answer to "endpoint hashkv" at the current revision of a server that starts on the
// file (etcd server/storage/mvcc/hash.go): CRC-32C over the name of the bucket and each record, but
// of those at or below the compact revision only the ones that are still live. A server ends a
// compaction that was only scheduled, and takes the record of --bump-revision for one of a key of
// no bytes.
func (s *Snapshot) HashKV(ctx context.Context) (uint32, error) {
	x, err := s.index(ctx)
	if err != nil {
		return 0, err
	}
	h := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	_, _ = h.Write([]byte("key"))
	ordinal := uint32(0)
	err = s.entries(ctx, "key", func(k, v []byte) error {
		live := x.isLive(ordinal)
		ordinal++
		rev, _, err := parseRevisionKey(k)
		if err != nil || (rev.Main <= max(x.finished, x.scheduled) && !live && rev != x.unnamed) {
			return err
		}
		_, _ = h.Write(k)
		_, _ = h.Write(v)
		return nil
	})
	return h.Sum32(), err
}
