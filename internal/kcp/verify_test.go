package kcp_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/kcp/archive"
	"github.com/etcdshift/etcdshift/internal/kcp/carry"
	"github.com/etcdshift/etcdshift/internal/kcp/clusters"
	"github.com/etcdshift/etcdshift/internal/kcp/purge"
	"github.com/etcdshift/etcdshift/internal/kcp/verify"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
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
	require.Equal(t, []verify.Moved{{Name: kcptest.Consumer, Path: "root:consumer", Keys: 36}}, v.Clusters)
	require.Equal(t, "root", v.From)
	require.Equal(t, "shard-1", v.To)
}

// TestVerifyScrubbed: an origin that was written anew is checked as one with tombstones on top, but
// for what was written there after the archive was made: its history is gone, and its revision
// tells, or the input of the purge.
func TestVerifyScrubbed(t *testing.T) {
	m := moveOf(t, kcptest.Consumer, kcptest.Recorded(t, kcptest.Root), kcptest.Recorded(t, kcptest.Shard1))
	m.originOut = purgeWith(t, m.origin, purge.Purge{Name: kcptest.Consumer, Scrub: true}, codeOwnerPointsHere)
	requireSound(t, m.verdict(t))
	without := m
	without.origin = ""
	v := without.verdict(t)
	requireSound(t, v)
	require.Contains(t, strings.Join(v.Notes, "\n"), "36 records of the archive (kcp purge --scrub); that those were the last is told by its revision, 797, alone")
	on(originOut, drop(trap))(t, &without)
	require.Equal(t, []string{"origin-touched"}, codesOf(without.verdict(t)))

	newer := edit1(t, m.origin, put(itsSettings+"2", "x"))
	m.originOut = purgeWith(t, newer, purge.Purge{Name: kcptest.Consumer, Scrub: true}, codeOwnerPointsHere)
	v = m.verdict(t) // of an older file than what was purged
	require.Empty(t, v.Findings)
	require.Len(t, v.Unchecked, 1)
	require.Equal(t, verify.QuestionLost, v.Unchecked[0].Question)
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
		m.destinationOut = importInto(t, m.archive, m.destination, carry.Import{}, transform.Options{}).written().out
		m.originOut = purgeOf(t, kcptest.Consumer, edit1(t, m.origin, swap(itsSettings, "a", "a")))
		m.origin = ""
		require.Equal(t, []string{"archive-outdated"}, codesOf(m.verdict(t)))
	})
}

// TestVerifyIgnored: what ends checking cannot be left out, and a verdict without an answer is not
// sound.
func TestVerifyIgnored(t *testing.T) {
	require.Equal(t, append([]string{"damaged", "archive-damaged"}, finding.Names(verify.Ignorable()...)...), finding.Names(verify.Codes()...))
	require.False(t, (&verify.Verdict{}).Sound())
	require.False(t, (&verify.Verdict{Answers: []verify.Answer{{Answer: "no"}, {Answer: "unknown"}, {Answer: "no"}, {Answer: "no"}}}).Sound())
	require.True(t, (&verify.Verdict{Answers: []verify.Answer{{Answer: "no"}, {Answer: "no"}, {Answer: "no"}, {Answer: "no"}}}).Sound())
}

// TestVerifyCaches: copies that the origin wrote are found in a cache of its own, and are gone
// after they were purged.
func TestVerifyCaches(t *testing.T) {
	m := moveOf(t, kcptest.Consumer, kcptest.Recorded(t, kcptest.Root), kcptest.Recorded(t, kcptest.Shard1))
	cache := kcptest.Recorded(t, kcptest.Cache)
	purged := purgeWith(t, cache, purge.Purge{Name: kcptest.Consumer, FromShard: "root"})
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
	m.originOut = purgeWith(t, m.origin, purge.Purge{Name: kcptest.Consumer, WithChildren: true}, codeOwnerPointsHere)
	m.destinationOut = importInto(t, m.archive, m.destination, carry.Import{}, transform.Options{}).written().out
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
	m.destinationOut = importInto(t, m.archive, m.destination, carry.Import{FixOwner: true}, transform.Options{}).written().out
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
	single := importInto(t, m.archive, shard1, carry.Import{}, transform.Options{}).written()
	came, _ := single.arrived()
	m.destinationOut = kcptest.Edit(t, both, func(client *clientv3.Client) { putAll(t, client, came) })
	v := m.verdict(t, func(m *verify.Move) { m.Prefixes = []string{"/registry"} })
	require.Contains(t, codesOf(v), "elsewhere")
	_, err := m.verify(t)
	require.ErrorIs(t, err, clusters.ErrSeveralShards)
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
		"a cache for the origin":    {func(m *moveFiles) { m.originOut = kcptest.Recorded(t, kcptest.Cache) }, clusters.ErrNoShard},
		"a cache for a destination": {func(m *moveFiles) { m.destinationOut = kcptest.Recorded(t, kcptest.Cache) }, clusters.ErrNoShard},
		"a shard for the cache":     {func(m *moveFiles) { m.caches = []string{m.origin} }, clusters.ErrNoCache},
		"the archive twice":         {func(m *moveFiles) { m.destinationOut = m.archive }, archive.ErrIsArchive},
		"an archive for the origin": {func(m *moveFiles) { m.originOut = m.archive }, archive.ErrIsArchive},
		"a part of a shard": {func(m *moveFiles) {
			m.destinationOut = edit1(t, m.destinationOut, drop(kcptest.LogicalClusterKey("system:shard")))
		}, clusters.ErrNoShard},
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
	m.destinationOut = importInto(t, m.archive, m.destination, carry.Import{}, transform.Options{Allow: []string{codeEncrypted}}).out
	requireSound(t, m.verdict(t))
	on(destinationOut, put(secret, "in the clear"))(t, &m)
	v := m.verdict(t)
	require.Equal(t, []string{"in-the-clear"}, codesOf(v))
	require.Equal(t, secret, v.Findings[0].Key)
	require.Empty(t, v.Unchecked)

	on(destinationOut, put(secret, "k8s:enc:aescbc:v1:k2:0123456789abcdef0123456789abcdef"))(t, &m)
	v = m.verdict(t)
	require.Empty(t, v.Findings)
	require.Equal(t, []verify.Finding{{Finding: finding.Finding{Key: secret, Reason: v.Unchecked[0].Reason}, Question: verify.QuestionLost, File: m.archive}}, v.Unchecked)
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
