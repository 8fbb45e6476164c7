package salvage

import (
	"encoding/binary"
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
	"google.golang.org/protobuf/proto"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/snapshot/internal/bolt"
	"github.com/etcdshift/etcdshift/snapshot/internal/carve"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
	"github.com/etcdshift/etcdshift/snapshot/internal/wal"
)

// copyLog writes the entries of a log up to last, and returns the folder of the copy. Entries in
// conf change members.
func copyLog(t testing.TB, from string, last, commit uint64, conf ...uint64) string {
	t.Helper()
	log := must(wal.Scan(t.Context(), from, 0))(t)
	var entries []*raftpb.Entry
	for e, err := range log.Entries(t.Context(), 1) {
		require.NoError(t, err)
		if e.Index > last {
			break
		}
		kind, data := raftpb.EntryNormal, slices.Clone(e.Data)
		if e.Conf {
			kind = raftpb.EntryConfChange
		}
		if slices.Contains(conf, e.Index) {
			kind, data = raftpb.EntryConfChange, nil
		}
		entries = append(entries, &raftpb.Entry{Index: &e.Index, Term: &e.Term, Type: &kind, Data: data})
	}
	state := &raftpb.HardState{Term: &log.Term, Vote: &log.Node, Commit: &commit}
	return newLog(t, log.Node, log.Cluster, state, entries)
}

// newLog writes a log with etcd's own writer, and returns its folder.
func newLog(t testing.TB, node, cluster uint64, state *raftpb.HardState, entries []*raftpb.Entry) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "wal")
	metadata := must(proto.Marshal(&pb.Metadata{NodeID: &node, ClusterID: &cluster}))(t)
	w := must(etcdwal.Create(zap.NewNop(), dir, metadata))(t)
	require.NoError(t, w.Save(state, entries))
	require.NoError(t, w.Close())
	return dir
}

// inMeta copies a database with other values in its meta bucket, without those that are nil.
func inMeta(t testing.TB, from string, values map[string][]byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	require.NoError(t, os.WriteFile(path, must(os.ReadFile(from))(t), 0o600))
	db := must(bbolt.Open(path, 0o600, nil))(t)
	require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
		for name, value := range values {
			meta := tx.Bucket([]byte(mvcc.MetaBucket))
			if value == nil {
				require.NoError(t, meta.Delete([]byte(name)))
				continue
			}
			require.NoError(t, meta.Put([]byte(name), value))
		}
		return nil
	}))
	require.NoError(t, db.Close())
	return path
}

// remainsOf reads damaged files.
func remainsOf(t testing.TB, log string, paths ...string) (*Remains, error) {
	t.Helper()
	r, err := Open(t.Context(), paths, snapshot.Config{LogDir: log})
	if err == nil {
		t.Cleanup(func() { require.NoError(t, r.Close()) })
	}
	return r, err
}

// treeless returns a copy of a database with only the bytes of its records.
func treeless(t testing.TB, path string) string {
	t.Helper()
	w := newWhole(t, path)
	image := slices.Clone(w.image)
	clear(image[:2*w.ps])
	for at := 0; at+w.ps <= len(image); at += w.ps {
		clear(image[at : at+bolt.HeaderSize])
	}
	out := filepath.Join(t.TempDir(), "treeless.db")
	require.NoError(t, os.WriteFile(out, image, 0o600))
	return out
}

// TestLastKnownEntry finds the entries that are known to be committed: those that the log knows,
// and those of a file whose last entry is in the log. Only a member that is still alone commits
// all.
func TestLastKnownEntry(t *testing.T) {
	threeVoters := []byte(`{"voters":[1,2,3]}`)
	dir := etcdtest.RecordedMember(t, "crash36") // the database ends with entry 5495
	db, log := filepath.Join(dir, "member", "snap", "db"), filepath.Join(dir, "member", "wal")
	huge := binary.BigEndian.AppendUint64(nil, 1<<40)
	damaged := copyLog(t, log, 5516, 5490)
	file := filepath.Join(damaged, "0000000000000000-0000000000000000.wal")
	data := must(os.ReadFile(file))(t)
	end := len(data)
	for data[end-1] == 0 {
		end--
	}
	data[end-200] ^= 1
	require.NoError(t, os.WriteFile(file, data, 0o600))
	for name, row := range map[string]struct {
		meta map[string][]byte
		log  string
		last uint64
	}{
		"alone":              {nil, copyLog(t, log, 5516, 5490), 5516},
		"alone until later":  {nil, copyLog(t, log, 5516, 5500, 5505), 5500},
		"alone since before": {nil, copyLog(t, log, 5516, 5490, 5000), 5516},
		"one of three":       {map[string][]byte{"confState": threeVoters}, copyLog(t, log, 5516, 5490), 5495},
		"another term": {map[string][]byte{"confState": threeVoters, "term": huge},
			copyLog(t, log, 5516, 5490), 5490},
		"a file after the log": {map[string][]byte{"confState": threeVoters, "consistent_index": huge},
			copyLog(t, log, 5516, 5490), 5490},
		"a damaged log":                   {nil, damaged, 5495},
		"a damaged log, and another term": {map[string][]byte{"term": huge}, damaged, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := remainsOf(t, row.log, inMeta(t, db, row.meta))
			if row.last == 0 { // no entry before the damage counts
				require.ErrorContains(t, err, "it ends with revision 1, and")
				return
			}
			require.NoError(t, err)
			require.False(t, r.Log.Inferred)
			require.Equal(t, row.last, r.Log.Last)
			if r.Log.Damage == "" && name != "a file after the log" {
				require.Equal(t, 5516-row.last, r.Log.LeftOut)
			}
		})
	}
}

