package move_test

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/kcp/archive"
	"github.com/etcdshift/etcdshift/internal/kcp/move"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/internal/test/sections"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// report is a report and its receipts.
type report struct {
	*transform.Report
	*move.Receipts
}

func reportOf(r *transform.Report) *report {
	return &report{r, sections.Of[move.Receipts](r)}
}

// tryPurge purges with codes allowed and returns the report and the output's path.
func tryPurge(t *testing.T, in string, o move.Purge, allow ...string) (*report, string, error) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.db")
	r, err := transform.Run(context.Background(), transform.Options{Command: "kcp purge", In: in, Out: out, Allow: allow, Prefixes: o.Prefixes}, &o)
	return reportOf(r), out, err
}

// refusedPurge is tryPurge that must be refused.
func refusedPurge(t *testing.T, in string, o move.Purge, allow ...string) *report {
	t.Helper()
	r, out, err := tryPurge(t, in, o, allow...)
	require.ErrorIs(t, err, transform.ErrRefused, "%+v", r.Problems)
	require.NoFileExists(t, out)
	return r
}

// purged is tryPurge that must succeed.
func purged(t *testing.T, in string, o move.Purge, allow ...string) (*report, string) {
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
	r, out := purged(t, in, move.Purge{Name: kcptest.Consumer}, "owner-points-here")
	require.Equal(t, transform.Changes{Deleted: 36}, r.Changes)
	require.Equal(t, 36, requireGone(t, in, out, func(key []byte) bool { return clusterOf(key) == kcptest.Consumer }))
	after, _ := kcptest.Dump(t, out)
	for _, trapped := range kcptest.Trapped() {
		require.True(t, slices.ContainsFunc(after, func(kv etcdtest.KV) bool { return string(kv.Key) == trapped }), trapped)
	}
	require.Equal(t, []string{"children-stay", "owner-points-here"}, codes(r))

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
	_, out := purged(t, in, move.Purge{Name: kcptest.Consumer}, "owner-points-here", "key-mismatch")
	require.Equal(t, 36, requireGone(t, in, out, func(key []byte) bool { return clusterOf(key) == kcptest.Consumer }))
	_, out = purged(t, in, move.Purge{Name: shorter}, "owner-points-here", "key-mismatch")
	require.Equal(t, 3, requireGone(t, in, out, func(key []byte) bool { return clusterOf(key) == shorter }))
}

// TestWithChildren: the child goes too, and its Workspace in the purged parent is no obstacle.
func TestWithChildren(t *testing.T) {
	in := kcptest.Recorded(t, kcptest.Root)
	r, out := purged(t, in, move.Purge{Name: kcptest.Consumer, WithChildren: true}, "owner-points-here")
	n := requireGone(t, in, out, func(key []byte) bool {
		return slices.Contains([]string{kcptest.Consumer, kcptest.Child}, clusterOf(key))
	})
	require.Equal(t, n, r.Changes.Deleted)
	require.Len(t, r.Clusters, 2)
	require.Equal(t, kcptest.Child, r.Clusters[1].Name)
	require.Equal(t, n, r.Clusters[0].Keys+r.Clusters[1].Keys)
	require.Equal(t, []string{"owner-points-here"}, codes(r))
	require.Len(t, r.Problems, 1, "of the parent alone")
}

// TestTwice: what is gone is not there a second time.
func TestTwice(t *testing.T) {
	_, out := purged(t, kcptest.Recorded(t, kcptest.Root), move.Purge{Name: kcptest.Other}, "owner-points-here")
	r, again, err := tryPurge(t, out, move.Purge{Name: kcptest.Other}, "owner-points-here")
	require.ErrorIs(t, err, kcp.ErrNoCluster)
	require.Equal(t, transform.Failed, r.Outcome)
	require.NoFileExists(t, again)
}

