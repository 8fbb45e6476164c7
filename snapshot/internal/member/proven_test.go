package member

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot/internal/wal"
)

// TestProven decides by the logs of three members that were killed together; the logs of two have
// entry 7109.
func TestProven(t *testing.T) {
	dir := t.TempDir()
	recorded := filepath.Join("..", "..", "..", "testdata", "wal", "three36.tar.zst")
	require.NoError(t, etcdtest.UnpackMember(recorded, dir))
	scan := func(dir string) *wal.Log {
		log, err := wal.Scan(t.Context(), dir, 0)
		require.NoError(t, err)
		return log
	}

	// with a later term known to a holder, only the known commit of another member counts; or the
	// logs of all voters, if they end with one term.
	logs := map[string]*wal.Log{}
	var peers []peer
	var ids []uint64
	for _, name := range []string{"a", "b", "c"} {
		logs[name] = scan(filepath.Join(dir, name, "member", "wal"))
		peers, ids = append(peers, peer{name, logs[name]}), append(ids, logs[name].Node)
	}
	one := &Tail{Log: logs["a"], End: 7100, change: 7109}
	proven := func(peers []peer, voters ...[]uint64) uint64 {
		last, err := one.proven(t.Context(), peers, voters)
		require.NoError(t, err)
		return last
	}
	require.EqualValues(t, 7100, proven(nil, []uint64{ids[0], 1, 2}))
	logs["a"].Term++
	require.EqualValues(t, 7104, proven(peers[1:2], ids))
	require.EqualValues(t, 7104, proven(peers[1:], ids))
	logs["b"].Term++
	logs["c"].Term++
	require.EqualValues(t, 7104, proven(peers[1:2], ids))
	require.EqualValues(t, 7109, proven(peers[1:], ids))
}
