package kcp_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/internal/kcp/purge"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// without is a recorded snapshot in which keys are deleted.
func without(t *testing.T, name string, gone ...string) string {
	t.Helper()
	return kcptest.Edit(t, kcptest.Recorded(t, name), func(client *clientv3.Client) {
		for _, key := range gone {
			kcptest.Delete(t, client, key)
		}
	})
}

// reasons are those of the problems of a code.
func reasons(r *report, code string) string {
	var all []string
	for _, p := range r.Problems {
		if p.Code.Name == code {
			all = append(all, p.Reason)
		}
	}
	return strings.Join(all, "\n")
}

// TestOrphansThatLive: where a Workspace says that they live here, it is the LogicalCluster that is
// lost, and they are no orphans.
func TestOrphansThatLive(t *testing.T) {
	in := without(t, kcptest.Root, kcptest.LogicalClusterKey(kcptest.Consumer))
	for _, name := range []string{"", kcptest.Consumer} {
		r, _, err := tryPurge(t, in, purge.Purge{Orphans: true, Name: name})
		require.ErrorIs(t, err, transform.ErrRefused)
		require.Equal(t, []string{codeChildrenStay, codeOwnerPointsHere}, codes(r))
		require.Equal(t, kcptest.WorkspaceKey("consumer"), r.Problems[0].Key)
		require.Contains(t, r.Problems[0].Reason, `Workspace "consumer" in "root"`)
		_, out := purged(t, in, purge.Purge{Orphans: true, Name: name}, codeOwnerPointsHere)
		require.Equal(t, 35, requireGone(t, in, out, func(key []byte) bool { return clusterOf(key) == kcptest.Consumer }))
	}

	encrypted := kcptest.Edit(t, in, func(client *clientv3.Client) {
		kcptest.Put(t, client, kcptest.WorkspaceKey("consumer"), []byte("k8s:enc:aescbc:v1:key1:0123456789abcdef0123456789abcdef"))
	})
	r, _ := purged(t, encrypted, purge.Purge{Orphans: true})
	require.Contains(t, reasons(r, codeOwnerUnseen), "Workspaces of this file cannot be read (1)")
}

// TestChildWithoutWorkspace: a child whose Workspace is not among what goes, or is taken, loses
// none, and none is told to go.
func TestChildWithoutWorkspace(t *testing.T) {
	lost := "/registry/tenancy.kcp.io/workspaces/" + kcptest.Tenancy + "/" + kcptest.Consumer + "/child"
	in := without(t, kcptest.Root, kcptest.LogicalClusterKey(kcptest.Consumer), lost)
	r, _ := purged(t, in, purge.Purge{Orphans: true}, codeOwnerPointsHere)
	require.Equal(t, []string{codeOwnerPointsHere}, codes(r))

	const says = `"` + kcptest.Child + `" stays, and says that it belongs to "child" in "` + kcptest.Consumer + `", which is not there`
	r, _ = purged(t, without(t, kcptest.Root, lost), purge.Purge{Name: kcptest.Consumer}, codeOwnerPointsHere)
	require.Equal(t, says, reasons(r, codeChildrenStay))
	taken, _ := extracted(t, without(t, kcptest.Root, lost), extraction{Name: kcptest.Consumer})
	require.Equal(t, says+"; --with-children takes it along", reasons(reportOf(taken.Report), codeChildrenStay))
}

// TestNoHome: where nothing tells what lives, or that any tenant's logical cluster does, all are
// not taken for orphans.
func TestNoHome(t *testing.T) {
	all := []string{}
	for _, name := range []string{kcptest.Provider, kcptest.Consumer, kcptest.Other, kcptest.Child} {
		all = append(all, kcptest.LogicalClusterKey(name))
	}
	in := without(t, kcptest.Root, all...)
	r, _, err := tryPurge(t, in, purge.Purge{Orphans: true}, codeOwnerPointsHere)
	require.ErrorIs(t, err, transform.ErrRefused)
	require.Contains(t, reasons(r, codeNoHome), "logical clusters without a LogicalCluster (4, such as ")
	purged(t, in, purge.Purge{Orphans: true}, codeOwnerPointsHere, codeNoHome)
	r, _ = purged(t, in, purge.Purge{Orphans: true, Name: kcptest.Other}, codeOwnerPointsHere)
	require.Equal(t, []string{codeNoHome, codeOwnerPointsHere}, codes(r))

	partial := without(t, kcptest.Shard1, kcptest.LogicalClusterKey(kcptest.Consumer1), kcptest.LogicalClusterKey("system:shard"))
	_, out, err := tryPurge(t, partial, purge.Purge{Orphans: true}, codeNoHome)
	require.ErrorIs(t, err, purge.ErrNoHome)
	require.NoFileExists(t, out)
	r, _ = purged(t, partial, purge.Purge{Orphans: true, Name: kcptest.Consumer1})
	require.Equal(t, []string{codeNoHome}, codes(r))
	require.Contains(t, r.Problems[0].Reason, "no whole shard")
}