// TestNoCluster: a name that does not live here ends in an error that says what there is.
func TestNoCluster(t *testing.T) {
	root, cache := kcptest.Recorded(t, kcptest.Root), kcptest.Recorded(t, kcptest.Cache)
	for name, c := range map[string]struct {
		in   string
		o    move.Purge
		is   error
		says string
	}{
		"a path":            {root, move.Purge{Name: "root:other"}, kcp.ErrNoCluster, kcptest.Other},
		"nothing like it":   {root, move.Purge{Name: "nowhere"}, kcp.ErrNoCluster, `"nowhere"`},
		"a cache":           {cache, move.Purge{Name: kcptest.Other}, move.ErrCacheAlone, `a cache below "/cache"`},
		"no cache":          {root, move.Purge{Name: kcptest.Other, FromShard: "root"}, move.ErrNoCacheHere, `a shard below "/registry"`},
		"no copies":         {cache, move.Purge{Name: "nowhere", FromShard: "root"}, kcp.ErrNoCluster, "from any shard"},
		"another shard's":   {cache, move.Purge{Name: kcptest.Consumer1, FromShard: "root"}, kcp.ErrNoCluster, `it has copies from "shard-1"`},
		"no orphans":        {root, move.Purge{Name: kcptest.Consumer1, Orphans: true}, kcp.ErrNoCluster, "this shard has no orphans"},
		"not of one, lives": {root, move.Purge{Name: kcptest.Other, Orphans: true}, kcp.ErrNoCluster, "lives on this shard"},
		"another prefix":    {root, move.Purge{Name: kcptest.Other, Prefixes: []string{"/elsewhere"}}, kcp.ErrNoShard, ""},
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
		o := move.Purge{Name: kcptest.Consumer, WithChildren: true, Scrub: scrub}
		first, _ := purged(t, in, o, "owner-points-here")
		second, _ := purged(t, in, o, "owner-points-here")
		require.Equal(t, first.Output.SHA256, second.Output.SHA256)
	}
}

// TestSteps: what is left to do by hand names the cache, and the Workspace that leads nowhere.
func TestSteps(t *testing.T) {
	r, _ := purged(t, kcptest.Recorded(t, kcptest.Root), move.Purge{Name: kcptest.Consumer}, "owner-points-here")
	all := strings.Join(r.Steps, "\n")
	require.Contains(t, all, "etcdshift kcp purge "+kcptest.Consumer+" CACHE CACHE-OUT --from-shard root --to-shard NEW-SHARD")
	require.Contains(t, all, `Workspace "consumer" in "root" still leads to "`+kcptest.Consumer+`"`)
	require.NotEmpty(t, r.Restore)

	r, _ = purged(t, kcptest.Recorded(t, kcptest.Root), move.Purge{Name: kcptest.Consumer, Scrub: true}, "owner-points-here")
	require.Contains(t, strings.Join(r.Steps, "\n"), " CACHE CACHE-OUT --scrub --from-shard root --to-shard NEW-SHARD")
}

// edited is a recorded snapshot in which the first from of the value under a key is to.
func edited(t *testing.T, name, key, from, to string) string {
	t.Helper()
	return kcptest.Edit(t, kcptest.Recorded(t, name), func(client *clientv3.Client) {
		value := kcptest.Get(t, client, key)
		require.Contains(t, string(value), from)
		kcptest.Put(t, client, key, bytes.Replace(value, []byte(from), []byte(to), 1))
	})
}

// TestRefused: each code refuses by itself, is allowed by itself, and then skips nothing.
func TestRefused(t *testing.T) {
	lc, workspace := kcptest.LogicalClusterKey(kcptest.Other), kcptest.WorkspaceKey("other")
	elsewhere := edited(t, kcptest.Root, workspace, `"core.kcp.io/shard":"root"`, `"core.kcp.io/shard":"shard-1"`)
	for name, c := range map[string]struct {
		in   string
		o    move.Purge
		code string
		key  string
		also []string // allowed too
	}{
		"its Workspace says this shard": {in: kcptest.Recorded(t, kcptest.Root), code: "owner-points-here", key: workspace},
		"its Workspace says no shard": {
			in: edited(t, kcptest.Root, workspace, `"core.kcp.io/shard":"root"`, `"core.kcp.io/other":"root"`), code: "owner-points-here", key: workspace,
		},
		"this shard has another name": {in: elsewhere, o: move.Purge{Name: kcptest.Other, AsShard: "shard-1"}, code: "owner-points-here", key: workspace},
		"being deleted": {
			in:   edited(t, kcptest.Root, lc, `"metadata":{`, `"metadata":{"deletionTimestamp":"2026-11-20T20:00:00Z",`),
			code: "terminating", key: lc, also: []string{"owner-points-here"},
		},
		"being moved": {
			in:   edited(t, kcptest.Root, lc, `"annotations":{`, `"annotations":{"internal.kcp.io/migrating":"root:m",`),
			code: "migrating", key: lc, also: []string{"owner-points-here"},
		},
		"root": {in: kcptest.Recorded(t, kcptest.Root), o: move.Purge{Name: "root"}, code: "system-cluster", key: kcptest.LogicalClusterKey("root")},
		"root's copies": {
			in: kcptest.Recorded(t, kcptest.Cache), o: move.Purge{Name: "root", FromShard: "root"}, code: "system-cluster", also: []string{"exports-in-cache"},
		},
		"its Workspace says what the file calls itself": {
			in: kcptest.Recorded(t, kcptest.Root), o: move.Purge{Name: kcptest.Other, AsShard: "roott"}, code: "owner-points-here", key: workspace,
		},
		"it says that it is its own owner": {
			in: edited(t, kcptest.Root, lc, `"cluster":"root","name":"other"`, `"cluster":"`+kcptest.Other+`","name":"other"`), code: "owner-points-here", key: workspace,
		},
		"it names a Workspace that is not there": {
			in: edited(t, kcptest.Root, lc, `"cluster":"root","name":"other"`, `"cluster":"root","name":"x"`), code: "owner-points-here", key: workspace,
		},
		"a value of another cluster": {
			in:   edited(t, kcptest.Root, lc, `"kcp.io/cluster":"`+kcptest.Other, `"kcp.io/cluster":"`+kcptest.Consumer),
			code: "key-mismatch", key: lc, also: []string{"owner-points-here"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.o.Name == "" {
				c.o.Name = kcptest.Other
			}
			r := refusedPurge(t, c.in, c.o, c.also...)
			refused := 0
			for _, p := range r.Problems {
				if p.Outcome == "refused" {
					refused++
					require.Equal(t, c.code, p.Code.Name)
					require.Equal(t, c.key, p.Key)
				}
			}
			require.Equal(t, 1, refused)
			require.Contains(t, finding.Allowable(move.PurgeSpec.Codes), c.code)

			r, _ = purged(t, c.in, c.o, append(c.also, c.code)...)
			left, _ := r.Errors()
			require.Zero(t, left, "nothing is skipped")
		})
	}
}

