package snapshot

import (
	"bytes"
	"compress/gzip"
	"compress/lzw"
	"compress/zlib"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sys/unix"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot/internal/etcdbrctl"
)

// backups is a folder as etcdbrctl writes it, from a real etcd: a full snapshot, and one delta
// snapshot for each script.
type backups struct {
	dir    string
	full   string
	deltas []string
	saved  []string // a snapshot of etcd after each script
}

// writeBackups records a folder. overlap revisions of the full snapshot are in the first delta too.
func writeBackups(t *testing.T, overlap int64, base string, scripts ...string) (b backups) {
	t.Helper()
	b.dir = t.TempDir()
	server := etcdtest.Start(t, filepath.Join(t.TempDir(), "etcd"))
	etcdtest.Run(t, server, base)
	from := etcdtest.Revision(t, server)
	b.full = filepath.Join(b.dir, fmt.Sprintf("Full-00000000-%08d-1700000000.gz", from-overlap))
	plain := filepath.Join(t.TempDir(), "full.db")
	etcdtest.Save(t, server, plain)
	image, err := os.ReadFile(plain)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(b.full, packAs(t, ".gz", image), 0o600))
	first := from - overlap + 1
	for i, script := range scripts {
		etcdtest.Run(t, server, script)
		last := etcdtest.Revision(t, server)
		packing := []string{".gz", "", ".zlib", ".Z"}[i%4]
		path := filepath.Join(b.dir, fmt.Sprintf("Incr-%08d-%08d-%d%s", first, last, 1700000001+i, packing))
		require.NoError(t, os.WriteFile(path, packAs(t, packing, deltaOf(t, server, first, last, i)), 0o600))
		saved := filepath.Join(t.TempDir(), "saved.db")
		etcdtest.Save(t, server, saved)
		b.deltas, b.saved, first = append(b.deltas, path), append(b.saved, saved), last+1
	}
	return b
}