// TestLoop: two logical clusters that name each other as owners go together, and the Workspace
// outside that leads to one of them refuses.
func TestLoop(t *testing.T) {
	in := edited(t, kcptest.Root, kcptest.LogicalClusterKey(kcptest.Consumer), `"cluster":"root","name":"consumer"`, `"cluster":"`+kcptest.Child+`","name":"consumer"`)
	for _, children := range []bool{false, true} {
		r, _, err := tryPurge(t, in, purge.Purge{Name: kcptest.Consumer, WithChildren: children})
		require.ErrorIs(t, err, transform.ErrRefused)
		require.Contains(t, reasons(r, codeOwnerPointsHere), `Workspace "consumer" in "root"`)
		require.Contains(t, reasons(r, codeOwnerUnseen), `which is not there`)
		require.Contains(t, strings.Join(r.Steps, "\n"), `Workspace "consumer" in "root" still leads to`)
	}
}

// TestOwnerNotThere: the parent is in the file, and the Workspace is not.
func TestOwnerNotThere(t *testing.T) {
	r, _ := purged(t, without(t, kcptest.Root, kcptest.WorkspaceKey("other")), purge.Purge{Name: kcptest.Other})
	require.Equal(t, []string{codeOwnerUnseen}, codes(r))
	require.Contains(t, r.Problems[0].Reason, `Workspace "other" in "root", which is not there`)

	in := edited(t, kcptest.Root, kcptest.LogicalClusterKey(kcptest.Other), `"resource":"workspaces"`, `"resource":"things"`)
	r, _, err := tryPurge(t, in, purge.Purge{Name: kcptest.Other})
	require.ErrorIs(t, err, transform.ErrRefused, "a Workspace leads there all the same")
	require.Contains(t, reasons(r, codeOwnerUnseen), "which is no Workspace")
}

// TestChildElsewhere: the Workspace that leads to a logical cluster on another shard does not go
// without a word.
func TestChildElsewhere(t *testing.T) {
	in := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Root), func(client *clientv3.Client) {
		kvs, err := client.Get(context.Background(), "/registry/", clientv3.WithPrefix())
		require.NoError(t, err)
		for _, kv := range kvs.Kvs {
			if clusterOf(kv.Key) == kcptest.Child {
				kcptest.Delete(t, client, string(kv.Key))
			}
		}
	})
	for _, children := range []bool{false, true} {
		r, _ := purged(t, in, purge.Purge{Name: kcptest.Consumer, WithChildren: children}, codeOwnerPointsHere)
		require.Equal(t, []string{codeChildElsewhere, codeOwnerPointsHere}, codes(r))
		require.Contains(t, reasons(r, codeChildElsewhere), `"`+kcptest.Child+`", behind Workspace "child"`)
		taken, _ := extracted(t, in, extraction{Name: kcptest.Consumer, WithChildren: children})
		require.Equal(t, []string{codeChildElsewhere}, codes(reportOf(taken.Report)))
		require.Contains(t, reasons(reportOf(taken.Report), codeChildElsewhere), `"`+kcptest.Child+`", behind Workspace "child"`)
	}

	in = edited(t, kcptest.Root, kcptest.LogicalClusterKey(kcptest.Child), `"cluster":"`+kcptest.Consumer+`"`, `"cluster":"root"`)
	r, _ := purged(t, in, purge.Purge{Name: kcptest.Consumer}, codeOwnerPointsHere)
	require.Contains(t, reasons(r, codeChildElsewhere), "says that it does not belong to Workspace")
	taken, _ := extracted(t, in, extraction{Name: kcptest.Consumer})
	require.Contains(t, reasons(reportOf(taken.Report), codeChildElsewhere), "says that it does not belong to Workspace")
}