// TestOwnerElsewhere: nothing refuses where the Workspace says another shard; where it is not in
// the file, that is said.
func TestOwnerElsewhere(t *testing.T) {
	in := edited(t, kcptest.Root, kcptest.WorkspaceKey("other"), `"core.kcp.io/shard":"root"`, `"core.kcp.io/shard":"shard-1"`)
	r, _ := purged(t, in, move.Purge{Name: kcptest.Other})
	require.Empty(t, r.Problems)

	r, _ = purged(t, kcptest.Recorded(t, kcptest.Shard1), move.Purge{Name: kcptest.Consumer1})
	require.Equal(t, []string{"owner-unseen"}, codes(r))
	require.Contains(t, r.Problems[0].Reason, `Workspace "consumer1" in "root"`)
}

// TestUnknownKey: a key of no logical cluster stays and is named; that of the API servers'
// compactions is none.
func TestUnknownKey(t *testing.T) {
	in := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Shard1), func(client *clientv3.Client) {
		kcptest.Put(t, client, "/registry/health", []byte("{}"))
		kcptest.Put(t, client, "/registry/example.dev/widgets/customresources", []byte("{}"))
		kcptest.Put(t, client, "/elsewhere/"+kcptest.Consumer1, []byte("{}"))
	})
	r, out := purged(t, in, move.Purge{Name: kcptest.Consumer1})
	require.Equal(t, []string{"owner-unseen", "unknown-key"}, codes(r))
	require.Len(t, r.Problems, 3)
	requireGone(t, in, out, func(key []byte) bool { return clusterOf(key) == kcptest.Consumer1 })
}

// TestNeedsNoKeys: what is encrypted is deleted as all else is. A LogicalCluster that cannot be
// read tells no owner: then any Workspace that names it counts.
func TestNeedsNoKeys(t *testing.T) {
	encrypted := []byte("k8s:enc:aescbc:v1:key1:0123456789abcdef0123456789abcdef")
	secret := "/registry/core/secrets/" + kcptest.Consumer + "/default/sec"
	encrypt := func(more ...string) string {
		return kcptest.Edit(t, kcptest.Recorded(t, kcptest.Root), func(client *clientv3.Client) {
			for _, key := range append(more, secret, kcptest.LogicalClusterKey(kcptest.Consumer)) {
				kcptest.Get(t, client, key)
				kcptest.Put(t, client, key, encrypted)
			}
		})
	}
	in := encrypt()
	for _, allow := range []string{"owner-points-here", "encrypted"} {
		refusedPurge(t, in, move.Purge{Name: kcptest.Consumer}, allow)
	}
	r, out := purged(t, in, move.Purge{Name: kcptest.Consumer}, "owner-points-here", "encrypted")
	require.Equal(t, 36, requireGone(t, in, out, func(key []byte) bool { return clusterOf(key) == kcptest.Consumer }))
	require.Equal(t, []string{"children-stay", "encrypted", "owner-points-here"}, codes(r))

	in = kcptest.Edit(t, kcptest.Recorded(t, kcptest.Root), func(client *clientv3.Client) {
		kcptest.Put(t, client, kcptest.WorkspaceKey("consumer"), encrypted)
	})
	r, _ = purged(t, in, move.Purge{Name: kcptest.Consumer})
	require.Equal(t, []string{"children-stay", "owner-unseen"}, codes(r))
	require.Equal(t, kcptest.WorkspaceKey("consumer"), r.Problems[0].Key)

	in = encrypt(kcptest.WorkspaceKey("consumer"), kcptest.LogicalClusterKey(kcptest.Child))
	r, out = purged(t, in, move.Purge{Name: kcptest.Consumer, WithChildren: true}, "encrypted")
	require.Equal(t, 36, requireGone(t, in, out, func(key []byte) bool { return clusterOf(key) == kcptest.Consumer }))
	require.Equal(t, []string{"children-stay", "encrypted"}, codes(r), "nothing but a Workspace says that it is a child: it stays")
}

