package kcp_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/internal/kcp/clusters"
	"github.com/etcdshift/etcdshift/internal/kcp/purge"
	"github.com/etcdshift/etcdshift/internal/kcp/survey"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/internal/test/sections"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// report is a report and its receipts.
type report struct {
	*transform.Report
	*survey.Receipts
}

func reportOf(r *transform.Report) *report {
	return &report{r, sections.Of[survey.Receipts](r)}
}

// tryPurge purges with codes allowed and returns the report and the output's path.
func tryPurge(t *testing.T, in string, o purge.Purge, allow ...string) (*report, string, error) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.db")
	r, err := transform.Run(context.Background(), transform.Options{Command: "kcp purge", In: in, Out: out, Allow: allow, Prefixes: o.Prefixes}, &o)
	return reportOf(r), out, err
}

// purged is tryPurge that must succeed.
func purged(t *testing.T, in string, o purge.Purge, allow ...string) (*report, string) {
	t.Helper()
	r, out, err := tryPurge(t, in, o, allow...)
	require.NoError(t, err, "%+v", r.Problems)
	require.Equal(t, transform.Written, r.Outcome)
	return r, out
}

// clusterOf is the logical cluster of a key of a shard below /registry.
func clusterOf(key []byte) string {
	k, err := keys.KCPShard{Prefix: "/registry"}.Parse(key)
	if err != nil {
		return ""
	}
	return k.Cluster
}

// shardOf is which shard's copy of which logical cluster a key below /cache is.
func shardOf(key []byte) (shard, cluster string) {
	k, err := keys.KCPCache{Prefix: "/cache"}.Parse(key)
	if err != nil {
		return "", ""
	}
	return k.Shard, k.Cluster
}

// requireGone requires that a real etcd serves from out what it serves from in, revisions, leases
// and all, but for the keys that gone names, and returns how many those are.
func requireGone(t *testing.T, in, out string, gone func(key []byte) bool) int {
	t.Helper()
	before, leasesBefore := kcptest.Dump(t, in)
	after, leasesAfter := kcptest.Dump(t, out)
	n := len(before)
	before = slices.DeleteFunc(before, func(kv etcdtest.KV) bool { return gone(kv.Key) })
	require.Equal(t, before, after)
	require.Equal(t, leasesBefore, leasesAfter)
	return n - len(before)
}

// codes are the codes of a report's problems, each once.
func codes(r *report) (found []string) {
	for _, p := range r.Problems {
		if !slices.Contains(found, p.Code.Name) {
			found = append(found, p.Code.Name)
		}
	}
	slices.Sort(found)
	return found
}

// TestOnlyItsOwn: the trap, a namespace of another logical cluster that is named like the one that
// is purged, stays.
func TestOnlyItsOwn(t *testing.T) {
	in := kcptest.Recorded(t, kcptest.Root)
	r, out := purged(t, in, purge.Purge{Name: kcptest.Consumer}, codeOwnerPointsHere)
	require.Equal(t, transform.Changes{Deleted: 36}, r.Changes)
	require.Equal(t, 36, requireGone(t, in, out, func(key []byte) bool { return clusterOf(key) == kcptest.Consumer }))
	after, _ := kcptest.Dump(t, out)
	for _, trapped := range kcptest.Trapped() {
		require.True(t, slices.ContainsFunc(after, func(kv etcdtest.KV) bool { return string(kv.Key) == trapped }), trapped)
	}
	require.Equal(t, []string{codeChildrenStay, codeOwnerPointsHere}, codes(r))

	require.Len(t, r.Clusters, 1)
	c := r.Clusters[0]
	require.Equal(t, kcptest.Consumer, c.Name)
	require.Equal(t, "root:consumer", c.Path)
	require.Equal(t, 36, c.Keys)
	require.Zero(t, c.Copies)
	require.Len(t, c.SHA256, 64)
	require.Equal(t, 370-36, r.Rest.Keys)
	require.Equal(t, r.Input.Keys, r.Output.Keys+36)
}

// TestNamePrefix: a logical cluster whose name begins with the purged one's, or with which that
// begins, stays.
func TestNamePrefix(t *testing.T) {
	longer, shorter := kcptest.Consumer+"x", kcptest.Consumer[:15]
	in := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Root), func(client *clientv3.Client) {
		for _, name := range []string{longer, shorter} {
			lc := kcptest.Get(t, client, kcptest.LogicalClusterKey(kcptest.Consumer))
			kcptest.Put(t, client, kcptest.LogicalClusterKey(name), lc)
			kcptest.Put(t, client, "/registry/core/configmaps/"+name+"/default/a", []byte("{}"))
			kcptest.Put(t, client, "/registry/example.dev/widgets/"+kcptest.ExampleDev+"/"+name+"/default/a", []byte("{}"))
		}
	})
	_, out := purged(t, in, purge.Purge{Name: kcptest.Consumer}, codeOwnerPointsHere, codeKeyMismatch)
	require.Equal(t, 36, requireGone(t, in, out, func(key []byte) bool { return clusterOf(key) == kcptest.Consumer }))
	_, out = purged(t, in, purge.Purge{Name: shorter}, codeOwnerPointsHere, codeKeyMismatch)
	require.Equal(t, 3, requireGone(t, in, out, func(key []byte) bool { return clusterOf(key) == shorter }))
}

