package move_test

import (
	"context"
	"crypto/sha256"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/archive"
	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/kcp/move"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/snapshot"
)

// TestVerifyWithout checks that a sound move is sound without the inputs of the commands and
// without a cache, and notes name the omitted comparisons.
func TestVerifyWithout(t *testing.T) {
	v := moveOf(t, consumer, root(t), shard1(t)).withoutInputs().requireSound(t)
	require.Len(t, v.Notes, 3)
	for n, option := range []string{"--cache", "--destination", "--origin"} {
		require.Contains(t, v.Notes[n], option)
	}
	require.Equal(t, []move.Moved{{Name: consumer, Path: "root:consumer", Keys: 36}}, v.Clusters)
	require.Equal(t, []string{"root", "shard-1"}, []string{v.From, v.To})
	moveOf(t, other, kcptest.Single(t), shard1(t)).requireSound(t) // with the origin's copies in its file
}

// TestVerifyScrubbed checks a scrubbed origin like an origin with tombstones. Without history,
// later writes than the archive show in the revision, or in the input of the purge.
func TestVerifyScrubbed(t *testing.T) {
	m := moveOf(t, consumer, root(t), shard1(t))
	scrubbed := func(in string) string { return purge(t, in, scrubbing, led).written().out }
	m.originOut = scrubbed(m.origin)
	m.requireSound(t)
	without := m
	without.origin = ""
	require.Contains(t, strings.Join(without.requireSound(t).Notes, "\n"),
		"36 records of the archive (kcp purge --scrub); only its revision, 797, shows that the archive has the "+
			"last records")
	without.originOut = edited(t, without.originOut, drop(trap))
	without.requireFound(t, "origin-touched")

	newer := edited(t, m.origin, put(itsSettings+"2", "x"))
	m.originOut = scrubbed(newer)
	for _, m.origin = range []string{m.origin, ""} { // neither was the input of the purge
		v := m.verdict(t)
		require.Empty(t, v.Findings)
		require.Len(t, v.Unchecked, 1)
		require.Equal(t, move.QuestionLost, v.Unchecked[0].Question)
		require.False(t, v.Sound())
	}
	m.origin = newer
	m.requireFound(t, "archive-outdated")
}

// TestVerifyOutdated checks that an archive from before the last writes is found, with the input of
// the purge and without.
func TestVerifyOutdated(t *testing.T) {
	sound := moveOf(t, consumer, root(t), shard1(t))
	again := swap(itsSettings, "a", "a")
	for name, edits := range map[string][]edit{
		"added": {put(itsSettings+"2", "x")}, "changed": {flip(itsSettings)}, "written as it was": {again},
		"added and deleted": {put(itsSettings+"2", "x"), drop(itsSettings + "2")},
	} {
		t.Run(name, func(t *testing.T) {
			m, newer := sound, edited(t, sound.origin, edits...)
			m.originOut = purgeOf(t, consumer, newer)
			for _, m.origin = range []string{"", sound.origin, newer} {
				v := m.requireFound(t, "archive-outdated")
				require.Contains(t, v.Findings[0].Key, itsSettings)
				require.Equal(t, "yes", v.Answers[1].Answer)
			}
		})
	}
	m := sound
	m.origin = edited(t, m.origin, drop(itsSettings)) // in the history this deletion looks like the purge
	m.originOut = purgeOf(t, consumer, m.origin)
	require.Equal(t, m.origin, m.requireFound(t, "archive-outdated").Findings[0].File)

	m = moveOf(t, consumer, edited(t, sound.origin, flip(itsSettings)), sound.destination)
	m.originOut, m.origin = purgeOf(t, consumer, edited(t, sound.origin, again)), "" // another state of that revision
	m.requireFound(t, "archive-outdated")
}

// TestVerifyIgnored checks that codes that end a check cannot be ignored, and a verdict without all
// answers is not sound.
func TestVerifyIgnored(t *testing.T) {
	all := append([]string{"damaged", "archive-damaged"}, finding.Names(move.Ignorable()...)...)
	require.Equal(t, all, finding.Names(move.Codes()...))
	no := move.Answer{Answer: "no"}
	require.False(t, (&move.Verdict{}).Sound())
	require.False(t, (&move.Verdict{Answers: []move.Answer{no, {Answer: "unknown"}, no, no}}).Sound())
	require.True(t, (&move.Verdict{Answers: []move.Answer{no, no, no, no}}).Sound())
}

// TestVerifyChildren checks an archive of several logical clusters as a whole.
func TestVerifyChildren(t *testing.T) {
	m := moveWith(t, root(t), shard1(t), family, move.Import{})
	require.Len(t, m.requireSound(t).Clusters, 2)
	m.originOut = purgeOf(t, consumer, m.origin)
	m.requireFound(t, "lives-twice", "still-at-origin")
}

// TestVerifyFixedOwner checks that --fix-owner changes a Workspace in a few fields, and any other
// change is found.
func TestVerifyFixedOwner(t *testing.T) {
	first, workspace := moveOf(t, consumer, root(t), shard1(t)), workspaceKey(consumer, "child")
	m := moveWith(t, first.originOut, first.destinationOut, move.Extract{Name: child}, move.Import{FixOwner: true})
	m.requireSound(t)
	m.withoutInputs().requireSound(t)
	m.destinationOut = edited(t, m.destinationOut, swap(workspace, `"name":"child"`, `"name":"chile"`))
	for _, m := range []moveFiles{m, m.withoutInputs()} {
		require.Equal(t, workspace, m.requireFound(t, "destination-touched").Findings[0].Key)
	}
}

