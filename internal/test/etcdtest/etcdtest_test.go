package etcdtest

import (
	"context"
	"crypto/sha256"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const story = `
# two leases, an update, a deletion, a re-creation, a transaction
grant 7 3600
put /a 1
put /a "two words\n"
put /leased x lease=7
put /gone x
del /gone
put /back 1
del /back
put /back again
txn {
  put /t/1 one
  put /t/2 size=40 lease=7
  del /a
}
put /p/1 x
put /p/2 x
delprefix /p/
`

func TestBuildRestoreStart(t *testing.T) {
	path := Build(t, story)
	s := Start(t, Restore(t, path))

	kvs := Dump(t, s, 0)
	require.Equal(t, []KV{
		{Key: []byte("/back"), Value: []byte("again"), CreateRevision: 9, ModRevision: 9, Version: 1},
		{Key: []byte("/leased"), Value: []byte("x"), CreateRevision: 4, ModRevision: 4, Version: 1, Lease: 7},
		{Key: []byte("/t/1"), Value: []byte("one"), CreateRevision: 10, ModRevision: 10, Version: 1},
		{Key: []byte("/t/2"), Value: Blob("/t/2", 40), CreateRevision: 10, ModRevision: 10, Version: 1, Lease: 7},
	}, kvs)
	require.Equal(t, int64(13), Revision(t, s))
	require.Equal(t, "two words\n", string(Dump(t, s, 3)[0].Value))

	status := StatusOf(t, path)
	require.Equal(t, int64(13), status.Revision)
	require.Equal(t, 4, status.TotalKey)

	hash, rev, compacted := HashKV(t, s, 0)
	require.NotZero(t, hash)
	require.Equal(t, int64(13), rev)
	require.Equal(t, int64(-1), compacted)
}

func TestRestoredTwiceIsTheSame(t *testing.T) {
	path := Build(t, story+"compact 6\n")
	a, b := Start(t, Restore(t, path)), Start(t, Restore(t, path))
	require.Equal(t, Dump(t, a, 0), Dump(t, b, 0))
	hashA, revA, compactedA := HashKV(t, a, 0)
	hashB, revB, compactedB := HashKV(t, b, 0)
	require.Equal(t, []int64{int64(hashA), revA, compactedA}, []int64{int64(hashB), revB, compactedB})
	require.Equal(t, int64(6), compactedA)
}

func TestRestoreLeavesTheSnapshotAlone(t *testing.T) {
	path := Build(t, "put /a 1")
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	require.NoError(t, os.Chtimes(path, old, old))
	before, err := os.ReadFile(path)
	require.NoError(t, err)

	Restore(t, path)
	Restore(t, path, BumpRevision(1000))
	StatusOf(t, path)

	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, before, after)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, old, info.ModTime())
}

func TestRestoreBumped(t *testing.T) {
	s := Start(t, Restore(t, Build(t, "put /a 1"), BumpRevision(1000)))
	require.Equal(t, int64(1002), Revision(t, s))
	require.Equal(t, int64(2), Dump(t, s, 0)[0].ModRevision)
	_, err := s.Client.Put(context.Background(), "/b", "2")
	require.NoError(t, err)
	require.Equal(t, int64(1003), Dump(t, s, 0)[1].ModRevision)
}

func TestRestoreChecksTheDigest(t *testing.T) {
	path := Build(t, "put /a 1")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	data[len(data)-1] ^= 1
	bad := filepath.Join(t.TempDir(), "bad.db")
	require.NoError(t, os.WriteFile(bad, data, 0o600))

	_, err = TryRestore(t, bad)
	require.ErrorContains(t, err, "expected sha256")
}

func TestSaveHasTheDigest(t *testing.T) {
	data, err := os.ReadFile(Build(t, "put /a 1"))
	require.NoError(t, err)
	body, digest := data[:len(data)-sha256.Size], data[len(data)-sha256.Size:]
	want := sha256.Sum256(body)
	require.Equal(t, want[:], digest)
	require.Zero(t, len(body)%512)
}

func TestRunOnARestoredSnapshot(t *testing.T) {
	s := Start(t, Restore(t, Build(t, "put /a 1")))
	Run(t, s, `put /b "\x00\xffbytes"`+"\ncompact\n")
	kvs := Dump(t, s, 0)
	require.Equal(t, "\x00\xffbytes", string(kvs[1].Value))
	_, err := s.Client.Compact(context.Background(), 3)
	require.ErrorContains(t, err, "has been compacted")
}

func TestStopAndStartAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "member.etcd")
	s := Start(t, dir)
	Run(t, s, "put /a 1")
	s.Stop()
	s.Stop()
	require.Equal(t, "1", string(Dump(t, Start(t, dir), 0)[0].Value))
}

func TestScriptErrors(t *testing.T) {
	s := Start(t, filepath.Join(t.TempDir(), "errors.etcd"))
	for script, want := range map[string]string{
		"\nput /a":               `script line 2 "put /a": unknown command`,
		"bump 4":                 "unknown command",
		"put /a 1 lease=x":       "invalid syntax",
		"put /a 1 lease=99":      "requested lease not found",
		"put /a size=x":          "invalid syntax",
		`put "/a`:                "invalid syntax",
		"txn {\nput /a 1":        "txn without }",
		"txn {\ngrant 1 2\n}":    "unknown command",
		"grant 1":                "takes two numbers",
		"compact 1 2":            "at most one revision",
		"compact 900":            "future revision",
		"del /a /b":              "unknown command",
		"txn {\nput /a\n}":       "unknown command",
		"grant x 2":              "invalid syntax",
		"txn {\nput /a 1\n} # }": "",
	} {
		err := run(context.Background(), s.Client, script)
		if want == "" {
			require.NoError(t, err, "script %q", script)
			continue
		}
		require.ErrorContains(t, err, want, "script %q", script)
	}
}

func TestSplitWords(t *testing.T) {
	words, err := splitWords("put \"/a b\" `{\"x\": \"#\"}` size=3\t# comment")
	require.NoError(t, err)
	require.Equal(t, []string{"put", "/a b", `{"x": "#"}`, "size=3"}, words)
}

func TestBlob(t *testing.T) {
	require.Equal(t, Blob("k", 1000), Blob("k", 1000))
	require.NotEqual(t, Blob("k", 1000), Blob("l", 1000))
	require.Equal(t, Blob("k", 10), Blob("k", 1000)[:10])
}
