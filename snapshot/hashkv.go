package snapshot

import (
	"context"
	"hash/crc32"
)

// HashKV is what a server that starts on the file answers to "endpoint hashkv" at its current revision (etcd
// server/storage/mvcc/hash.go): CRC-32C over the name of the bucket and each record, but of those at or below the compact revision
// only the ones that are still live. A server ends a compaction that was only scheduled, and takes the record of --bump-revision
// for one of a key of no bytes.
func (s *Snapshot) HashKV(ctx context.Context) (uint32, error) {
	x, err := s.index(ctx)
	if err != nil {
		return 0, err
	}
	var unnamed Revision
	for rec, err := range s.Records(ctx) {
		if err != nil {
			return 0, err
		}
		if len(rec.Key) == 0 {
			unnamed = rec.Revision
		}
	}
	h := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	_, _ = h.Write([]byte("key"))
	ordinal := uint32(0)
	err = s.guard(func() error {
		return s.entries(ctx, "key", func(k, v []byte) error {
			live := x.isLive(ordinal)
			ordinal++
			rev, _, err := parseRevisionKey(k)
			if err != nil || (rev.Main <= max(x.finished, x.scheduled) && !live && rev != unnamed) {
				return err
			}
			_, _ = h.Write(k)
			_, _ = h.Write(v)
			return nil
		})
	})
	return h.Sum32(), s.wrap(err)
}
