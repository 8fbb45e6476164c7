package wal

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	etcd "go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// TestLikeEtcd compares random logs of several files, with entries that later leaders replaced,
// with the entries that etcd's own reader returns.
func TestLikeEtcd(t *testing.T) {
	defer func(n int64) { etcd.SegmentSizeBytes = n }(etcd.SegmentSizeBytes)
	etcd.SegmentSizeBytes = 16 << 10
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 1))
		dir := written(t, r, 100, 10)
		untouched(t, dir)
		w, err := etcd.OpenForRead(zap.NewNop(), dir, &walpb.Snapshot{Index: proto.Uint64(0), Term: proto.Uint64(0)})
		require.NoError(t, err)
		metadata, state, want, err := w.ReadAll()
		require.NoError(t, err)
		_ = w.Close()
		l, err := Scan(t.Context(), dir, 0)
		require.NoError(t, err)
		var m etcdserverpb.Metadata
		require.NoError(t, proto.Unmarshal(metadata, &m))
		require.Equal(t, []uint64{m.GetNodeID(), m.GetClusterID(), state.GetTerm(), state.GetCommit()},
			[]uint64{l.Node, l.Cluster, l.Term, l.Commit})
		require.Greater(t, len(l.files), 2)
		require.NotZero(t, l.Replaced)
		require.Equal(t, want[len(want)-1].GetIndex(), l.Last)
		for _, from := range []uint64{0, 1, l.Last / 2, l.Last, l.Last + 1} {
			rest, err := Scan(t.Context(), dir, from)
			require.NoError(t, err)
			at := max(from, 1)
			for e, err := range rest.Entries(t.Context(), from) {
				require.NoError(t, err)
				one := want[at-1]
				require.Equal(t, []uint64{one.GetIndex(), one.GetTerm()}, []uint64{e.Index, e.Term})
				require.True(t, bytes.Equal(one.GetData(), e.Data))
				again, err := rest.Read(e.At)
				require.NoError(t, err)
				require.Equal(t, e.Index, again.Index)
				require.True(t, bytes.Equal(e.Data, again.Data))
				at++
			}
			require.Equal(t, l.Last+1, max(at, from))
		}
	}
}

// written writes a random log with etcd's own writer, and returns its folder. In percent of the
// saves, a later leader replaces entries that are not committed.
func written(t testing.TB, r *rand.Rand, saves, percent int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "wal")
	metadata, err := proto.Marshal(&etcdserverpb.Metadata{NodeID: proto.Uint64(7), ClusterID: proto.Uint64(9)})
	require.NoError(t, err)
	w, err := etcd.Create(zap.NewNop(), dir, metadata)
	require.NoError(t, err)
	last, commit, term := uint64(0), uint64(0), uint64(1)
	for range saves {
		if last > commit+1 && r.IntN(100) < percent {
			last = commit + r.Uint64N(last-commit)
			term++
		}
		var entries []*raftpb.Entry
		for range r.IntN(4) {
			last++
			data := make([]byte, r.IntN(600))
			for i := range data {
				data[i] = byte(r.Uint32())
			}
			entries = append(entries, &raftpb.Entry{Index: proto.Uint64(last), Term: proto.Uint64(term), Data: data})
		}
		if last > commit {
			commit += r.Uint64N(last - commit)
		}
		state := &raftpb.HardState{Term: proto.Uint64(term), Commit: proto.Uint64(commit)}
		require.NoError(t, w.Save(state, entries))
	}
	require.NoError(t, w.Close())
	return dir
}

// untouched fails the test if the test changes a file of the folder, or adds one.
func untouched(t testing.TB, dir string) {
	t.Helper()
	state := func() map[string]string {
		all := map[string]string{}
		files, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, f := range files {
			info, err := f.Info()
			require.NoError(t, err)
			content, err := os.ReadFile(filepath.Join(dir, f.Name()))
			require.NoError(t, err)
			all[f.Name()] = info.ModTime().String() + string(content)
		}
		return all
	}
	before := state()
	t.Cleanup(func() { require.Equal(t, before, state()) })
}

// TestDamage changes bytes of a log of several files. Scan finds each change that affects an entry,
// except at the end of the last file, where an interrupted write looks the same.
func TestDamage(t *testing.T) {
	defer func(n int64) { etcd.SegmentSizeBytes = n }(etcd.SegmentSizeBytes)
	etcd.SegmentSizeBytes = 16 << 10
	dir := written(t, rand.New(rand.NewPCG(1, 2)), 100, 0)
	l, err := Scan(t.Context(), dir, 0)
	require.NoError(t, err)
	all := entriesOf(t, l)
	r := rand.New(rand.NewPCG(3, 4))
	for i, f := range l.files {
		path := filepath.Join(dir, f.name)
		whole, err := os.ReadFile(path)
		require.NoError(t, err)
		used := len(bytes.TrimRight(whole, "\x00"))
		for range 200 {
			at := r.IntN(used)
			damaged := bytes.Clone(whole)
			switch r.IntN(3) {
			case 0:
				damaged[at] ^= 1 << r.IntN(8)
			case 1: // a lost block
				at &^= 511
				clear(damaged[at:min(at+512, used)])
			case 2:
				damaged = damaged[:at]
			}
			if bytes.Equal(damaged, whole) {
				continue
			}
			require.NoError(t, os.WriteFile(path, damaged, 0o600))
			bad, err := Scan(t.Context(), dir, 0)
			if err == nil {
				now := entriesOf(t, bad)
				require.True(t, i == len(l.files)-1 && (bad.Torn != "" || len(now) < len(all)) || len(now) == len(all),
					"%s: a change at %d", f.name, at)
				require.Equal(t, all[:len(now)], now)
				continue
			}
			require.True(t, errors.Is(err, ErrDamaged), "%s: a change at %d of %d: %v", f.name, at, used, err)
			require.ErrorContains(t, err, dir)
		}
		require.NoError(t, os.WriteFile(path, whole, 0o600))
	}
	require.NoError(t, os.Remove(filepath.Join(dir, l.files[1].name)))
	_, err = Scan(t.Context(), dir, 0)
	require.ErrorContains(t, err, "is missing")
	_, err = Scan(t.Context(), t.TempDir(), 0)
	require.ErrorIs(t, err, ErrMissing)
	_, err = Scan(t.Context(), filepath.Join(t.TempDir(), "nowhere"), 0)
	require.ErrorIs(t, err, ErrMissing)
}

// A snapshot record with an index that no log reaches is damage, not an end of all entries.
func TestSnapshotIndex(t *testing.T) {
	for _, index := range []uint64{1<<63 - 1, 1 << 63, math.MaxUint64} {
		l := &Log{Last: 5, files: []file{{}}}
		data := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), index)
		err := l.scan(Position{}, &record{kind: typeSnapshot, data: data})
		if index < 1<<63 {
			require.NoError(t, err)
			require.Equal(t, index+1, l.First)
		} else {
			require.ErrorContains(t, err, "a snapshot of entry")
			require.EqualValues(t, 5, l.Last)
		}
	}
}

// entriesOf returns term and data of each entry.
func entriesOf(t *testing.T, l *Log) (all []string) {
	t.Helper()
	for e, err := range l.Entries(t.Context(), 0) {
		require.NoError(t, err)
		all = append(all, fmt.Sprintf("%d %08x", e.Term, crc32.ChecksumIEEE(e.Data)))
	}
	return all
}
