package move_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/kcp/archive"
	"github.com/etcdshift/etcdshift/internal/kcp/move"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

const bindings = "/registry/apis.kcp.io/apibindings/customresources/" + kcptest.Consumer + "/"

// shardWith is root with one value of it changed.
func shardWith(t testing.TB, key string, change func(value []byte) []byte) string {
	t.Helper()
	return kcptest.Edit(t, kcptest.Recorded(t, kcptest.Root), func(client *clientv3.Client) {
		kcptest.Put(t, client, key, change(kcptest.Get(t, client, key)))
	})
}

func swapped(from, to string) func([]byte) []byte {
	return func(value []byte) []byte { return bytes.Replace(value, []byte(from), []byte(to), 1) }
}

func encryptedValue([]byte) []byte {
	return []byte("k8s:enc:aescbc:v1:key1:0123456789abcdef0123456789abcdef")
}

// TestExtractRefuses: what speaks against it, by code; allowed, all is taken and nothing left
// alone.
func TestExtractRefuses(t *testing.T) {
	lc := kcptest.LogicalClusterKey(kcptest.Consumer)
	for code, in := range map[string]string{
		"terminating":  shardWith(t, lc, swapped(`"metadata":{`, `"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z",`)),
		"migrating":    shardWith(t, lc, swapped(`"annotations":{`, `"annotations":{"internal.kcp.io/migrating":"root:move",`)),
		"key-mismatch": shardWith(t, lc, swapped(`"kcp.io/cluster":"`+kcptest.Consumer, `"kcp.io/cluster":"`+kcptest.Other)),
	} {
		t.Run(code, func(t *testing.T) {
			r, out, err := tryExtract(t, in, extraction{Name: kcptest.Consumer})
			require.ErrorIs(t, err, transform.ErrRefused)
			require.Equal(t, transform.Refused, r.Outcome)
			require.Nil(t, r.Manifest)
			require.NoFileExists(t, out)
			require.Contains(t, codes(r.report), code)
			planned, steps := r.Clusters, r.Steps

			r, _ = extracted(t, in, extraction{Name: kcptest.Consumer, Allow: []string{code}})
			require.Equal(t, 36, r.Manifest.Clusters[0].Keys)
			require.Equal(t, r.Clusters, planned, "a refusal tells what would have been taken")
			require.Len(t, steps, len(r.Steps))
			left, _ := r.Errors()
			require.Zero(t, left, "nothing was skipped")
		})
	}
}

func TestExtractSystem(t *testing.T) {
	in := kcptest.Recorded(t, kcptest.Root)
	for _, name := range []string{"root", "system:bound-crds", "system:shard"} {
		r := refusedExtract(t, in, extraction{Name: name})
		require.Contains(t, codes(r.report), "system-cluster")
		r, out := extracted(t, in, extraction{Name: name, Allow: []string{"system-cluster"}})
		requireSame(t, in, out, func(key []byte) bool { return clusterOf(key) == name || needed(r.Manifest, key) })
	}
}

// TestExtractUnreadable: what tells what the cluster needs has to be readable, and nothing allows
// otherwise; all else is taken as it is stored.
func TestExtractUnreadable(t *testing.T) {
	var binding string
	kvs, _ := kcptest.Dump(t, kcptest.Recorded(t, kcptest.Root))
	for _, kv := range kvs {
		if strings.HasPrefix(string(kv.Key), bindings) {
			binding = string(kv.Key)
		}
	}
	require.NotEmpty(t, binding)
	garbled := func([]byte) []byte { return []byte("{") }
	for _, key := range []string{kcptest.LogicalClusterKey(kcptest.Consumer), binding} {
		for code, spoil := range map[string]func([]byte) []byte{kcp.CodeEncrypted.Name: encryptedValue, kcp.CodeUndecodable.Name: garbled} {
			r := refusedExtract(t, shardWith(t, key, spoil), extraction{Name: kcptest.Consumer, Allow: finding.Allowable(move.ExtractSpec.Codes)})
			require.Contains(t, codes(r.report), code)
		}
	}
	secret := "/registry/core/configmaps/" + kcptest.Consumer + "/default/kube-root-ca.crt"
	r, out := extracted(t, shardWith(t, secret, encryptedValue), extraction{Name: kcptest.Consumer})
	require.Equal(t, []archive.Encryption{{Name: "aescbc:v1:key1", Keys: 1}}, r.Manifest.Encryption)
	rec, err := openFile(t, out).Get(context.Background(), []byte(secret))
	require.NoError(t, err)
	require.Equal(t, encryptedValue(nil), rec.Value)

	r, _ = extracted(t, shardWith(t, secret, garbled), extraction{Name: kcptest.Consumer})
	require.Contains(t, codes(r.report), kcp.CodeUndecodable.Name)
}

