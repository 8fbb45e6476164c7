package snapshot

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func hashKV(t testing.TB, s *Snapshot) uint32 {
	t.Helper()
	sum, err := s.HashKV(context.Background())
	require.NoError(t, err)
	return sum
}

// TestHashKV compares our reading of each recorded snapshot with the hash its server gave of
// itself.
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
