package snapshot

import (
	"context"
	"encoding/json"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// hashKV computes what a server answers to "endpoint hashkv" at the current revision (etcd server/storage/mvcc/hash.go): CRC-32C
// over the name of the bucket and each record, but of those at or below the compact revision only the ones that are still live. A
// server that starts on the file ends a compaction that was only scheduled. It takes the record of --bump-revision for one of a
// key of no bytes.
func hashKV(t testing.TB, s *Snapshot) uint32 {
	t.Helper()
	x, err := s.index(context.Background())
	require.NoError(t, err)
	var unnamed Revision
	for rec, err := range s.Records(context.Background()) {
		require.NoError(t, err)
		if len(rec.Key) == 0 {
			unnamed = rec.Revision
		}
	}
	h := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	_, _ = h.Write([]byte("key"))
	ordinal := 0
	require.NoError(t, s.entries(context.Background(), "key", func(k, v []byte) error {
		live := x.live[ordinal/64]&(1<<(ordinal%64)) != 0
		ordinal++
		rev, _, err := parseRevisionKey(k)
		if rev.Main <= max(x.finished, x.scheduled) && !live && rev != unnamed {
			return err
		}
		_, _ = h.Write(k)
		_, _ = h.Write(v)
		return err
	}))
	return h.Sum32()
}

// TestHashKV compares our reading of each recorded snapshot with the hash its server gave of itself.
func TestHashKV(t *testing.T) {
	for _, release := range []string{"3.4", "3.5", "3.6", "3.7"} {
		path := filepath.Join("..", "testdata", "etcd", "etcd-"+release)
		b, err := os.ReadFile(path + ".hashkv.json")
		require.NoError(t, err)
		var answers []struct {
			HashKV struct {
				Hash            uint32 `json:"hash"`
				CompactRevision int64  `json:"compact_revision"`
			}
		}
		require.NoError(t, json.Unmarshal(b, &answers))
		s := open(t, path+".db")
		require.Equal(t, answers[0].HashKV.Hash, hashKV(t, s), release)
		require.Equal(t, int64(27), answers[0].HashKV.CompactRevision, release)
	}
}