// TestExtractUnreadableChild: whose child one is that cannot be read, nobody knows.
func TestExtractUnreadableChild(t *testing.T) {
	in := shardWith(t, kcptest.LogicalClusterKey(kcptest.Child), encryptedValue)
	r := refusedExtract(t, in, extraction{Name: kcptest.Consumer, WithChildren: true})
	require.Equal(t, []string{kcp.CodeEncrypted.Name}, codes(r.report))
	extracted(t, in, extraction{Name: kcptest.Consumer})
}

// TestExtractUnreadableWorkspace: which child a Workspace leads to that cannot be read, nobody
// knows; nor whose children those are whose LogicalClusters cannot be read.
func TestExtractUnreadableWorkspace(t *testing.T) {
	workspace := workspaceKey(kcptest.Consumer, "child")
	garbled := func([]byte) []byte { return []byte("{") }
	for code, spoil := range map[string]func([]byte) []byte{kcp.CodeEncrypted.Name: encryptedValue, kcp.CodeUndecodable.Name: garbled} {
		t.Run(code, func(t *testing.T) {
			in := shardWith(t, workspace, spoil)
			r := refusedExtract(t, in, extraction{Name: kcptest.Consumer, WithChildren: true, Allow: finding.Allowable(move.ExtractSpec.Codes)})
			require.Equal(t, []string{code}, codes(r.report))
			require.Equal(t, workspace, r.Problems[0].Key)
			require.Contains(t, r.Problems[0].Reason, "which logical cluster it leads to")
			extracted(t, in, extraction{Name: kcptest.Consumer})

			in = shardWith(t, kcptest.LogicalClusterKey(kcptest.Other), spoil)
			r, _ = extracted(t, in, extraction{Name: kcptest.Consumer, WithChildren: true})
			require.Equal(t, []string{code}, codes(r.report))
			require.Equal(t, finding.Warning, r.Problems[0].Level)
			require.Contains(t, r.Problems[0].Reason, `whose child "`+kcptest.Other+`" is cannot be told`)
			r, _ = extracted(t, in, extraction{Name: kcptest.Consumer})
			require.NotContains(t, codes(r.report), code, "no child is taken along")
		})
	}
}

// TestExtractMissingDefinition: it is told, and listed.
func TestExtractMissingDefinition(t *testing.T) {
	whole, _ := extracted(t, kcptest.Recorded(t, kcptest.Root), extraction{Name: kcptest.Consumer})
	gone := whole.Manifest.Definitions[0]
	in := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Root), func(client *clientv3.Client) {
		kcptest.Delete(t, client, "/registry"+gone.Key)
	})
	r, _ := extracted(t, in, extraction{Name: kcptest.Consumer})
	require.Contains(t, codes(r.report), "missing-definition")
	require.Len(t, r.Manifest.Missing, 1)
	require.Equal(t, gone.UID, r.Manifest.Missing[0].UID)
	require.Equal(t, gone.Resource, r.Manifest.Missing[0].Resource)
	require.NotEmpty(t, r.Manifest.Missing[0].StoredVersions)
	require.Len(t, r.Manifest.Definitions, len(whole.Manifest.Definitions)-1)
}

// TestExtractUnknownKey: a key of no logical cluster stays, and is told.
func TestExtractUnknownKey(t *testing.T) {
	malformed := "/registry/example.dev/widgets/customresources"
	in := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Root), func(client *clientv3.Client) {
		kcptest.Put(t, client, malformed, []byte("x"))
	})
	r, _ := extracted(t, in, extraction{Name: kcptest.Other})
	require.Equal(t, []string{"unknown-key"}, codes(r.report))
	require.Equal(t, malformed, r.Problems[0].Key)
}

// TestExtractOwnerUnseen: the parent of a logical cluster on another shard is not in the file.
func TestExtractOwnerUnseen(t *testing.T) {
	r, _ := extracted(t, kcptest.Recorded(t, kcptest.Shard1), extraction{Name: kcptest.Consumer1})
	require.Equal(t, []string{"owner-unseen"}, codes(r.report))
}

