package kcp_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/internal/kcp/carry"
	"github.com/etcdshift/etcdshift/internal/kcp/purge"
	"github.com/etcdshift/etcdshift/internal/kcp/verify"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/transform"
)

// providerMove moves the owner of APIExports from root to shard-1, its copies in the cache with it.
func providerMove(t testing.TB) moveFiles {
	t.Helper()
	m := moveOf(t, kcptest.ClaimsProvider, kcptest.Recorded(t, kcptest.ClaimsRoot), kcptest.Recorded(t, kcptest.ClaimsShard1))
	m.cachesBefore = []string{kcptest.Recorded(t, kcptest.ClaimsCache)}
	m.caches = []string{purgeWith(t, m.cachesBefore[0], toShard1)}
	return m
}

// claimed are the ConfigMaps that have the label of a permission claim.
func claimed(t testing.TB, path string) (found []etcdtest.KV) {
	t.Helper()
	kvs, _ := kcptest.Dump(t, path)
	return slices.DeleteFunc(kvs, func(kv etcdtest.KV) bool {
		meta, err := encoding.ReadMeta(kv.Value)
		if err != nil || !bytes.Contains(kv.Key, []byte("/core/configmaps/")) {
			return true
		}
		for label := range meta.Labels {
			if bytes.HasPrefix([]byte(label), []byte("claimed.internal.apis.kcp.io/")) {
				return false
			}
		}
		return true
	})
}

// TestMoveProvider: the owner of an APIExport moves; what makes kcp keep the labels of its
// permission claims on other tenants' objects, its copies in the cache, moves with it and is the
// same, key by key; the labels are as they were.
func TestMoveProvider(t *testing.T) {
	m := providerMove(t)
	require.Equal(t, 14, requireMoved(t, m.cachesBefore[0], m.caches[0], kcptest.ClaimsProvider))
	labelled := claimed(t, m.origin)
	require.Len(t, labelled, 32)
	require.Equal(t, labelled, claimed(t, m.originOut))
	requireGone(t, m.origin, m.originOut, func(key []byte) bool { return clusterOf(key) == kcptest.ClaimsProvider })

	v := m.verdict(t)
	requireSound(t, v)
	require.Empty(t, v.Notes)
	with := checkedOf(v, verify.QuestionLost)
	without := m
	without.cachesBefore = nil
	v = without.verdict(t)
	requireSound(t, v)
	require.Len(t, v.Notes, 1)
	require.Contains(t, v.Notes[0], "--cache-before")
	require.Equal(t, with, checkedOf(v, verify.QuestionLost), "the copies are compared by the history of the purge")
	without.caches = nil
	v = without.verdict(t)
	require.Empty(t, v.Findings)
	require.Len(t, v.Unchecked, 2, "of each APIExport")
	require.False(t, v.Sound())
}

func checkedOf(v *verify.Verdict, q verify.Question) int {
	for _, a := range v.Answers {
		if a.Question == q {
			return a.Checked
		}
	}
	return 0
}

// TestMoveProviderSpoiled: what is wrong with the copies is found and named, by their history and
// by the input of the purge.
func TestMoveProviderSpoiled(t *testing.T) {
	sound := providerMove(t)
	to, other := asOf(claimsCopy, "shard-1"), exportsDir+"root/root/tenancy.kcp.io"
	cache := func(m *moveFiles) *string { return &m.caches[0] }
	for name, c := range map[string]struct {
		spoil   func(t *testing.T, m *moveFiles)
		history []string // found without the input of the purge
		before  []string // and with it
		key     string
	}{
		"one is lost":    {on(cache, drop(to)), []string{"copy-lost"}, []string{"copy-lost"}, to},
		"one is changed": {on(cache, flip(to)), []string{"copy-changed"}, []string{"copy-changed"}, to},
		"one is not an exporter's, and lost": {
			on(cache, drop("/cache/core.kcp.io/logicalclusters/customresources/shard-1/"+kcptest.ClaimsProvider+"/cluster")),
			[]string{"copy-lost"}, []string{"copy-lost"}, "/cache/core.kcp.io/logicalclusters/customresources/shard-1/" + kcptest.ClaimsProvider + "/cluster",
		},
		"the origin's are back": {on(cache, put(claimsCopy, "{}")), []string{"stale-copy"}, []string{"stale-copy"}, claimsCopy},
		"another's is gone":     {on(cache, drop(other)), nil, []string{"cache-touched"}, other},
		"one more":              {on(cache, put(to+"2", "{}")), nil, []string{"copy-changed"}, to + "2"},
		"all are deleted": {func(t *testing.T, m *moveFiles) {
			o := toShard1
			o.ToShard = ""
			m.caches = []string{purgeWith(t, m.cachesBefore[0], o, codeExportsInCache)}
		}, []string{"copy-lost"}, []string{"copy-lost"}, to},
		"another shard got them": {func(t *testing.T, m *moveFiles) {
			o := toShard1
			o.ToShard = "shard-2"
			m.caches = []string{purgeWith(t, m.cachesBefore[0], o)}
		}, []string{"stale-copy"}, []string{"copy-lost", "stale-copy"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := sound
			m.caches = slices.Clone(sound.caches)
			c.spoil(t, &m)
			v := m.verdict(t)
			require.Subset(t, codesOf(v), c.before, "%+v", v.Findings)
			requireNames(t, v, c.key)
			m.cachesBefore = nil
			v = m.verdict(t)
			require.Subset(t, codesOf(v), c.history, "%+v", v.Findings)
			if len(c.history) > 0 {
				requireNames(t, v, c.key)
			}
		})
	}
}

