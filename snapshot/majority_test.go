package snapshot

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	etcdwal "go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

// TestMajority reads three members that were killed together. Of one log, the entries it knows to
// be committed count; of two or three, all entries that two of the three members have.
func TestMajority(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, etcdtest.UnpackMember(filepath.Join("..", "testdata", "wal", "three36.tar.zst"), dir))
	etcdtest.Keep(t, dir)
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
}

// voter is a member with a crafted database and log: the database has entry 1, or nothing if it
// has neither members nor a raft state.
type voter struct {
	id, term, commit uint64 // term 0: a log without a state
	voters, learners []uint64
	state            string // raft state
	entries          []*raftpb.Entry
}

// dir writes the data directory.
func (m voter) dir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "member", "snap"), 0o700))
	path := filepath.Join(dir, "member", "snap", "db")
	require.NoError(t, os.Rename(victim(t, fixture(t)), path))
	db := must(bbolt.Open(path, 0o600, nil))(t)
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		require.NoError(t, tx.DeleteBucket([]byte("members")))
		members := must(tx.CreateBucket([]byte("members")))(t)
		for _, id := range slices.Concat(m.voters, m.learners) {
			value := fmt.Sprintf(`{"id":%d,"isLearner":%t}`, id, slices.Contains(m.learners, id))
			require.NoError(t, members.Put(fmt.Appendf(nil, "%x", id), []byte(value)))
		}
		meta := map[string][]byte{"consistent_index": make([]byte, 8), "term": make([]byte, 8)}
		if len(m.voters) > 0 {
			meta["consistent_index"][7], meta["term"][7] = 1, 2
		}
		require.NoError(t, tx.Bucket([]byte(mvcc.MetaBucket)).Delete([]byte("confState")))
		if m.state != "" {
			meta["confState"] = []byte(m.state)
		}
		for k, v := range meta {
			require.NoError(t, tx.Bucket([]byte(mvcc.MetaBucket)).Put([]byte(k), v))
		}
		return nil
	}))
	require.NoError(t, db.Close())
	metadata := must(proto.Marshal(&pb.Metadata{NodeID: &m.id, ClusterID: proto.Uint64(9)}))(t)
	w := must(etcdwal.Create(zap.NewNop(), filepath.Join(dir, "member", "wal"), metadata))(t)
	require.NoError(t, w.Save(&raftpb.HardState{Term: &m.term, Commit: &m.commit}, m.entries))
	require.NoError(t, w.Close())
	return dir
}

// tenEntries returns ten entries of term 2: puts of a value, and members that are added.
func tenEntries(t testing.TB, value string, added map[uint64]uint64) (all []*raftpb.Entry) {
	for n := uint64(1); n <= 10; n++ {
		put := &pb.PutRequest{Key: fmt.Appendf(nil, "k%d", n), Value: []byte(value)}
		e := &raftpb.Entry{Index: proto.Uint64(n), Term: proto.Uint64(2),
			Data: must(proto.Marshal(&pb.InternalRaftRequest{Put: put}))(t)}
		if id := added[n]; id != 0 {
			e.Type = raftpb.EntryConfChange.Enum()
			e.Data = must(proto.Marshal(&raftpb.ConfChange{Id: &n, NodeId: &id}))(t)
		}
		all = append(all, e)
	}
	return all
}

