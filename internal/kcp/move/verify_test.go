package move_test

import (
	"context"
	"crypto/sha256"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/kcp/archive"
	"github.com/etcdshift/etcdshift/internal/kcp/move"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// TestVerifyWithout: without what extract, purge and import were given, and without a cache, a
// sound move is sound, and what was not compared is said.
func TestVerifyWithout(t *testing.T) {
	m := moveOf(t, kcptest.Consumer, kcptest.Recorded(t, kcptest.Root), kcptest.Recorded(t, kcptest.Shard1))
	m.origin, m.destination = "", ""
	v := m.verdict(t)
	requireSound(t, v)
	require.Len(t, v.Notes, 3)
	require.Contains(t, v.Notes[0], "--cache")
	require.Contains(t, v.Notes[1], "--destination")
	require.Contains(t, v.Notes[2], "--origin")
	require.Equal(t, []move.Moved{{Name: kcptest.Consumer, Path: "root:consumer", Keys: 36}}, v.Clusters)
	require.Equal(t, "root", v.From)
	require.Equal(t, "shard-1", v.To)
}

// TestVerifyScrubbed: an origin that was written anew is checked as one with tombstones on top, but
// for what was written there after the archive was made: its history is gone, and its revision
// tells, or the input of the purge.
func TestVerifyScrubbed(t *testing.T) {
	m := moveOf(t, kcptest.Consumer, kcptest.Recorded(t, kcptest.Root), kcptest.Recorded(t, kcptest.Shard1))
	m.originOut = purgeWith(t, m.origin, move.Purge{Name: kcptest.Consumer, Scrub: true}, "owner-points-here")
	requireSound(t, m.verdict(t))
	without := m
	without.origin = ""
	v := without.verdict(t)
	requireSound(t, v)
	require.Contains(t, strings.Join(v.Notes, "\n"), "36 records of the archive (kcp purge --scrub); that those were the last is told by its revision, 797, alone")
	on(originOut, drop(trap))(t, &without)
	require.Equal(t, []string{"origin-touched"}, codesOf(without.verdict(t)))

	newer := edit1(t, m.origin, put(itsSettings+"2", "x"))
	m.originOut = purgeWith(t, newer, move.Purge{Name: kcptest.Consumer, Scrub: true}, "owner-points-here")
	v = m.verdict(t) // of an older file than what was purged
	require.Empty(t, v.Findings)
	require.Len(t, v.Unchecked, 1)
	require.Equal(t, move.QuestionLost, v.Unchecked[0].Question)
	require.False(t, v.Sound())
	m.origin = ""
	v = m.verdict(t) // nor is it of what the archive was made of
	require.Empty(t, v.Findings)
	require.Len(t, v.Unchecked, 1)
	require.False(t, v.Sound())
	m.origin = newer
	require.Equal(t, []string{"archive-outdated"}, codesOf(m.verdict(t)))
}

// TestVerifyOutdated: an archive that is older than what was purged lacks what was written in
// between, with the origin and without.
func TestVerifyOutdated(t *testing.T) {
	sound := moveOf(t, kcptest.Consumer, kcptest.Recorded(t, kcptest.Root), kcptest.Recorded(t, kcptest.Shard1))
	for name, change := range map[string]func(*testing.T, *clientv3.Client){
		"added":             put(itsSettings+"2", "x"),
		"changed":           flip(itsSettings),
		"written as it was": swap(itsSettings, "a", "a"),
		"added and deleted": func(t *testing.T, client *clientv3.Client) {
			put(itsSettings+"2", "x")(t, client)
			drop(itsSettings+"2")(t, client)
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := sound
			newer := edit1(t, m.origin, change)
			m.originOut = purgeOf(t, kcptest.Consumer, newer)
			for _, origin := range []string{"", m.origin, newer} {
				m.origin = origin
				v := m.verdict(t)
				require.Equal(t, []string{"archive-outdated"}, codesOf(v), "%+v", v.Findings)
				require.Contains(t, v.Findings[0].Key, itsSettings)
				require.Equal(t, "yes", v.Answers[1].Answer)
			}
		})
	}
	t.Run("deleted", func(t *testing.T) { // which the history does not tell from the purge
		m := sound
		m.origin = edit1(t, m.origin, drop(itsSettings))
		m.originOut = purgeOf(t, kcptest.Consumer, m.origin)
		v := m.verdict(t)
		require.Equal(t, []string{"archive-outdated"}, codesOf(v))
		require.Equal(t, m.origin, v.Findings[0].File)
	})
	t.Run("another state of that revision", func(t *testing.T) {
		m := sound
		m.archive = extractOf(t, edit1(t, m.origin, flip(itsSettings)), extraction{Name: kcptest.Consumer})
		m.destinationOut = importInto(t, m.archive, m.destination, move.Import{}, transform.Options{}).written().out
		m.originOut = purgeOf(t, kcptest.Consumer, edit1(t, m.origin, swap(itsSettings, "a", "a")))
		m.origin = ""
		require.Equal(t, []string{"archive-outdated"}, codesOf(m.verdict(t)))
	})
}

