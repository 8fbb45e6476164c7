package kcp_test

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
	"github.com/etcdshift/etcdshift/internal/kcp/archive"
	"github.com/etcdshift/etcdshift/internal/kcp/clusters"
	"github.com/etcdshift/etcdshift/internal/kcp/extract"
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
		codeTerminating: shardWith(t, lc, swapped(`"metadata":{`, `"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z",`)),
		codeMigrating:   shardWith(t, lc, swapped(`"annotations":{`, `"annotations":{"internal.kcp.io/migrating":"root:move",`)),
		codeKeyMismatch: shardWith(t, lc, swapped(`"kcp.io/cluster":"`+kcptest.Consumer, `"kcp.io/cluster":"`+kcptest.Other)),
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
		r, _, err := tryExtract(t, in, extraction{Name: name})
		require.ErrorIs(t, err, transform.ErrRefused)
		require.Contains(t, codes(r.report), codeSystemCluster)
		r, out := extracted(t, in, extraction{Name: name, Allow: []string{codeSystemCluster}})
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
		for code, spoil := range map[string]func([]byte) []byte{clusters.CodeEncrypted.Name: encryptedValue, clusters.CodeUndecodable.Name: garbled} {
			r, _, err := tryExtract(t, shardWith(t, key, spoil), extraction{Name: kcptest.Consumer, Allow: finding.Allowable(extract.Spec.Codes)})
			require.ErrorIs(t, err, transform.ErrRefused)
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
	require.Contains(t, codes(r.report), clusters.CodeUndecodable.Name)
}

// TestExtractUnreadableChild: whose child one is that cannot be read, nobody knows.
func TestExtractUnreadableChild(t *testing.T) {
	in := shardWith(t, kcptest.LogicalClusterKey(kcptest.Child), encryptedValue)
	r, _, err := tryExtract(t, in, extraction{Name: kcptest.Consumer, WithChildren: true})
	require.ErrorIs(t, err, transform.ErrRefused)
	require.Equal(t, []string{clusters.CodeEncrypted.Name}, codes(r.report))
	extracted(t, in, extraction{Name: kcptest.Consumer})
}

// TestExtractUnreadableWorkspace: which child a Workspace leads to that cannot be read, nobody
// knows; nor whose children those are whose LogicalClusters cannot be read.
func TestExtractUnreadableWorkspace(t *testing.T) {
	workspace := workspaceKey(kcptest.Consumer, "child")
	garbled := func([]byte) []byte { return []byte("{") }
	for code, spoil := range map[string]func([]byte) []byte{clusters.CodeEncrypted.Name: encryptedValue, clusters.CodeUndecodable.Name: garbled} {
		t.Run(code, func(t *testing.T) {
			in := shardWith(t, workspace, spoil)
			r, out, err := tryExtract(t, in, extraction{Name: kcptest.Consumer, WithChildren: true, Allow: finding.Allowable(extract.Spec.Codes)})
			require.ErrorIs(t, err, transform.ErrRefused)
			require.NoFileExists(t, out)
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
	require.Contains(t, codes(r.report), codeMissingDefinition)
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
	require.Equal(t, []string{codeUnknownKey}, codes(r.report))
	require.Equal(t, malformed, r.Problems[0].Key)
}

// TestExtractOwnerUnseen: the parent of a logical cluster on another shard is not in the file.
func TestExtractOwnerUnseen(t *testing.T) {
	r, _ := extracted(t, kcptest.Recorded(t, kcptest.Shard1), extraction{Name: kcptest.Consumer1})
	require.Equal(t, []string{codeOwnerUnseen}, codes(r.report))
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
		require.ErrorIs(t, err, clusters.ErrNoCluster)
		require.ErrorContains(t, err, says)
		require.Equal(t, transform.Failed, r.Outcome)
		require.NotEmpty(t, r.Input.SHA256)
	}
	_, archived := extracted(t, in, extraction{Name: kcptest.Consumer})
	_, _, err := tryExtract(t, archived, extraction{Name: kcptest.Consumer})
	require.ErrorIs(t, err, archive.ErrIsArchive)
	_, _, err = tryExtract(t, kcptest.Recorded(t, kcptest.Cache), extraction{Name: kcptest.Consumer})
	require.ErrorIs(t, err, clusters.ErrNoShard)
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
