package snapshot

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot/internal/mvcc"
)

// unsoundStory is the script of the sound file; each unsound file is a changed copy. The records
// have the revisions 2 to 7.
const unsoundStory = `
grant 7 3600
put /a one
put /a two
put /leased x lease=7
put /gone x
del /gone
put /b x
`

// unsound is a change of a sound file that etcdutl restores without an error, and its class: "" for
// no fault.
type unsound struct {
	name  string
	edit  func(tx *bbolt.Tx) error
	class Class
	says  string // text of a finding
}

func unsoundFiles() []unsound {
	put := func(bucket, key string, value []byte) func(tx *bbolt.Tx) error {
		return func(tx *bbolt.Tx) error { return tx.Bucket([]byte(bucket)).Put([]byte(key), value) }
	}
	record := func(main int64, tombstone bool, value []byte) func(tx *bbolt.Tx) error {
		return put("key", string(mvcc.AppendRevisionKey(nil, Revision{Main: main}, tombstone)), value)
	}
	numbers := func(main int64, key string, create, mod, version int64) func(tx *bbolt.Tx) error {
		rec := Record{Key: []byte(key), Value: []byte("x"), CreateRevision: create, ModRevision: mod, Version: version}
		return record(main, false, mvcc.AppendKeyValue(nil, &rec))
	}
	compacted := func(name string, rev int64) func(tx *bbolt.Tx) error {
		return put("meta", name, mvcc.AppendRevisionKey(nil, Revision{Main: rev}, false))
	}
	tombstone := func(key string) []byte { return mvcc.AppendKeyValue(nil, &Record{Key: []byte(key), Tombstone: true}) }
	files := []unsound{
		{"nothing", func(*bbolt.Tx) error { return nil }, "", ""},
		{"put and deletion of one revision", record(7, true, tombstone("/b")), Fatal, "revision 7.0 after 7.0"},
		{"no protobuf", record(7, false, []byte{0xff, 0xff}), Fatal, "is not a KeyValue"},
		{"short revision key", put("key", "1234567_12345678", nil), Fatal, "revision key of 16 bytes"},
		{"a mark of its own",
			put("key", string(mvcc.AppendRevisionKey(nil, Revision{Main: 8}, false))+"x", tombstone("/b")),
			Fatal, "revision key of 18 bytes"},
		{"storage version", put("meta", "storageVersion", []byte("3.8.0")), Fatal,
			"etcd 3.7 and older do not start on it"},
		{"cluster version", put("cluster", "clusterVersion", []byte("3.8.0")), Fatal,
			"etcd 3.7 and older do not start on it"},
		{"NOSPACE", put("alarm", "\x08\x07\x10\x01", nil), Warning, "the alarm NOSPACE is raised"},
		{"CORRUPT", put("alarm", "\x08\x07\x10\x02", nil), Warning, "the alarm CORRUPT is raised"},
		{"compacted beyond the last record", compacted(mvcc.FinishedCompact, 100), "", ""},
		{"a scheduled compaction", compacted(mvcc.ScheduledCompact, 5), "", ""},
		{"deletion of an unknown key", record(8, true, tombstone("/never")), Warning,
			"deletes a key that does not exist"},
		{"two deletions in a row", record(8, true, tombstone("/gone")), Warning, "deletes a key that does not exist"},
		{"an empty record", record(8, false, nil), "", ""},
		{"mod_revision", numbers(7, "/b", 5, 5, 1), Lies, "mod_revision is 5"},
		{"mod_revision of the future", numbers(7, "/b", 7, 70, 1), Lies, "mod_revision is 70"},
		{"create_revision", numbers(3, "/a", 3, 3, 2), Lies, "create_revision 3 and version 2, want 2 and 2"},
		{"version", numbers(3, "/a", 2, 3, 9), Lies, "create_revision 2 and version 9, want 2 and 2"},
		{"version of a new key", numbers(7, "/b", 7, 7, 0), Lies, "create_revision 7 and version 0 do not agree"},
		{"version from 1 again", numbers(3, "/a", 3, 3, 1), Lies, "create_revision 3 and version 1, want 2 and 2"},
		{"a lease that is not there", func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte(mvcc.LeaseBucket)).Delete([]byte("\x00\x00\x00\x00\x00\x00\x00\x07"))
		}, "", ""},
	}
	for _, name := range mvcc.Buckets() {
		u := unsound{"no bucket " + name, func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte(name)) }, Warning,
			"it is not there, and a server makes it"}
		switch name {
		case "key":
			continue
		case mvcc.MetaBucket:
			u.class, u.says = Fatal, "there is no meta bucket"
		}
		files = append(files, u)
	}
	return files
}

// TestClasses checks that a server crashes on a fatal file, serves wrong data from a file that
// lies, and works with a warning.
func TestClasses(t *testing.T) {
	base := built(t, unsoundStory)
	for _, u := range unsoundFiles() {
		t.Run(u.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "in.db")
			require.NoError(t, os.WriteFile(path, rebuilt(t, base, 4096, u.edit), 0o600))
			ours := checkMutant(t, path)
			require.Equal(t, u.class, ours.worst(), "%+v", ours)
			if u.says != "" {
				require.Contains(t, append(ours.Findings, ours.Odd...)[0], u.says)
			}
			theirs := askPeers(t, path)
			require.Equal(t, u.class == Fatal, theirs.dies(), "%+v", theirs)
			require.Equal(t, u.class == Lies, theirs.Lies != "", "%+v", theirs)
			if u.class == Warning || u.class == "" {
				require.Equal(t, ours.Served, theirs.Served)
			}
		})
	}
}

// TestClassesOfFiles checks that a file that etcdutl cannot restore is fatal.
func TestClassesOfFiles(t *testing.T) {
	b := built(t, unsoundStory)
	other := bytes.Clone(b)
	other[len(other)-1] ^= 1
	for name, b := range map[string][]byte{"cut": b[:len(b)-4096], "digest": other} {
		path := filepath.Join(t.TempDir(), "in.db")
		require.NoError(t, os.WriteFile(path, b, 0o600))
		require.Equal(t, Fatal, checkMutant(t, path).worst(), name)
	}
}

// TestClassesAlarms checks that a server with an alarm serves everything and accepts no write.
func TestClassesAlarms(t *testing.T) {
	for alarm, text := range map[string]string{"\x08\x07\x10\x01": "database space exceeded",
		"\x08\x07\x10\x02": "corrupt cluster"} {
		b := rebuilt(t, built(t, unsoundStory), 4096,
			func(tx *bbolt.Tx) error { return tx.Bucket([]byte("alarm")).Put([]byte(alarm), nil) })
		server := etcdtest.Start(t, etcdtest.Restore(t, copyOf(t, b)))
		require.Len(t, etcdtest.Dump(t, server, 0), 3)
		_, err := server.Client.Put(t.Context(), "/new", "x")
		require.ErrorContains(t, err, text)
	}
}