// TestVerifyIgnored: what ends checking cannot be left out, and a verdict without an answer is not
// sound.
func TestVerifyIgnored(t *testing.T) {
	require.Equal(t, append([]string{"damaged", "archive-damaged"}, finding.Names(move.Ignorable()...)...), finding.Names(move.Codes()...))
	require.False(t, (&move.Verdict{}).Sound())
	require.False(t, (&move.Verdict{Answers: []move.Answer{{Answer: "no"}, {Answer: "unknown"}, {Answer: "no"}, {Answer: "no"}}}).Sound())
	require.True(t, (&move.Verdict{Answers: []move.Answer{{Answer: "no"}, {Answer: "no"}, {Answer: "no"}, {Answer: "no"}}}).Sound())
}

// TestVerifyCaches: copies that the origin wrote are found in a cache of its own, and are gone
// after they were purged.
func TestVerifyCaches(t *testing.T) {
	m := moveOf(t, kcptest.Consumer, kcptest.Recorded(t, kcptest.Root), kcptest.Recorded(t, kcptest.Shard1))
	cache := kcptest.Recorded(t, kcptest.Cache)
	purged := purgeWith(t, cache, move.Purge{Name: kcptest.Consumer, FromShard: "root"})
	m.caches = []string{purged}
	requireSound(t, m.verdict(t))
	m.caches = []string{cache, purged}
	v := m.verdict(t)
	require.Equal(t, []string{"stale-copy"}, codesOf(v))
	require.Equal(t, cache, v.Findings[0].File)
}

// TestVerifySingle: with shard and cache in one file, the origin's copies go with the purge.
func TestVerifySingle(t *testing.T) {
	requireSound(t, moveOf(t, kcptest.Other, kcptest.Single(t), kcptest.Recorded(t, kcptest.Shard1)).verdict(t))
}

// TestVerifyChildren: an archive of several logical clusters is checked as a whole.
func TestVerifyChildren(t *testing.T) {
	m := moveFiles{origin: kcptest.Recorded(t, kcptest.Root), destination: kcptest.Recorded(t, kcptest.Shard1)}
	m.archive = extractOf(t, m.origin, extraction{Name: kcptest.Consumer, WithChildren: true})
	m.originOut = purgeWith(t, m.origin, move.Purge{Name: kcptest.Consumer, WithChildren: true}, "owner-points-here")
	m.destinationOut = importInto(t, m.archive, m.destination, move.Import{}, transform.Options{}).written().out
	v := m.verdict(t)
	requireSound(t, v)
	require.Len(t, v.Clusters, 2)
	m.originOut = purgeOf(t, kcptest.Consumer, m.origin)
	require.Equal(t, []string{"lives-twice", "still-at-origin"}, codesOf(m.verdict(t)))
}