// TestUnreadable: what cannot be read may be what would refuse: it refuses itself, with its own
// code.
func TestUnreadable(t *testing.T) {
	const childWorkspace = "/registry/tenancy.kcp.io/workspaces/" + kcptest.Tenancy + "/" + kcptest.Consumer + "/child"
	values := map[string][]byte{"encrypted": []byte("k8s:enc:aescbc:v1:key1:0123456789abcdef0123456789abcdef"), "undecodable": []byte("x")}
	for name, c := range map[string]struct {
		spoiled []string
		o       move.Purge
		at      string // the key that refuses, "" for none
		warns   string
	}{
		"the LogicalCluster": {
			spoiled: []string{kcptest.LogicalClusterKey(kcptest.Other), kcptest.WorkspaceKey("other")},
			o:       move.Purge{Name: kcptest.Other}, at: kcptest.LogicalClusterKey(kcptest.Other),
		},
		"that of a child": {
			spoiled: []string{kcptest.LogicalClusterKey(kcptest.Child)},
			o:       move.Purge{Name: kcptest.Consumer, WithChildren: true}, at: kcptest.LogicalClusterKey(kcptest.Child), warns: "children-stay",
		},
		"that of a child that stays": {
			spoiled: []string{kcptest.LogicalClusterKey(kcptest.Child)}, o: move.Purge{Name: kcptest.Consumer}, warns: "children-stay",
		},
		"a child and its Workspace": {
			spoiled: []string{kcptest.LogicalClusterKey(kcptest.Child), childWorkspace},
			o:       move.Purge{Name: kcptest.Consumer, WithChildren: true}, at: childWorkspace,
		},
		"a Workspace of a child that tells": {spoiled: []string{childWorkspace}, o: move.Purge{Name: kcptest.Consumer, WithChildren: true}},
		"a Workspace that goes": {
			spoiled: []string{kcptest.LogicalClusterKey(kcptest.Child), childWorkspace}, o: move.Purge{Name: kcptest.Consumer}, warns: "child-elsewhere",
		},
	} {
		for code, value := range values {
			t.Run(name+"/"+code, func(t *testing.T) {
				in := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Root), func(client *clientv3.Client) {
					for _, key := range c.spoiled {
						kcptest.Get(t, client, key)
						kcptest.Put(t, client, key, value)
					}
				})
				r, _, err := tryPurge(t, in, c.o, "owner-points-here")
				if c.warns != "" {
					require.Contains(t, codes(r), c.warns)
				}
				if c.at == "" {
					require.NoError(t, err)
					return
				}
				require.ErrorIs(t, err, transform.ErrRefused)
				require.True(t, slices.ContainsFunc(r.Problems, func(p finding.Finding) bool {
					return p.Key == c.at && p.Code.Name == code && p.Outcome == "refused"
				}), "%+v", r.Problems)
				r, _ = purged(t, in, c.o, "owner-points-here", code)
				left, _ := r.Errors()
				require.Zero(t, left)
			})
		}
	}
}

// TestArchiveRefused: an archive is no shard, whatever lies in it.
func TestArchiveRefused(t *testing.T) {
	ctx := context.Background()
	src, err := snapshot.Open(ctx, kcptest.Recorded(t, kcptest.Root), snapshot.Config{})
	require.NoError(t, err)
	defer src.Close()
	path := filepath.Join(t.TempDir(), "archive.db")
	_, err = snapshot.Build(ctx, path, snapshot.Content{
		Records: src.Live(ctx, nil), Revision: 1 << 20, Notes: map[string][]byte{"manifest": []byte("{}")},
	}, nil)
	require.NoError(t, err)
	_, out, err := tryPurge(t, path, move.Purge{Name: kcptest.Other})
	require.ErrorIs(t, err, archive.ErrIsArchive)
	require.NotErrorIs(t, err, archive.ErrDamaged)
	require.NotErrorIs(t, err, kcp.ErrNoCluster)
	require.NoFileExists(t, out)
}
