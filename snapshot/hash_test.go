package snapshot

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"math/big"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
)

// TestHashKV compares the hash of each recorded snapshot, and of a server restored from the
// snapshot, with the hash from the recorded server.
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

// TestContentHash checks that the hash ignores order, revisions, deletions and history, but not a
// key, a value, or the boundary between both.
func TestContentHash(t *testing.T) {
	hash := func(script string) [32]byte {
		t.Helper()
		return must(open(t, etcdtest.Build(t, script)).ContentHash(t.Context()))(t)
	}
	want := hash("put /a 1\nput /b 2\n")
	require.Equal(t, want, hash("put /b 2\nput /a 0\nput /c 3\ndel /c\nput /a 1\n"))
	for _, other := range []string{"put /a 1\n", "put /a 2\nput /b 1\n", "put /a 1\nput /b 22\n",
		"put /a 1\nput /b2 2\n", "put /a 1\nput /b 2\nput /c 3\n"} {
		require.NotEqual(t, want, hash(other), "%s", other)
	}

	// the definition, step by step
	sum := new(big.Int)
	for _, kv := range [][2]string{{"/a", "1"}, {"/b", "2"}} {
		digest := sha256.Sum256(append(binary.BigEndian.AppendUint64(nil, uint64(len(kv[0]))), kv[0]+kv[1]...))
		sum.Add(sum, new(big.Int).SetBytes(digest[:]))
	}
	sum.Mod(sum, new(big.Int).Lsh(big.NewInt(1), 256))
	require.Equal(t, sum.FillBytes(make([]byte, 32)), want[:])
}