// TestSalvageLogOfAnother refuses the log of another cluster if only the bytes of records are left
// of a file, or if the log has no write.
func TestSalvageLogOfAnother(t *testing.T) {
	other := filepath.Join(etcdtest.RecordedMember(t, "crash36"), "member", "wal")
	sound := etcdtest.Unpack(t, etcdtest.Recorded(t, "kube37.snapshot.db.gz"))
	_, err := remainsOf(t, other, treeless(t, sound))
	require.ErrorIs(t, err, errOtherLog)

	one, own := uint64(1), etcdtest.RecordedMember(t, "kube37")
	empty := func(node uint64) string {
		kind := raftpb.EntryNormal
		return newLog(t, node, 9, &raftpb.HardState{Term: &one, Vote: &one, Commit: &one},
			[]*raftpb.Entry{{Index: &one, Term: &one, Type: &kind}})
	}
	young := inMeta(t, sound, map[string][]byte{mvcc.FinishedCompact: nil, mvcc.ScheduledCompact: nil})
	_, err = remainsOf(t, empty(7), young)
	require.ErrorIs(t, err, errOtherLog)
	require.ErrorContains(t, err, "is the log of member 7, which is no member in")
	log := must(wal.Scan(t.Context(), filepath.Join(own, "member", "wal"), 0))(t)
	r, err := remainsOf(t, empty(log.Node), young)
	require.NoError(t, err)
	require.NotNil(t, r.Log)
	require.Contains(t, fmt.Sprint(r.Warnings()), "make sure that it is a log of this cluster")
	require.False(t, r.log.covers)
}

// TestSalvageOlderLog does not take the last state of a log for that of a newer file whose last
// entry is unknown.
func TestSalvageOlderLog(t *testing.T) {
	dir := etcdtest.RecordedMember(t, "crash36")
	log := filepath.Join(dir, "member", "wal")
	db := inMeta(t, filepath.Join(dir, "member", "snap", "db"), map[string][]byte{"consistent_index": nil})
	for last, covers := range map[uint64]bool{5300: false, 5516: true} {
		r, err := remainsOf(t, copyLog(t, log, last, last), db)
		require.NoError(t, err)
		require.Equal(t, covers, r.log.covers)
	}
}

// TestSalvageBestLog takes the log with the most committed entries, and names another one with
// later entries.
func TestSalvageBestLog(t *testing.T) {
	var dirs []string
	from := etcdtest.RecordedMember(t, "crash36")
	for _, ends := range [][2]uint64{{5516, 5500}, {5510, 5508}} {
		dir := t.TempDir()
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "member", "snap"), 0o700))
		db := inMeta(t, filepath.Join(from, "member", "snap", "db"), map[string][]byte{"confState": []byte(`{"voters":[1,2,3]}`)})
		require.NoError(t, os.Rename(db, filepath.Join(dir, "member", "snap", "db")))
		require.NoError(t, os.CopyFS(filepath.Join(dir, "member", "wal"),
			os.DirFS(copyLog(t, filepath.Join(from, "member", "wal"), ends[0], ends[1]))))
		dirs = append(dirs, dir)
	}
	r, err := remainsOf(t, "", dirs...)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dirs[1], "member", "wal"), r.Log.Path)
	require.EqualValues(t, 5508, r.Log.Last)
	require.EqualValues(t, 2, r.Log.LeftOut)
	require.Len(t, r.UnusedLogs, 1)
	require.Contains(t, r.UnusedLogs[0].Reason, "has more committed entries, but not the last 8 entries")
}

// TestSalvageInferredLog counts the entries after an older file, and keeps a log that disagrees
// with a damaged key.
func TestSalvageInferredLog(t *testing.T) {
	dir := etcdtest.RecordedMember(t, "kube37")
	part := etcdtest.CutLog(t, dir, 1200)
	older := etcdtest.Unpack(t, etcdtest.Recorded(t, "kube37.snapshot.db.gz"))
	r, err := remainsOf(t, part, older)
	require.NoError(t, err)
	require.True(t, r.Log.Inferred)
	require.Equal(t, 2772-r.Log.Last, r.Log.LeftOut)
	require.NotZero(t, r.Log.LeftOut)
	require.Contains(t, fmt.Sprint(r.Warnings()), "the first entries of the log are gone, so it counts only up to")

	image := must(os.ReadFile(older))(t)
	f := r.files[0]
	tried := 0
	for _, one := range f.byTree {
		at := slices.IndexFunc(r.log.byTree, func(o carve.Found) bool {
			return o.Main == one.Main && string(r.log.BytesOf(o)) == string(f.BytesOf(one))
		})
		var rec snapshot.Record
		require.NoError(t, f.Carver.Parse(one, &rec))
		if at < 0 || rec.Tombstone || len(rec.Key) < 10 {
			continue
		}
		bad := slices.Clone(image)
		bad[one.At+mvcc.RevisionKeySize+2+int64(len(rec.Key))-1] ^= 1 // the last byte of the key
		path := filepath.Join(t.TempDir(), "bad.db")
		require.NoError(t, os.WriteFile(path, bad, 0o600))
		r, err := remainsOf(t, part, path)
		if err != nil {
			require.NotErrorIs(t, err, errOtherLog)
			continue
		}
		tried++
		require.Contains(t, fmt.Sprint(r.Damaged), fmt.Sprint(rec.Revision.Main))
		if tried == 3 {
			break
		}
	}
	require.NotZero(t, tried)
}