// TestVerifyFixedOwner: what --fix-owner writes is the import's; anything else in a Workspace is
// not.
func TestVerifyFixedOwner(t *testing.T) {
	first := moveOf(t, kcptest.Consumer, kcptest.Recorded(t, kcptest.Root), kcptest.Recorded(t, kcptest.Shard1))
	m := moveFiles{origin: first.originOut, destination: first.destinationOut, archive: extractOf(t, first.originOut, extraction{Name: kcptest.Child})}
	m.originOut = purgeOf(t, kcptest.Child, m.origin)
	m.destinationOut = importInto(t, m.archive, m.destination, move.Import{FixOwner: true}, transform.Options{}).written().out
	requireSound(t, m.verdict(t))
	without := m
	without.destination = ""
	requireSound(t, without.verdict(t))

	workspace := "/registry/tenancy.kcp.io/workspaces/" + kcptest.Tenancy + "/" + kcptest.Consumer + "/child"
	on(destinationOut, swap(workspace, `"name":"child"`, `"name":"chile"`))(t, &m)
	v := m.verdict(t)
	require.Equal(t, []string{"destination-touched"}, codesOf(v))
	require.Equal(t, workspace, v.Findings[0].Key)
	without.destinationOut = m.destinationOut
	require.Equal(t, []string{"destination-touched"}, codesOf(without.verdict(t)))
}

// TestVerifyElsewhere: keys of the logical cluster below another shard's prefix of the same file
// are at a second place.
func TestVerifyElsewhere(t *testing.T) {
	root, shard1 := kcptest.Recorded(t, kcptest.Root), kcptest.Recorded(t, kcptest.Shard1)
	both := kcptest.Edit(t, shard1, func(client *clientv3.Client) {
		kvs, _ := kcptest.Dump(t, root)
		for _, kv := range kvs {
			if clusterOf(kv.Key) != "" {
				kcptest.Put(t, client, "/shard/two"+string(kv.Key[len("/registry"):]), kv.Value)
			}
		}
	})
	m := moveFiles{origin: root, destination: both, archive: extractOf(t, root, extraction{Name: kcptest.Consumer}), originOut: purgeOf(t, kcptest.Consumer, root)}
	single := importInto(t, m.archive, shard1, move.Import{}, transform.Options{}).written()
	came, _ := single.arrived()
	m.destinationOut = kcptest.Edit(t, both, func(client *clientv3.Client) { putAll(t, client, came) })
	v := m.verdict(t, func(m *move.Move) { m.Prefixes = []string{"/registry"} })
	require.Contains(t, codesOf(v), "elsewhere")
	_, err := m.verify(t)
	require.ErrorIs(t, err, kcp.ErrSeveralShards)
}

func putAll(t testing.TB, client *clientv3.Client, kvs []etcdtest.KV) {
	t.Helper()
	for _, kv := range kvs {
		kcptest.Put(t, client, string(kv.Key), kv.Value)
	}
}

// TestVerifyOthers: files that are no archive or no shard cannot be checked.
func TestVerifyOthers(t *testing.T) {
	m := moveOf(t, kcptest.Consumer, kcptest.Recorded(t, kcptest.Root), kcptest.Recorded(t, kcptest.Shard1))
	for name, c := range map[string]struct {
		change func(m *moveFiles)
		is     error
	}{
		"a shard for the archive":   {func(m *moveFiles) { m.archive = m.origin }, archive.ErrNotArchive},
		"a cache for the origin":    {func(m *moveFiles) { m.originOut = kcptest.Recorded(t, kcptest.Cache) }, kcp.ErrNoShard},
		"a cache for a destination": {func(m *moveFiles) { m.destinationOut = kcptest.Recorded(t, kcptest.Cache) }, kcp.ErrNoShard},
		"a shard for the cache":     {func(m *moveFiles) { m.caches = []string{m.origin} }, kcp.ErrNoCache},
		"the archive twice":         {func(m *moveFiles) { m.destinationOut = m.archive }, archive.ErrIsArchive},
		"an archive for the origin": {func(m *moveFiles) { m.originOut = m.archive }, archive.ErrIsArchive},
		"a part of a shard": {func(m *moveFiles) {
			m.destinationOut = edit1(t, m.destinationOut, drop(kcptest.LogicalClusterKey("system:shard")))
		}, kcp.ErrNoShard},
	} {
		t.Run(name, func(t *testing.T) {
			m := m
			c.change(&m)
			_, err := m.verify(t)
			require.ErrorIs(t, err, c.is)
		})
	}
}

