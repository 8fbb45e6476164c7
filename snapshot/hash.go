package snapshot

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"
	"math/big"

	"github.com/etcdshift/etcdshift/internal/stream"
)

// ContentHash identifies the live keys and their stored values, regardless of order, revisions,
// leases and history: etcd answers the same keys and values for files with the same hash. HashKV
// and the hashes of etcdutl differ between two saves of the same content.
//
// It is the sum, modulo 2^256, of the SHA-256 of each record (the length of the key in 8 bytes, the
// key, the value): proof against accident, not against records made up to meet it.
func (s *Snapshot) ContentHash(ctx context.Context) (out [sha256.Size]byte, err error) {
	var sum, one big.Int
	item := func(rec *Record) (summed, int) { return summed{key: rec.Key, value: rec.Value}, len(rec.Value) }
	err = stream.Each(stream.Ahead(s.Guard, s.Live(ctx, nil), item, (*summed).hash), func(r *summed) error {
		sum.Add(&sum, one.SetBytes(r.digest[:]))
		return nil
	})
	one.Lsh(big.NewInt(1), 8*sha256.Size)
	sum.Mod(&sum, &one).FillBytes(out[:])
	return out, err
}

// summed is a record of ContentHash.
type summed struct {
	key, value []byte
	digest     [sha256.Size]byte
}

func (r *summed) hash() {
	h := sha256.New()
	_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(r.key))))
	_, _ = h.Write(r.key)
	_, _ = h.Write(r.value)
	h.Sum(r.digest[:0])
}

// HashKV is the answer to "endpoint hashkv" at the current revision of a server that starts on the
// file (etcd server/storage/mvcc/hash.go): CRC-32C over the name of the bucket and each record, up
// to the compact revision live ones alone. A server ends a scheduled compaction first, and the
// record of --bump-revision has a key of no bytes for it.
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