func TestExtractNoCluster(t *testing.T) {
	in := kcptest.Recorded(t, kcptest.Root)
	for name, says := range map[string]string{
		"root:consumer":         `is the path of "2y3qvnqz5ga11oc4"`,
		kcptest.Consumer1:       `on shard "shard-1"`,
		"":                      "no such logical cluster",
		kcptest.Consumer[:10]:   kcptest.Consumer,
		"2y3qvnqz5ga11oc4/evil": "no such logical cluster",
	} {
		r, _, err := tryExtract(t, in, extraction{Name: name})
		require.ErrorIs(t, err, kcp.ErrNoCluster)
		require.ErrorContains(t, err, says)
		require.Equal(t, transform.Failed, r.Outcome)
		require.NotEmpty(t, r.Input.SHA256)
	}
	_, archived := extracted(t, in, extraction{Name: kcptest.Consumer})
	_, _, err := tryExtract(t, archived, extraction{Name: kcptest.Consumer})
	require.ErrorIs(t, err, archive.ErrIsArchive)
	_, _, err = tryExtract(t, kcptest.Recorded(t, kcptest.Cache), extraction{Name: kcptest.Consumer})
	require.ErrorIs(t, err, kcp.ErrNoShard)
}

// TestExtractOutput: nothing is written over, and of a run that fails nothing stays.
func TestExtractOutput(t *testing.T) {
	in := kcptest.Recorded(t, kcptest.Root)
	ctx := context.Background()
	_, err := runExtract(ctx, extraction{Name: kcptest.Consumer, In: in, Out: in})
	require.ErrorIs(t, err, transform.ErrOutIsIn)
	folder := t.TempDir()
	taken := filepath.Join(folder, "taken")
	require.NoError(t, os.WriteFile(taken, []byte("mine"), 0o600))
	_, err = runExtract(ctx, extraction{Name: kcptest.Consumer, In: in, Out: taken})
	require.ErrorIs(t, err, os.ErrExist)

	interrupted, cancel := context.WithCancel(ctx)
	_, err = runExtract(interrupted, extraction{Name: kcptest.Consumer, In: in, Out: filepath.Join(folder, "out"), Progress: func(stage string, _ func() float64) {
		if stage == "write" {
			cancel()
		}
	}})
	require.ErrorIs(t, err, context.Canceled)

	image, err := os.ReadFile(in)
	require.NoError(t, err)
	image[len(image)/2] ^= 1
	damaged := filepath.Join(folder, "damaged")
	require.NoError(t, os.WriteFile(damaged, image, 0o600))
	_, err = runExtract(ctx, extraction{Name: kcptest.Consumer, In: damaged, Out: filepath.Join(folder, "out")})
	require.True(t, errors.Is(err, snapshot.ErrDigest) || errors.Is(err, snapshot.ErrDamaged), err)

	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, left, 2)
}

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
				if p.Code.Name == "odd-name" {
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
	require.Contains(t, codes(r.report), "unknown-key")
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
			o.Allow = finding.Allowable(move.ExtractSpec.Codes)
			r, out, err := tryExtract(t, in, o)
			require.ErrorIs(t, err, transform.ErrRefused)
			require.NotErrorIs(t, err, archive.ErrDamaged)
			require.NoFileExists(t, out)
			require.Contains(t, codes(r.report), "odd-name")
		}
	}
}

// TestExtractSplit: a prefix below the shard's makes another storage of a part of it.
func TestExtractSplit(t *testing.T) {
	in := kcptest.Recorded(t, kcptest.Root)
	_, out, err := tryExtract(t, in, extraction{Name: kcptest.Consumer, Prefixes: []string{"/registry", "/registry/core"}})
	require.ErrorIs(t, err, kcp.ErrSplit)
	require.ErrorContains(t, err, `"/registry/core" is below "/registry"`)
	require.NoFileExists(t, out)
}

// TestExtractOtherShardName: a name that the shard does not call itself by is told.
func TestExtractOtherShardName(t *testing.T) {
	in := kcptest.Single(t)
	for as, warned := range map[string]bool{"rot": true, "root": false, "": false} {
		r, _ := extracted(t, in, extraction{Name: kcptest.Provider, AsShard: as})
		require.Equal(t, warned, len(codes(r.report)) > 0 && codes(r.report)[0] == "shard-name", codes(r.report))
		if warned {
			require.Equal(t, "rot", r.Manifest.Origin.Shard)
			require.Equal(t, kcptest.LogicalClusterKey("system:shard"), r.Problems[0].Key)
		}
	}
}
