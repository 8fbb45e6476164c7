package snapshot

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
)

// ContentHash identifies the live keys and their values as they are stored, whatever their order, revisions, leases and history: two
// files have the same one where etcd would answer both with the same keys and values. HashKV and the hashes of etcdutl differ
// between two saves of the same content.
//
// It is the sum, modulo 2^256, of the SHA-256 of each record (the length of the key in 8 bytes, the key, the value): proof against
// accident, not against someone who makes up records to meet it.
func (s *Snapshot) ContentHash(ctx context.Context) ([sha256.Size]byte, error) {
	var sum [4]uint64
	h := sha256.New()
	var buf [sha256.Size]byte
	for rec, err := range s.Live(ctx, nil) {
		if err != nil {
			return [sha256.Size]byte{}, err
		}
		err := s.Guard(func() error {
			h.Reset()
			_, _ = h.Write(binary.BigEndian.AppendUint64(buf[:0], uint64(len(rec.Key))))
			_, _ = h.Write(rec.Key)
			_, _ = h.Write(rec.Value)
			return nil
		})
		if err != nil {
			return [sha256.Size]byte{}, err
		}
		digest, carry := h.Sum(buf[:0]), uint64(0)
		for i := 3; i >= 0; i-- {
			sum[i], carry = bits.Add64(sum[i], binary.BigEndian.Uint64(digest[8*i:]), carry)
		}
	}
	var out [sha256.Size]byte
	for i, word := range sum {
		binary.BigEndian.PutUint64(out[8*i:], word)
	}
	return out, nil
}