func requireNames(t *testing.T, v *verify.Verdict, key string) {
	t.Helper()
	require.False(t, v.Sound())
	require.True(t, key == "" || slices.ContainsFunc(v.Findings, func(f verify.Finding) bool { return f.Key == key }), "%s: %+v", key, v.Findings)
}

// TestMoveProviderScrubbed: a cache without history is checked by the input of its purge alone.
func TestMoveProviderScrubbed(t *testing.T) {
	m := providerMove(t)
	o := toShard1
	o.Scrub = true
	m.caches = []string{purgeWith(t, m.cachesBefore[0], o)}
	requireSound(t, m.verdict(t))
	m.cachesBefore = nil
	v := m.verdict(t)
	require.Empty(t, v.Findings)
	require.Len(t, v.Unchecked, 14)
	require.Contains(t, v.Unchecked[0].Reason, "--cache-before")
}

// TestMoveProviderOfOneEtcd: where the origin's etcd holds the cache, one purge does both, and is
// checked with its input and without.
func TestMoveProviderOfOneEtcd(t *testing.T) {
	root := claimsInOne(t)
	m := moveFiles{origin: root, destination: kcptest.Recorded(t, kcptest.ClaimsShard1), archive: extractOf(t, root, extraction{Name: kcptest.ClaimsProvider})}
	m.destinationOut = importInto(t, m.archive, m.destination, carry.Import{}, transform.Options{}).written().out
	for _, scrub := range []bool{false, true} {
		m.originOut = purgeWith(t, root, purge.Purge{Name: kcptest.ClaimsProvider, ToShard: "shard-1", Scrub: scrub}, codeOwnerPointsHere)
		requireSound(t, m.verdict(t))
		without := m
		without.origin = ""
		if v := without.verdict(t); !scrub {
			requireSound(t, v)
		} else {
			require.Empty(t, v.Findings)
			require.NotEmpty(t, v.Unchecked)
		}
	}
	m.originOut = purgeWith(t, root, purge.Purge{Name: kcptest.ClaimsProvider}, codeOwnerPointsHere, codeExportsInCache)
	require.Equal(t, []string{"copy-lost"}, codesOf(m.verdict(t)))
	m.originOut = purgeWith(t, root, purge.Purge{Name: kcptest.ClaimsProvider, ToShard: "shard-1"}, codeOwnerPointsHere)
	on(originOut, flip(asOf(claimsCopy, "shard-1")))(t, &m)
	require.Equal(t, []string{"copy-changed"}, codesOf(m.verdict(t)))
	m.origin = ""
	require.Equal(t, []string{"copy-changed"}, codesOf(m.verdict(t)))
}

// TestMoveProviderToTheCache: where the destination's etcd holds the cache, its copies move in the
// output of the import.
func TestMoveProviderToTheCache(t *testing.T) {
	from, to := kcptest.Recorded(t, kcptest.ClaimsShard1), claimsInOne(t)
	archived := extractOf(t, from, extraction{Name: kcptest.ClaimsProvider1})
	m := moveFiles{archive: archived, origin: from, originOut: purgeOf(t, kcptest.ClaimsProvider1, from), destination: to}
	came := importInto(t, archived, to, carry.Import{}, transform.Options{}).written()
	require.True(t, hasStep(came.report.Steps, "--from-shard shard-1 --to-shard root; restore that output then"), "%q", came.report.Steps)
	require.True(t, hasStep(came.report.Steps, "kcp verify "+archived+" ORIGIN-OUT OUT-2"), "%q", came.report.Steps)
	require.False(t, hasStep(came.report.Steps, "CACHE-OUT"), "%q", came.report.Steps)
	o := purge.Purge{Name: kcptest.ClaimsProvider1, FromShard: "shard-1", ToShard: "root"}
	m.destinationOut = purgeWith(t, came.out, o)
	requireSound(t, m.verdict(t))
	m.destination = ""
	requireSound(t, m.verdict(t))
	one := exportsDir + "root/" + kcptest.ClaimsProvider1 + "/one.dev"
	on(destinationOut, func(t *testing.T, client *clientv3.Client) { kcptest.Delete(t, client, one) })(t, &m)
	require.Contains(t, codesOf(m.verdict(t)), "copy-lost")
}
