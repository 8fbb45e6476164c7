package etcdtest

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// Recorded returns the path of a file in the folder testdata/wal of the module.
func Recorded(t testing.TB, name string) string {
	t.Helper()
	root, err := os.Getwd()
	require.NoError(t, err)
	for {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			return filepath.Join(root, "testdata", "wal", name)
		}
		require.NotEqual(t, root, filepath.Dir(root))
		root = filepath.Dir(root)
	}
}

// RecordedMember returns a copy of the recorded data directory with a name.
func RecordedMember(t testing.TB, name string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, UnpackMember(Recorded(t, name+".tar.zst"), dir))
	return filepath.Join(dir, "data")
}

// Event is a change of a recorded cluster.
type Event struct {
	Rev, Sub        int64
	Del             bool
	Key             string
	Value           []byte
	Create, Version int64
	Lease           int64
}

// Events returns all events of the recorded cluster with a name.
func Events(t testing.TB, name string) (all []Event) {
	t.Helper()
	f, err := os.Open(Recorded(t, name))
	require.NoError(t, err)
	defer f.Close()
	packed, err := gzip.NewReader(f)
	require.NoError(t, err)
	for lines := json.NewDecoder(packed); ; {
		var e Event
		err := lines.Decode(&e)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all = append(all, e)
	}
}

// Keep fails the test if the test changes a file below dir, or adds one.
func Keep(t testing.TB, dir string) {
	t.Helper()
	state := func() map[string]string {
		all := map[string]string{}
		require.NoError(t, filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
			if err == nil && !info.IsDir() {
				b, bad := os.ReadFile(path)
				all[path], err = fmt.Sprint(info.Size(), info.ModTime(), sha256.Sum256(b)), bad
			}
			return err
		}))
		return all
	}
	before := state()
	t.Cleanup(func() { require.Equal(t, before, state()) })
}

// CutLog copies a data directory, with a log that begins with entry first.
func CutLog(t testing.TB, dir string, first uint64) string {
	t.Helper()
	out := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(out, "member", "snap"), os.DirFS(filepath.Join(dir, "member", "snap"))))
	m := ReadMember(t, dir, nil)
	var b []byte
	crc := uint32(0)
	put := func(kind int64, data []byte) {
		crc = crc32.Update(crc, crc32.MakeTable(crc32.Castagnoli), data)
		rec, err := proto.Marshal(&walpb.Record{Type: &kind, Crc: &crc, Data: data})
		require.NoError(t, err)
		pad := (8 - len(rec)%8) % 8
		length := uint64(len(rec))
		if pad > 0 {
			length |= uint64(0x80|pad) << 56
		}
		b = append(append(binary.LittleEndian.AppendUint64(b, length), rec...), make([]byte, pad)...)
	}
	state := func(commit uint64) {
		data, err := proto.Marshal(&raftpb.HardState{Term: m.state.Term, Vote: m.state.Vote, Commit: &commit})
		require.NoError(t, err)
		put(wal.StateType, data)
	}
	put(wal.CrcType, nil)
	put(wal.MetadataType, m.metadata)
	state(first - 1)
	for _, e := range m.entries {
		if e.GetIndex() >= first {
			data, err := proto.Marshal(e)
			require.NoError(t, err)
			put(wal.EntryType, data)
		}
	}
	state(m.state.GetCommit())
	folder := filepath.Join(out, "member", "wal")
	require.NoError(t, os.Mkdir(folder, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(folder, fmt.Sprintf("%016x-%016x.wal", 1, first)), b, 0o600))
	return out
}
