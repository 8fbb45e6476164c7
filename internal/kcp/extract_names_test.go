package kcp_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/kcp/archive"
	"github.com/etcdshift/etcdshift/internal/kcp/clusters"
	"github.com/etcdshift/etcdshift/internal/kcp/extract"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/transform"
)

// workspaceKey is the key of a Workspace.
func workspaceKey(parent, name string) string {
	return "/registry/tenancy.kcp.io/workspaces/" + kcptest.Tenancy + "/" + parent + "/" + name
}

// TestExtractHostileNames: one odd object does not make the backup of a tenant impossible: the
// manifest leaves out what it cannot say, the record goes as it is, and nothing of it reaches a
// terminal.
func TestExtractHostileNames(t *testing.T) {
	lc, binding := kcptest.LogicalClusterKey(kcptest.Consumer), bindings+"evil"
	path := `"kcp.io/path":"root:consumer"`
	bind := func(bound string) string {
		return kcptest.Edit(t, kcptest.Recorded(t, kcptest.Root), func(client *clientv3.Client) {
			kcptest.Put(t, client, binding, []byte(`{"apiVersion":"apis.kcp.io/v1alpha2","kind":"APIBinding","metadata":{"name":"evil"},"spec":{"reference":`+
				`{"export":{"path":"root","name":"e"}}},"status":{"boundResources":[`+bound+`]}}`))
		})
	}
	for name, c := range map[string]struct {
		in, key, says string
		keys          int
	}{
		"a path":        {shardWith(t, lc, swapped(path, `"kcp.io/path":"root:\u001b[2J"`)), lc, "leaves out its path", 36},
		"a long path":   {shardWith(t, lc, swapped(path, `"kcp.io/path":"`+strings.Repeat("a", 5000)+`"`)), lc, "leaves out its path", 36},
		"an owner":      {shardWith(t, lc, swapped(`"name":"consumer"`, `"name":"\u001b]0;x\u0007"`)), lc, "leaves out its owner's name", 36},
		"no UID":        {bind(`{"group":"g","resource":"r","schema":{"identityHash":"zz"},"storageVersions":["v1"]}`), binding, "an identity, the UID of a schema", 37},
		"a path as UID": {bind(`{"group":"g","resource":"r","schema":{"UID":"../../a"},"storageVersions":["v1"]}`), binding, "the UID of a schema", 37},
		"a type":        {bind(`{"group":"\u001b","resource":"r","schema":{"UID":"u"},"storageVersions":["\u001b"]}`), binding, "a type, a version", 37},
	} {
		t.Run(name, func(t *testing.T) {
			planned, _, err := tryExtract(t, c.in, extraction{Name: kcptest.Consumer, DryRun: true})
			require.NoError(t, err)
			r, out := extracted(t, c.in, extraction{Name: kcptest.Consumer})
			require.Equal(t, r.Manifest, planned.Manifest)
			require.Equal(t, c.keys, r.Manifest.Clusters[0].Keys)
			odd := r.Problems[len(r.Problems)-1]
			for _, p := range r.Problems {
				if p.Code.Name == codeOddName {
					odd = p
				}
			}
			require.Equal(t, finding.Warning, odd.Level)
			require.Equal(t, c.key, odd.Key)
			require.Contains(t, odd.Reason, c.says)
			rec, err := openFile(t, out).Get(context.Background(), []byte(c.key))
			require.NoError(t, err)
			was, err := openFile(t, c.in).Get(context.Background(), []byte(c.key))
			require.NoError(t, err)
			require.Equal(t, was.Value, rec.Value)
		})
	}
	in := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Root), func(client *clientv3.Client) {
		for _, group := range []string{"g\xff.io", "g\x1b.io", "g\u202e.io"} {
			kcptest.Put(t, client, "/registry/"+group+"/things/customresources/"+kcptest.Consumer+"/a", []byte(`{"metadata":{"name":"a"}}`))
		}
	})
	r, _ := extracted(t, in, extraction{Name: kcptest.Consumer})
	require.Equal(t, 36, r.Manifest.Clusters[0].Keys, "none of them is a key of a shard")
	require.Contains(t, codes(r.report), codeUnknownKey)
}

// TestExtractUnlistable: what a manifest lists has to have a name; a dry run says so too.
func TestExtractUnlistable(t *testing.T) {
	evil, long := "3evil\x1b[2J", strings.Repeat("a", 5000)
	in := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Root), func(client *clientv3.Client) {
		kcptest.Put(t, client, kcptest.LogicalClusterKey(evil), kcptest.Get(t, client, kcptest.LogicalClusterKey(kcptest.Child)))
		kcptest.Put(t, client, "/registry/example.dev/"+long+"/customresources/"+kcptest.Other+"/a", []byte(`{"metadata":{"name":"a"}}`))
	})
	for _, dry := range []bool{true, false} {
		for _, o := range []extraction{{Name: kcptest.Consumer, WithChildren: true, DryRun: dry}, {Name: kcptest.Other, DryRun: dry}} {
			o.Allow = finding.Allowable(extract.Spec.Codes)
			r, out, err := tryExtract(t, in, o)
			require.ErrorIs(t, err, transform.ErrRefused)
			require.NotErrorIs(t, err, archive.ErrDamaged)
			require.NoFileExists(t, out)
			require.Contains(t, codes(r.report), codeOddName)
		}
	}
}

// TestExtractSplit: a prefix below the shard's makes another storage of a part of it.
func TestExtractSplit(t *testing.T) {
	in := kcptest.Recorded(t, kcptest.Root)
	_, out, err := tryExtract(t, in, extraction{Name: kcptest.Consumer, Prefixes: []string{"/registry", "/registry/core"}})
	require.ErrorIs(t, err, clusters.ErrSplit)
	require.ErrorContains(t, err, `"/registry/core" is below "/registry"`)
	require.NoFileExists(t, out)
}

// TestExtractOtherShardName: a name that the shard does not call itself by is told.
func TestExtractOtherShardName(t *testing.T) {
	in := kcptest.Single(t)
	for as, warned := range map[string]bool{"rot": true, "root": false, "": false} {
		r, _ := extracted(t, in, extraction{Name: kcptest.Provider, AsShard: as})
		require.Equal(t, warned, len(codes(r.report)) > 0 && codes(r.report)[0] == codeShardName, codes(r.report))
		if warned {
			require.Equal(t, "rot", r.Manifest.Origin.Shard)
			require.Equal(t, kcptest.LogicalClusterKey("system:shard"), r.Problems[0].Key)
		}
	}
}