// deltaOf returns the events of revisions as JSON, and their digest. They were received i hours
// after 2026-01-01.
func deltaOf(t *testing.T, server *etcdtest.Server, first, last int64, i int) []byte {
	t.Helper()
	type event struct {
		EtcdEvent *clientv3.Event `json:"etcdEvent"`
		Time      time.Time       `json:"time"`
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var events []event
	for r := range server.Client.Watch(ctx, "", clientv3.WithPrefix(), clientv3.WithRev(first)) {
		require.NoError(t, r.Err())
		for _, e := range r.Events {
			events = append(events, event{e, time.Date(2026, 1, 1, i, 0, 0, 0, time.UTC)})
		}
		if r.Events[len(r.Events)-1].Kv.ModRevision >= last {
			break
		}
	}
	text, err := json.Marshal(events)
	require.NoError(t, err)
	sum := sha256.Sum256(text)
	return append(text, sum[:]...)
}

func packAs(t *testing.T, packing string, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser
	switch packing {
	case "":
		return data
	case ".gz":
		w = gzip.NewWriter(&out)
	case ".zlib":
		w = zlib.NewWriter(&out)
	case ".Z":
		w = lzw.NewWriter(&out, lzw.LSB, 8)
	}
	_, err := w.Write(data)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

// everyRecord returns all records of a
func everyRecord(t *testing.T, s *Snapshot) (all []Record) {
	t.Helper()
	for rec, err := range s.Records(t.Context()) {
		require.NoError(t, err)
		r := *rec
		r.Key, r.Value = bytes.Clone(r.Key), bytes.Clone(r.Value)
		all = append(all, r)
	}
	return all
}

func openAt(t *testing.T, path string, cfg Config) *Snapshot {
	t.Helper()
	s, err := Open(t.Context(), path, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// A folder of etcdbrctl, and each of its delta snapshots, has the records that etcd itself saved at
// the same revision.
func TestBackups(t *testing.T) {
	base := "put a 1\nput b 2\ngrant 77 600\nput leased 1 77\nput a 3\n"
	scripts := []string{
		"put a 4\ntxn {\nput c 1\nput d 2\ndel b\n}\nput new 1\ndel new\n",
		"put new 2\nput a 5\n",
		"del a\n",
		"txn {\nput x 1\nput y 1\n}\nput x 2\n",
	}
	for _, overlap := range []int64{0, 2} {
		b := writeBackups(t, overlap, base, scripts...)
		for i, delta := range b.deltas {
			s := openAt(t, delta, Config{})
			require.Equal(t, everyRecord(t, openAt(t, b.saved[i], Config{})), everyRecord(t, s))
			require.Contains(t, s.Warnings()[0], "a full snapshot of etcdbrctl")
		}
		newest := openAt(t, b.dir, Config{})
		require.Equal(t, everyRecord(t, openAt(t, b.saved[3], Config{})), everyRecord(t, newest))

		server := etcdtest.Start(t, etcdtest.Restore(t, savedImage(t, newest), etcdtest.SkipHashCheck))
		records := everyRecord(t, newest)
		require.Equal(t, etcdtest.Revision(t, server), records[len(records)-1].Revision.Main)
	}
}

// savedImage writes the image of a snapshot to a file.
func savedImage(t *testing.T, s *Snapshot) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image.db")
	etcdtest.WriteNew(t, path, s.Image())
	return path
}

// The chain ends before a revision or a time, never within a revision.
func TestBackupsUntil(t *testing.T) {
	b := writeBackups(t, 0, "put a 1\n", "put a 2\ntxn {\nput b 1\nput c 1\n}\nput a 3\n", "put a 4\nput a 5\n")
	all := everyRecord(t, openAt(t, b.dir, Config{}))
	last := all[len(all)-1].Revision.Main
	for until := all[0].Revision.Main; until <= last; until++ {
		var want []Record
		for _, r := range all {
			if r.Revision.Main <= until {
				want = append(want, r)
			}
		}
		require.Equal(t, want, everyRecord(t, openAt(t, b.dir, Config{UntilRevision: until})), until)
	}
	s := openAt(t, b.dir, Config{UntilTime: time.Date(2026, 1, 1, 0, 30, 0, 0, time.UTC)})
	require.Equal(t, everyRecord(t, openAt(t, b.saved[0], Config{})), everyRecord(t, s))
	_, err := Open(t.Context(), b.dir, Config{UntilRevision: last + 1})
	require.ErrorIs(t, err, etcdbrctl.ErrEnd)
	_, err = Open(t.Context(), b.dir, Config{UntilRevision: 1})
	require.ErrorIs(t, err, etcdbrctl.ErrEnd)
}

// An end before the newest full snapshot begins with an earlier one.
func TestBackupsEarlierFull(t *testing.T) {
	b := writeBackups(t, 0, "put a 1\n", "put a 2\nput b 1\n", "put a 3\n", "put a 4\n")
	saved := everyRecord(t, openAt(t, b.saved[1], Config{}))
	at := saved[len(saved)-1].Revision.Main
	image, err := os.ReadFile(b.saved[1])
	require.NoError(t, err)
	newer := time.Date(2026, 1, 1, 1, 30, 0, 0, time.UTC)
	name := fmt.Sprintf("Full-00000000-%08d-%d", at, newer.Unix())
	require.NoError(t, os.WriteFile(filepath.Join(b.dir, name), image, 0o600))

	require.Contains(t, openAt(t, b.dir, Config{}).Warnings()[0], name)
	first := everyRecord(t, openAt(t, b.saved[0], Config{}))
	for _, cfg := range []Config{
		{UntilRevision: first[len(first)-1].Revision.Main}, {UntilTime: newer.Add(-time.Hour)},
	} {
		s := openAt(t, b.dir, cfg)
		require.Contains(t, s.Warnings()[0], filepath.Base(b.full))
		require.Equal(t, first, everyRecord(t, s))
	}
	require.Equal(t, saved, everyRecord(t, openAt(t, b.dir, Config{UntilRevision: at})))
}

// A damaged, a missing and a swapped file is an error that names the file.
func TestBackupsDamaged(t *testing.T) {
	b := writeBackups(t, 0, "put a 1\n", "put a 2\nput b 1\n", "put a 3\nput c 1\n", "put d 1\n")
	whole, err := os.ReadFile(b.deltas[1])
	require.NoError(t, err)
	change := func(content []byte) error {
		require.NoError(t, os.WriteFile(b.deltas[1], content, 0o600))
		_, err := Open(t.Context(), b.dir, Config{})
		return err
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)-1] ^= 1
	require.ErrorIs(t, change(flipped), ErrDigest)
	value := bytes.Replace(whole, []byte(`"Mw=="`), []byte(`"NA=="`), 1) // 3 to 4
	require.NotEqual(t, whole, value)
	require.ErrorIs(t, change(value), ErrDigest)
	for _, n := range []int{0, 1, 31, 32, 33, len(whole) / 2, len(whole) - 1} {
		require.ErrorContains(t, change(whole[:n]), b.deltas[1], n)
	}
	sum := sha256.Sum256([]byte("[]"))
	require.ErrorIs(t, change(append([]byte("[]"), sum[:]...)), ErrBackups)
	require.NoError(t, change(whole))

	require.NoError(t, os.Rename(b.deltas[1], b.deltas[1]+".away"))
	_, err = Open(t.Context(), b.dir, Config{})
	require.ErrorIs(t, err, ErrBackups)
	require.ErrorContains(t, err, b.deltas[2])
	require.NoError(t, os.Remove(b.full))
	_, err = Open(t.Context(), b.deltas[0], Config{})
	require.ErrorIs(t, err, ErrBackups)
}

// An event of endless size is refused before it fills the memory, and so is a file that expands too
// far.
func TestBackupsBounded(t *testing.T) {
	b := writeBackups(t, 0, "put a 1\n", "put a 2\n")
	var long bytes.Buffer
	w := gzip.NewWriter(&long)
	_, err := w.Write([]byte(`[{"etcdEvent":{"kv":{"key":"YQ==","value":"`))
	require.NoError(t, err)
	block := bytes.Repeat([]byte("A"), 1<<20)
	for range 80 {
		_, err = w.Write(block)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	require.NoError(t, os.WriteFile(b.deltas[0], long.Bytes(), 0o600))
	_, err = Open(t.Context(), b.dir, Config{})
	require.ErrorIs(t, err, ErrDamaged)
	require.ErrorContains(t, err, "an event has more than 67108864 bytes")
	_, err = Open(t.Context(), b.dir, Config{MaxExpand: 20 << 20})
	require.ErrorIs(t, err, ErrExpand)
}

// A full snapshot that expands beyond the ratio of a snapshot is refused early, in each format.
func TestFullBounded(t *testing.T) {
	long := append(fixture(t), make([]byte, 128<<20)...)
	for _, packing := range []string{".gz", ".zlib", ".Z"} {
		dir := t.TempDir()
		path := filepath.Join(dir, "Full-00000000-00000002-1700000000"+packing)
		require.NoError(t, os.WriteFile(path, packAs(t, packing, long), 0o600))
		_, err := Open(t.Context(), dir, Config{})
		require.ErrorIs(t, err, ErrExpand, packing)
		require.ErrorContains(t, err, path)
	}
}

// A named pipe with the name of a snapshot is refused without waiting for its writer.
func TestPipesForBackups(t *testing.T) {
	for _, name := range []string{"Full-00000000-00000002-1700000000.Z", "Incr-00000003-00000004-1700000001"} {
		dir := t.TempDir()
		full := filepath.Join(dir, "Full-00000000-00000001-1600000000")
		require.NoError(t, os.WriteFile(full, fixture(t), 0o600))
		require.NoError(t, unix.Mkfifo(filepath.Join(dir, name), 0o600))
		failed := make(chan error, 1)
		go func() {
			_, err := Open(context.Background(), dir, Config{})
			failed <- err
		}()
		select {
		case err := <-failed:
			require.ErrorIs(t, err, ErrNotSnapshot)
			require.ErrorContains(t, err, name)
		case <-time.After(10 * time.Second):
			t.Fatal("the read waits for a writer of", name)
		}
	}
}
