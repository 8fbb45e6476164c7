package kcp_test

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/kcp/archive"
	"github.com/etcdshift/etcdshift/internal/kcp/clusters"
	"github.com/etcdshift/etcdshift/internal/kcp/purge"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

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
		o    purge.Purge
		code string
		key  string
		also []string // allowed too
	}{
		"its Workspace says this shard": {in: kcptest.Recorded(t, kcptest.Root), code: codeOwnerPointsHere, key: workspace},
		"its Workspace says no shard": {
			in: edited(t, kcptest.Root, workspace, `"core.kcp.io/shard":"root"`, `"core.kcp.io/other":"root"`), code: codeOwnerPointsHere, key: workspace,
		},
		"this shard has another name": {in: elsewhere, o: purge.Purge{Name: kcptest.Other, AsShard: "shard-1"}, code: codeOwnerPointsHere, key: workspace},
		"being deleted": {
			in:   edited(t, kcptest.Root, lc, `"metadata":{`, `"metadata":{"deletionTimestamp":"2026-11-20T20:00:00Z",`),
			code: codeTerminating, key: lc, also: []string{codeOwnerPointsHere},
		},
		"being moved": {
			in:   edited(t, kcptest.Root, lc, `"annotations":{`, `"annotations":{"internal.kcp.io/migrating":"root:m",`),
			code: codeMigrating, key: lc, also: []string{codeOwnerPointsHere},
		},
		"root": {in: kcptest.Recorded(t, kcptest.Root), o: purge.Purge{Name: "root"}, code: codeSystemCluster, key: kcptest.LogicalClusterKey("root")},
		"root's copies": {
			in: kcptest.Recorded(t, kcptest.Cache), o: purge.Purge{Name: "root", FromShard: "root"}, code: codeSystemCluster, also: []string{codeExportsInCache},
		},
		"its Workspace says what the file calls itself": {
			in: kcptest.Recorded(t, kcptest.Root), o: purge.Purge{Name: kcptest.Other, AsShard: "roott"}, code: codeOwnerPointsHere, key: workspace,
		},
		"it says that it is its own owner": {
			in: edited(t, kcptest.Root, lc, `"cluster":"root","name":"other"`, `"cluster":"`+kcptest.Other+`","name":"other"`), code: codeOwnerPointsHere, key: workspace,
		},
		"it names a Workspace that is not there": {
			in: edited(t, kcptest.Root, lc, `"cluster":"root","name":"other"`, `"cluster":"root","name":"x"`), code: codeOwnerPointsHere, key: workspace,
		},
		"a value of another cluster": {
			in:   edited(t, kcptest.Root, lc, `"kcp.io/cluster":"`+kcptest.Other, `"kcp.io/cluster":"`+kcptest.Consumer),
			code: codeKeyMismatch, key: lc, also: []string{codeOwnerPointsHere},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.o.Name == "" {
				c.o.Name = kcptest.Other
			}
			r, out, err := tryPurge(t, c.in, c.o, c.also...)
			require.ErrorIs(t, err, transform.ErrRefused)
			require.NoFileExists(t, out)
			refused := 0
			for _, p := range r.Problems {
				if p.Outcome == "refused" {
					refused++
					require.Equal(t, c.code, p.Code.Name)
					require.Equal(t, c.key, p.Key)
				}
			}
			require.Equal(t, 1, refused)
			require.Contains(t, finding.Allowable(purge.Spec.Codes), c.code)

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
	r, _ := purged(t, in, purge.Purge{Name: kcptest.Other})
	require.Empty(t, r.Problems)

	r, _ = purged(t, kcptest.Recorded(t, kcptest.Shard1), purge.Purge{Name: kcptest.Consumer1})
	require.Equal(t, []string{codeOwnerUnseen}, codes(r))
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
	r, out := purged(t, in, purge.Purge{Name: kcptest.Consumer1})
	require.Equal(t, []string{codeOwnerUnseen, codeUnknownKey}, codes(r))
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
	for _, allow := range []string{codeOwnerPointsHere, codeEncrypted} {
		_, _, err := tryPurge(t, in, purge.Purge{Name: kcptest.Consumer}, allow)
		require.ErrorIs(t, err, transform.ErrRefused)
	}
	r, out := purged(t, in, purge.Purge{Name: kcptest.Consumer}, codeOwnerPointsHere, codeEncrypted)
	require.Equal(t, 36, requireGone(t, in, out, func(key []byte) bool { return clusterOf(key) == kcptest.Consumer }))
	require.Equal(t, []string{codeChildrenStay, codeEncrypted, codeOwnerPointsHere}, codes(r))

	in = kcptest.Edit(t, kcptest.Recorded(t, kcptest.Root), func(client *clientv3.Client) {
		kcptest.Put(t, client, kcptest.WorkspaceKey("consumer"), encrypted)
	})
	r, _ = purged(t, in, purge.Purge{Name: kcptest.Consumer})
	require.Equal(t, []string{codeChildrenStay, codeOwnerUnseen}, codes(r))
	require.Equal(t, kcptest.WorkspaceKey("consumer"), r.Problems[0].Key)

	in = encrypt(kcptest.WorkspaceKey("consumer"), kcptest.LogicalClusterKey(kcptest.Child))
	r, out = purged(t, in, purge.Purge{Name: kcptest.Consumer, WithChildren: true}, codeEncrypted)
	require.Equal(t, 36, requireGone(t, in, out, func(key []byte) bool { return clusterOf(key) == kcptest.Consumer }))
	require.Equal(t, []string{codeChildrenStay, codeEncrypted}, codes(r), "nothing but a Workspace says that it is a child: it stays")
}

// TestUnreadable: what cannot be read may be what would refuse: it refuses itself, with its own
// code.
func TestUnreadable(t *testing.T) {
	const childWorkspace = "/registry/tenancy.kcp.io/workspaces/" + kcptest.Tenancy + "/" + kcptest.Consumer + "/child"
	values := map[string][]byte{codeEncrypted: []byte("k8s:enc:aescbc:v1:key1:0123456789abcdef0123456789abcdef"), codeUndecodable: []byte("x")}
	for name, c := range map[string]struct {
		spoiled []string
		o       purge.Purge
		at      string // the key that refuses, "" for none
		warns   string
	}{
		"the LogicalCluster": {
			spoiled: []string{kcptest.LogicalClusterKey(kcptest.Other), kcptest.WorkspaceKey("other")},
			o:       purge.Purge{Name: kcptest.Other}, at: kcptest.LogicalClusterKey(kcptest.Other),
		},
		"that of a child": {
			spoiled: []string{kcptest.LogicalClusterKey(kcptest.Child)},
			o:       purge.Purge{Name: kcptest.Consumer, WithChildren: true}, at: kcptest.LogicalClusterKey(kcptest.Child), warns: codeChildrenStay,
		},
		"that of a child that stays": {
			spoiled: []string{kcptest.LogicalClusterKey(kcptest.Child)}, o: purge.Purge{Name: kcptest.Consumer}, warns: codeChildrenStay,
		},
		"a child and its Workspace": {
			spoiled: []string{kcptest.LogicalClusterKey(kcptest.Child), childWorkspace},
			o:       purge.Purge{Name: kcptest.Consumer, WithChildren: true}, at: childWorkspace,
		},
		"a Workspace of a child that tells": {spoiled: []string{childWorkspace}, o: purge.Purge{Name: kcptest.Consumer, WithChildren: true}},
		"a Workspace that goes": {
			spoiled: []string{kcptest.LogicalClusterKey(kcptest.Child), childWorkspace}, o: purge.Purge{Name: kcptest.Consumer}, warns: codeChildElsewhere,
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
				r, _, err := tryPurge(t, in, c.o, codeOwnerPointsHere)
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
				r, _ = purged(t, in, c.o, codeOwnerPointsHere, code)
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
	_, out, err := tryPurge(t, path, purge.Purge{Name: kcptest.Other})
	require.ErrorIs(t, err, archive.ErrIsArchive)
	require.NotErrorIs(t, err, archive.ErrDamaged)
	require.NotErrorIs(t, err, clusters.ErrNoCluster)
	require.NoFileExists(t, out)
}
