package etcdtest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"
)

// Member is the data directory of a stopped member, to be written with damage.
type Member struct {
	db       []byte
	metadata []byte
	state    *raftpb.HardState
	entries  []*raftpb.Entry
}

// segment is the size of a log file, such that a small log has several files.
const segment = 256 << 10

// ReadMember reads a data directory. db takes the place of its database.
func ReadMember(t testing.TB, dir string, db []byte) *Member {
	t.Helper()
	w, err := wal.OpenForRead(zap.NewNop(), filepath.Join(dir, "member", "wal"),
		&walpb.Snapshot{Index: proto.Uint64(0), Term: proto.Uint64(0)})
	require.NoError(t, err)
	defer func() { _ = w.Close() }()
	m := &Member{db: db}
	m.metadata, m.state, m.entries, err = w.ReadAll()
	require.NoError(t, err)
	return m
}

// Write writes the member into a new directory, with the entries as its log.
func (m *Member) Write(t testing.TB, dir string) { m.write(t, dir, m.entries) }

func (m *Member) write(t testing.TB, dir string, entries []*raftpb.Entry) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "member", "snap"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "member", "snap", "db"), m.db, 0o600))
	defer func(n int64) { wal.SegmentSizeBytes = n }(wal.SegmentSizeBytes)
	wal.SegmentSizeBytes = segment
	w, err := wal.Create(zap.NewNop(), filepath.Join(dir, "member", "wal"), m.metadata)
	require.NoError(t, err)
	w.SetUnsafeNoFsync()
	for part := range slices.Chunk(entries, 100) {
		require.NoError(t, w.Save(m.state, part))
	}
	require.NoError(t, w.Close())
}

// damageOfMember is a kind of damage of a data directory: other entries with right checksums, or
// changed files.
type damageOfMember struct {
	what    string
	entries func(r *rand.Rand, all []*raftpb.Entry) []*raftpb.Entry
	files   func(t testing.TB, r *rand.Rand, dir string)
}

// WriteDamaged writes the damaged copy of a member with a number into a new directory.
func (m *Member) WriteDamaged(t testing.TB, dir string, number int) (what string) {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(number), 17))
	all := slices.Concat(damagedEntries(), damagedFiles())
	kind, entries := all[r.IntN(len(all))], m.entries
	if kind.entries != nil {
		entries = make([]*raftpb.Entry, len(m.entries))
		for i, e := range m.entries {
			entries[i] = proto.Clone(e).(*raftpb.Entry)
		}
		entries = kind.entries(r, entries)
	}
	m.write(t, dir, entries)
	if kind.files != nil {
		kind.files(t, r, dir)
	}
	return kind.what
}

// damagedEntries are kinds of damage with right checksums, most of them after the database.
func damagedEntries() []damageOfMember {
	last := func(r *rand.Rand, all []*raftpb.Entry) *raftpb.Entry { return all[len(all)-1-r.IntN(10)] }
	again := func(r *rand.Rand, all []*raftpb.Entry) []*raftpb.Entry {
		end := all[len(all)-1]
		for i := range uint64(300) {
			e := proto.Clone(all[r.IntN(len(all))]).(*raftpb.Entry)
			e.Index, e.Term = proto.Uint64(end.GetIndex()+1+i), end.Term
			all = append(all, e)
		}
		return all
	}
	flipped := func(r *rand.Rand, e *raftpb.Entry) {
		if e.Data = bytes.Clone(e.Data); len(bytes.Trim(e.Data, "\x00")) > 0 {
			FlipBits(r, e.Data)
		}
	}
	return []damageOfMember{
		{what: "no damage"},
		{what: "requests again", entries: again},
		{what: "requests again, changed", entries: func(r *rand.Rand, all []*raftpb.Entry) []*raftpb.Entry {
			n := len(all)
			for _, e := range again(r, all)[n:] {
				flipped(r, e)
				all = append(all, e)
			}
			return all
		}},
		{what: "a changed request", entries: func(r *rand.Rand, all []*raftpb.Entry) []*raftpb.Entry {
			flipped(r, last(r, all))
			return all
		}},
		{what: "a short request", entries: func(r *rand.Rand, all []*raftpb.Entry) []*raftpb.Entry {
			e := last(r, all)
			e.Data = e.Data[:r.IntN(len(e.Data)+1)]
			return all
		}},
		{what: "another index", entries: func(r *rand.Rand, all []*raftpb.Entry) []*raftpb.Entry {
			last(r, all).Index = proto.Uint64(r.Uint64() >> r.IntN(64))
			return all
		}},
		{what: "another term", entries: func(r *rand.Rand, all []*raftpb.Entry) []*raftpb.Entry {
			last(r, all).Term = proto.Uint64(r.Uint64() >> r.IntN(64))
			return all
		}},
		{what: "another type", entries: func(r *rand.Rand, all []*raftpb.Entry) []*raftpb.Entry {
			last(r, all).Type = raftpb.EntryType(r.IntN(4)).Enum()
			return all
		}},
		{what: "a missing entry", entries: func(r *rand.Rand, all []*raftpb.Entry) []*raftpb.Entry {
			at := r.IntN(len(all))
			return slices.Delete(all, at, at+1)
		}},
		{what: "entries twice", entries: func(r *rand.Rand, all []*raftpb.Entry) []*raftpb.Entry {
			return append(all, all[len(all)-1-r.IntN(20):]...)
		}},
		{what: "a short log", entries: func(r *rand.Rand, all []*raftpb.Entry) []*raftpb.Entry {
			return all[:r.IntN(len(all))]
		}},
	}
}

