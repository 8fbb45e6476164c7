package snapshot

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

// TestHashKV compares our reading of each recorded snapshot, and a server restored from it, with
// the hash that its server gave of itself.
func TestHashKV(t *testing.T) {
	for _, release := range releases() {
		path := recorded(t, release)
		b := must(os.ReadFile(strings.TrimSuffix(path, ".db") + ".hashkv.json"))(t)
		var answers []struct {
			HashKV struct {
				Header struct {
					Revision int64 `json:"revision"`
				} `json:"header"`
				Hash            uint32 `json:"hash"`
				CompactRevision int64  `json:"compact_revision"`
			}
		}
		require.NoError(t, json.Unmarshal(b, &answers))
		recorded := answers[0].HashKV
		require.Equal(t, int64(27), recorded.CompactRevision, release)
		want := Restored{Revision: recorded.Header.Revision, CompactRevision: 27, HashKV: recorded.Hash}
		got := must(open(t, path).Restored(t.Context(), 0))(t)
		require.Equal(t, want, got, release)
		server := etcdtest.Start(t, etcdtest.Restore(t, path))
		hash, rev, compacted := etcdtest.HashKV(t, server, 0)
		require.Equal(t, want, Restored{Revision: rev, CompactRevision: compacted, HashKV: hash}, release)
	}
}