// TestVerifyInTheClear: a value that was encrypted and is not any more is found, though nobody can
// open it; the very bytes under the very key are the same value.
func TestVerifyInTheClear(t *testing.T) {
	const secret = "/registry/core/secrets/" + kcptest.Consumer + "/default/sec"
	encrypted := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Root), func(client *clientv3.Client) {
		kcptest.Put(t, client, secret, []byte("k8s:enc:aescbc:v1:k1:0123456789abcdef0123456789abcdef"))
	})
	m := moveFiles{origin: encrypted, destination: kcptest.Recorded(t, kcptest.Shard1), archive: extractOf(t, encrypted, extraction{Name: kcptest.Consumer}), originOut: purgeOf(t, kcptest.Consumer, encrypted)}
	m.destinationOut = importInto(t, m.archive, m.destination, move.Import{}, transform.Options{Allow: []string{"encrypted"}}).out
	requireSound(t, m.verdict(t))
	on(destinationOut, put(secret, "in the clear"))(t, &m)
	v := m.verdict(t)
	require.Equal(t, []string{"in-the-clear"}, codesOf(v))
	require.Equal(t, secret, v.Findings[0].Key)
	require.Empty(t, v.Unchecked)

	on(destinationOut, put(secret, "k8s:enc:aescbc:v1:k2:0123456789abcdef0123456789abcdef"))(t, &m)
	v = m.verdict(t)
	require.Empty(t, v.Findings)
	require.Equal(t, []move.Finding{{Finding: finding.Finding{Key: secret, Reason: v.Unchecked[0].Reason}, Question: move.QuestionLost, File: m.archive}}, v.Unchecked)
	require.False(t, v.Sound())
	require.Equal(t, "unknown", v.Answers[1].Answer)
}

