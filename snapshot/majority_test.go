package snapshot

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot/internal/wal"
)

// TestMajority reads three members that were killed together. Of one log, the entries it knows to
// be committed count; of two or three, all entries that two of the three members have.
func TestMajority(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, etcdtest.UnpackMember(filepath.Join("..", "testdata", "wal", "three36.tar.zst"), dir))
	keep(t, dir)
	path := func(name string) string { return filepath.Join(dir, name) }
	for _, row := range []struct {
		member string
		peers  []string
		entry  uint64
	}{
		{"a", nil, 7100}, {"b", nil, 7104}, {"c", nil, 7100},
		{"a", []string{"a"}, 7100}, // itself is no further member
		{"a", []string{"b"}, 7109}, {"b", []string{"a"}, 7109}, {"c", []string{"a", "b"}, 7109},
	} {
		var peers []string
		for _, peer := range row.peers {
			peers = append(peers, path(peer))
		}
		s := must(Open(t.Context(), path(row.member), Config{Peers: peers}))(t)
		require.Equal(t, row.entry, s.DataDir().Entry, "%v", row)
		require.Equal(t, 7109-row.entry, s.DataDir().Uncommitted)
		require.NoError(t, s.Close())
	}

	// the log of the third member ends before the last entries: a majority has 7109. With a later
	// term known to a holder, only the known commit of another member counts.
	a := must(wal.Scan(t.Context(), filepath.Join(path("a"), "member", "wal"), 0))(t)
	one := &tail{log: a, end: 7100}
	voters := []uint64{a.Node, 1, 2}
	require.EqualValues(t, 7100, must(one.majority(t.Context(), nil, voters))(t))
	a.Term++
	voters = nil
	for _, name := range []string{"a", "b", "c"} {
		voters = append(voters, must(wal.Scan(t.Context(), filepath.Join(path(name), "member", "wal"), 0))(t).Node)
	}
	require.EqualValues(t, 7104, must(one.majority(t.Context(), []string{path("b")}, voters))(t))
	require.EqualValues(t, 7109, must(one.majority(t.Context(), []string{path("b"), path("c")}, voters))(t))
}