// TestWithChildren: the child goes too, and its Workspace in the purged parent is no obstacle.
func TestWithChildren(t *testing.T) {
	in := kcptest.Recorded(t, kcptest.Root)
	r, out := purged(t, in, purge.Purge{Name: kcptest.Consumer, WithChildren: true}, codeOwnerPointsHere)
	n := requireGone(t, in, out, func(key []byte) bool {
		return slices.Contains([]string{kcptest.Consumer, kcptest.Child}, clusterOf(key))
	})
	require.Equal(t, n, r.Changes.Deleted)
	require.Len(t, r.Clusters, 2)
	require.Equal(t, kcptest.Child, r.Clusters[1].Name)
	require.Equal(t, n, r.Clusters[0].Keys+r.Clusters[1].Keys)
	require.Equal(t, []string{codeOwnerPointsHere}, codes(r))
	require.Len(t, r.Problems, 1, "of the parent alone")
}

// TestTwice: what is gone is not there a second time.
func TestTwice(t *testing.T) {
	_, out := purged(t, kcptest.Recorded(t, kcptest.Root), purge.Purge{Name: kcptest.Other}, codeOwnerPointsHere)
	r, again, err := tryPurge(t, out, purge.Purge{Name: kcptest.Other}, codeOwnerPointsHere)
	require.ErrorIs(t, err, clusters.ErrNoCluster)
	require.Equal(t, transform.Failed, r.Outcome)
	require.NoFileExists(t, again)
}

// TestNoCluster: a name that does not live here ends in an error that says what there is.
func TestNoCluster(t *testing.T) {
	root, cache := kcptest.Recorded(t, kcptest.Root), kcptest.Recorded(t, kcptest.Cache)
	for name, c := range map[string]struct {
		in   string
		o    purge.Purge
		is   error
		says string
	}{
		"a path":            {root, purge.Purge{Name: "root:other"}, clusters.ErrNoCluster, kcptest.Other},
		"nothing like it":   {root, purge.Purge{Name: "nowhere"}, clusters.ErrNoCluster, `"nowhere"`},
		"a cache":           {cache, purge.Purge{Name: kcptest.Other}, purge.ErrCacheAlone, `a cache below "/cache"`},
		"no cache":          {root, purge.Purge{Name: kcptest.Other, FromShard: "root"}, purge.ErrNoCacheHere, `a shard below "/registry"`},
		"no copies":         {cache, purge.Purge{Name: "nowhere", FromShard: "root"}, clusters.ErrNoCluster, "from any shard"},
		"another shard's":   {cache, purge.Purge{Name: kcptest.Consumer1, FromShard: "root"}, clusters.ErrNoCluster, `it has copies from "shard-1"`},
		"no orphans":        {root, purge.Purge{Name: kcptest.Consumer1, Orphans: true}, clusters.ErrNoCluster, "this shard has no orphans"},
		"not of one, lives": {root, purge.Purge{Name: kcptest.Other, Orphans: true}, clusters.ErrNoCluster, "lives on this shard"},
		"another prefix":    {root, purge.Purge{Name: kcptest.Other, Prefixes: []string{"/elsewhere"}}, clusters.ErrNoShard, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, out, err := tryPurge(t, c.in, c.o)
			require.ErrorIs(t, err, c.is)
			require.ErrorContains(t, err, c.says)
			require.NoFileExists(t, out)
		})
	}
}

// TestDeterministic: the same bytes each time.
func TestDeterministic(t *testing.T) {
	in := kcptest.Recorded(t, kcptest.Root)
	for _, scrub := range []bool{false, true} {
		o := purge.Purge{Name: kcptest.Consumer, WithChildren: true, Scrub: scrub}
		first, _ := purged(t, in, o, codeOwnerPointsHere)
		second, _ := purged(t, in, o, codeOwnerPointsHere)
		require.Equal(t, first.Output.SHA256, second.Output.SHA256)
	}
}

// TestSteps: what is left to do by hand names the cache, and the Workspace that leads nowhere.
func TestSteps(t *testing.T) {
	r, _ := purged(t, kcptest.Recorded(t, kcptest.Root), purge.Purge{Name: kcptest.Consumer}, codeOwnerPointsHere)
	all := strings.Join(r.Steps, "\n")
	require.Contains(t, all, "etcdshift kcp purge "+kcptest.Consumer+" CACHE CACHE-OUT --from-shard root --to-shard NEW-SHARD")
	require.Contains(t, all, `Workspace "consumer" in "root" still leads to "`+kcptest.Consumer+`"`)
	require.NotEmpty(t, r.Restore)

	r, _ = purged(t, kcptest.Recorded(t, kcptest.Root), purge.Purge{Name: kcptest.Consumer, Scrub: true}, codeOwnerPointsHere)
	require.Contains(t, strings.Join(r.Steps, "\n"), " CACHE CACHE-OUT --scrub --from-shard root --to-shard NEW-SHARD")
}