// TestExportsBound: who binds what goes is named, but for those that go too.
func TestExportsBound(t *testing.T) {
	in := kcptest.Recorded(t, kcptest.Root)
	r, _ := purged(t, in, purge.Purge{Name: kcptest.Provider}, codeOwnerPointsHere)
	require.Equal(t, []string{codeExportsBound, codeOwnerPointsHere}, codes(r))
	require.Contains(t, reasons(r, codeExportsBound), "logical clusters that stay here (2) bind what \""+kcptest.Provider+"\" exports: "+kcptest.Other+", "+kcptest.Consumer)
	r, _ = purged(t, in, purge.Purge{Name: kcptest.Other}, codeOwnerPointsHere)
	require.NotContains(t, codes(r), codeExportsBound)
}

// TestShardName: a shard that is called otherwise than it calls itself is led to by either name.
func TestShardName(t *testing.T) {
	in := kcptest.Recorded(t, kcptest.Root)
	r, _, err := tryPurge(t, in, purge.Purge{Name: kcptest.Other, AsShard: "Root"})
	require.ErrorIs(t, err, transform.ErrRefused)
	require.Equal(t, []string{codeOwnerPointsHere, codeShardName}, codes(r))
	r, _ = purged(t, in, purge.Purge{Name: kcptest.Other, AsShard: "root"}, codeOwnerPointsHere)
	require.Equal(t, []string{codeOwnerPointsHere}, codes(r))
}

// TestNoSuchKey: a part of kcp that has no LogicalCluster is not named by the key of one.
func TestNoSuchKey(t *testing.T) {
	r, _, err := tryPurge(t, kcptest.Recorded(t, kcptest.Root), purge.Purge{Name: "system:bound-crds"})
	require.ErrorIs(t, err, transform.ErrRefused)
	require.Equal(t, codeSystemCluster, r.Problems[0].Code.Name)
	require.Empty(t, r.Problems[0].Key)
}

// TestManyChildren: thousands of them go, side by side or each below the one before, and their
// copies with them.
func TestManyChildren(t *testing.T) {
	const n = 2000
	ctx := context.Background()
	for _, shape := range []string{"star", "chain"} {
		src, err := snapshot.Open(ctx, kcptest.Single(t), snapshot.Config{})
		require.NoError(t, err)
		defer src.Close()
		in := filepath.Join(t.TempDir(), "many.db")
		_, err = snapshot.Write(ctx, in, src, func(yield func(snapshot.Change, error) bool) {
			parent := kcptest.Consumer
			for i := range n {
				name := kcptest.ManyName(i)
				for _, kv := range [][2]string{
					{
						kcptest.LogicalClusterKey(name),
						`{"kind":"LogicalCluster","metadata":{"name":"cluster"},"spec":{"owner":{"cluster":"` + parent + `","name":"` + name + `"}}}`,
					},
					{
						"/registry/tenancy.kcp.io/workspaces/" + kcptest.Tenancy + "/" + parent + "/" + name,
						`{"kind":"Workspace","metadata":{"name":"` + name + `"},"spec":{"cluster":"` + name + `"}}`,
					},
					{"/cache/rbac.authorization.k8s.io/clusterroles/customresources/root/" + name + "/workspace", `{"metadata":{"name":"workspace"}}`},
				} {
					if !yield(snapshot.Change{Key: []byte(kv[0]), Value: []byte(kv[1])}, nil) {
						return
					}
				}
				if shape == "chain" {
					parent = name
				}
			}
		}, snapshot.WriteConfig{})
		require.NoError(t, err)
		r, _ := purged(t, in, purge.Purge{Name: kcptest.Consumer, WithChildren: true}, codeOwnerPointsHere)
		require.Len(t, r.Clusters, 2+n)
		require.Positive(t, r.Clusters[0].Copies)
		require.Equal(t, 1, r.Clusters[1+n].Copies)
		require.NotContains(t, codes(r), codeChildrenStay)
		require.NotContains(t, codes(r), codeChildElsewhere)
	}
}