// TestVerifyInterrupted: who interrupts gets no answer.
func TestVerifyInterrupted(t *testing.T) {
	m := moveOf(t, kcptest.Other, kcptest.Recorded(t, kcptest.Root), kcptest.Recorded(t, kcptest.Shard1))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	v, err := m.open(t).Verify(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Nil(t, v)
}

// TestVerifyCacheOfTheDestination: a move to the shard whose etcd holds the cache too is checked
// stale until the origin's copies are taken out of that file, as the step of the import says, and
// sound then.
func TestVerifyCacheOfTheDestination(t *testing.T) {
	from, to := kcptest.Recorded(t, kcptest.Shard1), kcptest.Single(t)
	archived := extractOf(t, from, extraction{Name: kcptest.Consumer1})
	came := importInto(t, archived, to, move.Import{}, transform.Options{}).written()
	require.Contains(t, strings.Join(came.report.Steps, "\n"), "the cache in this shard's own file has copies")
	m := moveFiles{archive: archived, origin: from, originOut: purgeOf(t, kcptest.Consumer1, from), destination: to, destinationOut: came.out}
	require.Equal(t, []string{"stale-copy"}, codesOf(m.verdict(t)))

	m.destinationOut = purgeWith(t, came.out, move.Purge{Name: kcptest.Consumer1, FromShard: "shard-1"})
	requireSound(t, m.verdict(t))
	m.destination = ""
	requireSound(t, m.verdict(t))
}

// TestVerifyEachKey: whichever live key of one side is deleted, written again or changed by a byte,
// it is found, and by its key; without what purge and import were given too.
func TestVerifyEachKey(t *testing.T) {
	sound := moveOf(t, kcptest.Other, kcptest.Recorded(t, kcptest.Root), kcptest.Recorded(t, kcptest.Shard1))
	sound.origin, sound.destination = "", ""
	dir := t.TempDir()
	for _, side := range []func(m *moveFiles) *string{originOut, destinationOut} {
		n := 0
		src := openFile(t, *side(&sound))
		for rec, err := range src.Live(context.Background(), nil) {
			require.NoError(t, err)
			n++
			if n%9 != 0 && clusterOf(rec.Key) != kcptest.Other {
				continue
			}
			m := sound
			*side(&m) = filepath.Join(dir, filepath.Base(*side(&sound))+string(rec.Key[len(rec.Key)-1:])+rec.Revision.String()+".db")
			change := snapshot.Change{Key: rec.Key, Value: append([]byte{}, rec.Value...), Lease: rec.Lease, Prior: rec.ModRevision}
			changeless := false
			switch n % 3 {
			case 0:
				change.Delete, change.Value, change.Lease = true, nil, 0
			case 1:
				change.Value[len(change.Value)/2] ^= 1
			case 2: // the same again, at another revision: no harm to what was moved, and a write all the same
				changeless = clusterOf(rec.Key) == kcptest.Other
			}
			writeChange(t, src, *side(&m), change)
			v := m.verdict(t)
			if changeless {
				require.Empty(t, v.Findings, "%s", rec.Key)
				continue
			}
			require.NotEmpty(t, v.Findings, "%s", rec.Key)
			for _, f := range v.Findings { // a definition that is lost is touched, too
				require.Equal(t, string(rec.Key), f.Key)
				require.Equal(t, *side(&m), f.File)
			}
		}
		require.Greater(t, n, 200)
	}
}

// writeChange writes one change on top of a snapshot.
func writeChange(t *testing.T, src *snapshot.Snapshot, path string, change snapshot.Change) {
	t.Helper()
	_, err := snapshot.Write(context.Background(), path, src, func(yield func(snapshot.Change, error) bool) { yield(change, nil) }, snapshot.WriteConfig{})
	require.NoError(t, err)
}

// FuzzVerifyHostile: bytes of any file of a move may be anything, under a digest that is right, and
// checking ends with an answer or an error, whatever they were.
func FuzzVerifyHostile(f *testing.F) {
	m := moveOf(f, kcptest.Other, kcptest.Recorded(f, kcptest.Root), kcptest.Recorded(f, kcptest.Shard1))
	var files [][]byte
	for _, path := range []string{m.archive, m.originOut, m.destinationOut} {
		data, err := os.ReadFile(path)
		require.NoError(f, err)
		files = append(files, data)
	}
	for file := range uint8(3) {
		for at := range uint32(40) {
			f.Add(file, at*4096+at*97, uint8(1<<(at%8)), uint32(16))
		}
	}
	f.Fuzz(func(t *testing.T, file uint8, at uint32, flip uint8, more uint32) {
		dir := t.TempDir()
		var open []*inspect.Reader
		for i, data := range files {
			if i == int(file)%len(files) {
				data = withFlipped(data, int(at), flip, int(more))
			}
			path := filepath.Join(dir, string(rune('a'+i))+".db")
			require.NoError(t, os.WriteFile(path, data, 0o600))
			s, err := snapshot.Open(context.Background(), path, snapshot.Config{})
			if err != nil {
				return
			}
			defer func() { require.NoError(t, s.Close()) }()
			open = append(open, inspect.NewReader(s, nil))
		}
		v, err := move.Move{Archive: open[0], OriginOut: open[1], DestinationOut: open[2]}.Verify(context.Background())
		if err == nil {
			require.Len(t, v.Answers, len(move.Questions()))
			require.Equal(t, len(v.Findings)+len(v.Unchecked) == 0, v.Sound())
		}
	})
}

// withFlipped is a snapshot with two other bytes, and the digest of what it is now.
func withFlipped(data []byte, at int, flip uint8, more int) []byte {
	out := append([]byte{}, data...)
	image := out[:len(out)-sha256.Size]
	image[at%len(image)] ^= flip
	image[(at+more)%len(image)] ^= flip
	sum := sha256.Sum256(image)
	copy(out[len(image):], sum[:])
	return out
}