// TestVoters checks which entries of crafted members count. All logs have ten entries, and most
// know that five are committed.
func TestVoters(t *testing.T) {
	const three = `{"voters":[1,2,3]}`
	ids := []uint64{1, 2, 3, 4, 5}
	for name, c := range map[string]struct {
		of    voter
		peers []uint64
		peer  func(*voter) // changes the peers
		entry uint64
		text  string // of the error
	}{
		"a lone voter":              {of: voter{voters: ids[:1], state: `{"voters":[1]}`}, entry: 10},
		"a lone voter of etcd 3.4":  {of: voter{voters: ids[:1]}, entry: 10},
		"one of three":              {of: voter{voters: ids[:3], state: three}, entry: 5},
		"two of three":              {of: voter{voters: ids[:3], state: three}, peers: ids[1:2], entry: 10},
		"restored, of a lone voter": {of: voter{voters: ids[:3], state: `{"voters":[1]}`}, entry: 5},
		"restored, two of three":    {of: voter{voters: ids[:3], state: `{"voters":[1]}`}, peers: ids[1:2], entry: 10},
		"restored, two of five":     {of: voter{voters: ids, state: three}, peers: ids[1:2], entry: 5},
		"restored, three of five":   {of: voter{voters: ids, state: three}, peers: ids[1:3], entry: 10},
		"restored as a lone voter":  {of: voter{voters: ids[:1], state: three}, entry: 5},
		"restored, with other IDs":  {of: voter{voters: ids[:3], state: `{"voters":[7]}`}, peers: ids[1:2], entry: 10},
		"promoted members":          {of: voter{voters: ids[:1], learners: ids[1:3], state: three}, entry: 5},
		"a joint change": {of: voter{voters: ids[:3], state: `{"voters":[1,2,3],"voters_outgoing":[3,4,5]}`},
			peers: ids[1:2], entry: 5},

		"a learner and a voter": {of: voter{id: 4, voters: ids[:3], learners: ids[3:4], state: three},
			peers: ids[:1], entry: 5},
		"a learner and two voters": {of: voter{id: 4, voters: ids[:3], learners: ids[3:4], state: three},
			peers: ids[:2], entry: 10},
		"a removed member and a voter": {of: voter{id: 4, voters: ids[:3], state: three}, peers: ids[:1], entry: 5},

		"a member is added": {of: voter{voters: ids[:3], state: three,
			entries: tenEntries(t, "", map[uint64]uint64{7: 4})}, peers: ids[1:2], entry: 7},
		"a lone voter adds one": {of: voter{voters: ids[:1],
			entries: tenEntries(t, "", map[uint64]uint64{7: 2})}, entry: 7},
		"a lone voter adds one who knows more": {of: voter{voters: ids[:1],
			entries: tenEntries(t, "", map[uint64]uint64{7: 2})}, peers: ids[1:2],
			peer: func(m *voter) { m.commit = 9 }, entry: 9},
		"a new cluster of one": {of: voter{entries: tenEntries(t, "", map[uint64]uint64{1: 1})}, entry: 10},
		"a new cluster of two": {of: voter{entries: tenEntries(t, "", map[uint64]uint64{1: 1, 2: 2})}, entry: 5},
		"no member":            {of: voter{state: three}, peers: ids[1:3], entry: 5},

		"a later term": {of: voter{voters: ids[:3]}, peers: ids[1:2], peer: func(m *voter) { m.term = 3 }, entry: 5},
		"a log without a state": {of: voter{voters: ids[:3]}, peers: ids[1:2],
			peer: func(m *voter) { m.term, m.commit = 0, 0 }, entry: 5},
		"other data": {of: voter{voters: ids[:3]}, peers: ids[1:2],
			peer: func(m *voter) { m.entries = tenEntries(t, "other", nil) }, text: "entry 6 of term 2 has other data"},
	} {
		t.Run(name, func(t *testing.T) {
			m := c.of
			m.term, m.commit = 2, 5
			if m.id == 0 {
				m.id = 1
			}
			if m.entries == nil {
				m.entries = tenEntries(t, "", nil)
			}
			var paths []string
			for _, id := range c.peers {
				p := m
				p.id = id
				if c.peer != nil {
					c.peer(&p)
				}
				paths = append(paths, p.dir(t))
			}
			s, err := Open(t.Context(), m.dir(t), Config{Peers: paths})
			if c.text != "" {
				var peer *PeerError
				require.ErrorAs(t, err, &peer)
				require.Equal(t, paths[0], peer.Path)
				require.ErrorContains(t, err, c.text)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.entry, s.DataDir().Entry)
			require.NoError(t, s.Close())
		})
	}
}

// TestRunningPeer refuses a member that an etcd uses.
func TestRunningPeer(t *testing.T) {
	m := voter{id: 1, term: 2, commit: 5, voters: []uint64{1, 2, 3}, entries: tenEntries(t, "", nil)}
	own := m.dir(t)
	m.id = 2
	other := m.dir(t)
	f := must(os.Open(filepath.Join(other, "member", "snap", "db")))(t)
	defer f.Close()
	require.NoError(t, unix.Flock(int(f.Fd()), unix.LOCK_EX))
	_, err := Open(t.Context(), own, Config{Peers: []string{other}})
	require.ErrorIs(t, err, ErrRunning)
	require.ErrorContains(t, err, other)
}