// TestVerifyOthers checks that files other than an archive or a shard are errors.
func TestVerifyOthers(t *testing.T) {
	sound, cache := moveOf(t, consumer, root(t), shard1(t)), recorded(t, kcptest.Cache)
	partial := edited(t, sound.destinationOut, drop(home(kcp.SystemShard)))
	for name, c := range map[string]struct {
		change func(m *moveFiles)
		is     error
	}{
		"a shard for the archive":   {func(m *moveFiles) { m.archive = m.origin }, archive.ErrNotArchive},
		"a cache for the origin":    {func(m *moveFiles) { m.originOut = cache }, kcp.ErrNoShard},
		"a cache for a destination": {func(m *moveFiles) { m.destinationOut = cache }, kcp.ErrNoShard},
		"a shard for the cache":     {func(m *moveFiles) { m.caches = []string{m.origin} }, kcp.ErrNoCache},
		"the archive twice":         {func(m *moveFiles) { m.destinationOut = m.archive }, archive.ErrIsArchive},
		"an archive for the origin": {func(m *moveFiles) { m.originOut = m.archive }, archive.ErrIsArchive},
		"a part of a shard":         {func(m *moveFiles) { m.destinationOut = partial }, kcp.ErrNoShard},
	} {
		t.Run(name, func(t *testing.T) {
			m := sound
			c.change(&m)
			_, err := m.open(t).Verify(t.Context())
			require.ErrorIs(t, err, c.is)
		})
	}
	for _, file := range []func(*move.Move) **inspect.Reader{
		func(m *move.Move) **inspect.Reader { return &m.OriginOut },
		func(m *move.Move) **inspect.Reader { return &m.DestinationOut },
	} {
		_, err := sound.open(t, func(m *move.Move) { // a part of the storage, named as a storage
			at := file(m)
			*at = inspect.NewReader((*at).Snapshot(), nil, "/registry", "/registry/core")
			m.Prefixes = []string{"/registry"}
		}).Verify(t.Context())
		require.ErrorIs(t, err, kcp.ErrSplit)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	v, err := sound.open(t).Verify(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Nil(t, v)
}

// TestVerifyCacheOfTheDestination checks that with the cache in the destination's etcd, a move has
// stale copies until the origin's copies are purged from that file, as a step of the import says.
func TestVerifyCacheOfTheDestination(t *testing.T) {
	m := moveOf(t, consumer1, shard1(t), kcptest.Single(t))
	importInto(t, m.archive, m.destination, move.Import{}).written().requireSteps("the cache in this shard's own " +
		"file has copies")
	m.requireFound(t, "stale-copy")
	m.destinationOut = purge(t, m.destinationOut, move.Purge{Name: consumer1, FromShard: "shard-1"}).written().out
	m.requireSound(t)
	m.destination = ""
	m.requireSound(t)
}

// TestVerifyEachKey checks that any live key of either shard that is deleted, rewritten or changed
// by a byte is found by its key, without the inputs too.
func TestVerifyEachKey(t *testing.T) {
	sound := moveOf(t, other, root(t), shard1(t)).withoutInputs()
	for _, side := range []func(m *moveFiles) *string{originOut, destinationOut} {
		n, dir := 0, t.TempDir()
		src := openFile(t, *side(&sound))
		for rec, err := range src.Live(t.Context(), nil) {
			require.NoError(t, err)
			n++
			its := clusterOf(rec.Key) == other
			if n%9 != 0 && !its {
				continue
			}
			change := snapshot.Change{Key: rec.Key, Value: append([]byte{}, rec.Value...), Lease: rec.Lease,
				Prior: rec.ModRevision}
			switch n % 3 { // 2: the same value at another revision
			case 0:
				change.Delete, change.Value, change.Lease = true, nil, 0
			case 1:
				change.Value[len(change.Value)/2] ^= 1
			}
			m := sound
			*side(&m) = filepath.Join(dir, rec.Revision.String()+".db")
			_, err := snapshot.Write(t.Context(), *side(&m), src,
				func(yield func(snapshot.Change, error) bool) { yield(change, nil) },
				snapshot.WriteConfig{})
			require.NoError(t, err)
			v := m.verdict(t)
			require.Equal(t, its && n%3 == 2, len(v.Findings) == 0, "%s",
				rec.Key) // a moved record may be rewritten
			for _, f := range v.Findings { // a lost definition is also touched
				require.Equal(t, []string{string(rec.Key), *side(&m)}, []string{f.Key, f.File})
			}
		}
		require.Greater(t, n, 200)
	}
}

// FuzzVerifyHostile checks that with any bytes in any file of a move, under a correct digest, the
// check ends with an answer or an error.
func FuzzVerifyHostile(f *testing.F) {
	m := moveOf(f, other, root(f), shard1(f))
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
			s, err := snapshot.Open(t.Context(), path, snapshot.Config{})
			if err != nil {
				return
			}
			defer func() { require.NoError(t, s.Close()) }()
			open = append(open, inspect.NewReader(s, nil))
		}
		v, err := move.Move{Archive: open[0], OriginOut: open[1], DestinationOut: open[2]}.Verify(t.Context())
		if err == nil {
			require.Len(t, v.Answers, len(move.Questions()))
			require.Equal(t, len(v.Findings)+len(v.Unchecked) == 0, v.Sound())
		}
	})
}

// withFlipped returns a snapshot with two changed bytes and a correct digest.
func withFlipped(data []byte, at int, flip uint8, more int) []byte {
	out := append([]byte{}, data...)
	image := out[:len(out)-sha256.Size]
	image[at%len(image)] ^= flip
	image[(at+more)%len(image)] ^= flip
	sum := sha256.Sum256(image)
	copy(out[len(image):], sum[:])
	return out
}
