package snapshot_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot"
)

// Order, revisions, deletions and history make no difference; a key, a value, or where one ends and
// the other begins does.
func TestContentHash(t *testing.T) {
	hash := func(script string) [32]byte {
		t.Helper()
		s, err := snapshot.Open(context.Background(), etcdtest.Build(t, script), snapshot.Config{})
		require.NoError(t, err)
		defer s.Close()
		h, err := s.ContentHash(context.Background())
		require.NoError(t, err)
		return h
	}
	want := hash("put /a 1\nput /b 2\n")
	require.Equal(t, want, hash("put /b 2\nput /a 0\nput /c 3\ndel /c\nput /a 1\n"))
	for _, other := range []string{"put /a 1\n", "put /a 2\nput /b 1\n", "put /a 1\nput /b 22\n", "put /a 1\nput /b2 2\n", "put /a 1\nput /b 2\nput /c 3\n"} {
		require.NotEqual(t, want, hash(other), "%s", other)
	}

	// the definition, word by word
	sum := new(big.Int)
	for _, kv := range [][2]string{{"/a", "1"}, {"/b", "2"}} {
		digest := sha256.Sum256(append(binary.BigEndian.AppendUint64(nil, uint64(len(kv[0]))), kv[0]+kv[1]...))
		sum.Add(sum, new(big.Int).SetBytes(digest[:]))
	}
	sum.Mod(sum, new(big.Int).Lsh(big.NewInt(1), 256))
	require.Equal(t, sum.FillBytes(make([]byte, 32)), want[:])
}