// damagedFiles are kinds of damage by disks, copies and people.
func damagedFiles() []damageOfMember {
	logs := func(t testing.TB, dir string) []string {
		files, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
		require.NoError(t, err)
		return files
	}
	one := func(t testing.TB, r *rand.Rand, dir string) string {
		files := logs(t, dir)
		return files[r.IntN(len(files))]
	}
	edit := func(t testing.TB, path string, change func(data []byte) []byte) {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, change(data), 0o600))
	}
	list := []damageOfMember{
		{what: "a length", files: func(t testing.TB, r *rand.Rand, dir string) {
			edit(t, one(t, r, dir), func(data []byte) []byte {
				at := r.IntN(len(bytes.TrimRight(data, "\x00"))/8) * 8 // some are the lengths of records
				le.PutUint64(data[at:], r.Uint64()>>r.IntN(64))
				return data
			})
		}},
		{what: "the first length", files: func(t testing.TB, r *rand.Rand, dir string) {
			edit(t, one(t, r, dir), func(data []byte) []byte {
				le.PutUint64(data, r.Uint64()>>r.IntN(64))
				return data
			})
		}},
		{what: "exchanged files", files: func(t testing.TB, r *rand.Rand, dir string) {
			a, b := one(t, r, dir), one(t, r, dir)
			require.NoError(t, os.Rename(a, a+".x"))
			if a != b {
				require.NoError(t, os.Rename(b, a))
			}
			require.NoError(t, os.Rename(a+".x", b))
		}},
		{what: "a missing file", files: func(t testing.TB, r *rand.Rand, dir string) {
			require.NoError(t, os.Remove(one(t, r, dir)))
		}},
		{what: "another name", files: func(t testing.TB, r *rand.Rand, dir string) {
			name := fmt.Sprintf("%016x-%016x.wal", r.Uint64()>>r.IntN(64), r.Uint64()>>r.IntN(64))
			require.NoError(t, os.Rename(one(t, r, dir), filepath.Join(dir, "member", "wal", name)))
		}},
		{what: "a pipe", files: func(t testing.TB, r *rand.Rand, dir string) {
			path := []string{one(t, r, dir), filepath.Join(dir, "member", "snap", "db")}[r.IntN(2)]
			require.NoError(t, os.Remove(path))
			require.NoError(t, syscall.Mkfifo(path, 0o600))
		}},
		{what: "bytes after the end", files: func(t testing.TB, r *rand.Rand, dir string) {
			all := logs(t, dir)
			edit(t, all[len(all)-1], func(data []byte) []byte { data[len(data)-1-r.IntN(1000)] = 1; return data })
		}},
		{what: "no log", files: func(t testing.TB, _ *rand.Rand, dir string) {
			require.NoError(t, os.RemoveAll(filepath.Join(dir, "member", "wal")))
		}},
		{what: "an empty file", files: func(t testing.TB, r *rand.Rand, dir string) {
			path := []string{one(t, r, dir), filepath.Join(dir, "member", "snap", "db")}[r.IntN(2)]
			require.NoError(t, os.Truncate(path, 0))
		}},
	}
	for _, way := range ways() {
		list = append(list,
			damageOfMember{what: "the log: " + way.what, files: func(t testing.TB, r *rand.Rand, dir string) {
				edit(t, one(t, r, dir), func(data []byte) []byte { return way.change(r, data) })
			}},
			damageOfMember{what: "the database: " + way.what, files: func(t testing.TB, r *rand.Rand, dir string) {
				path := filepath.Join(dir, "member", "snap", "db")
				edit(t, path, func(data []byte) []byte { return way.change(r, data) })
			}})
	}
	return list
}
