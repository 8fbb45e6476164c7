package kcp_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/kcp/carry"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// putBack puts orphans of one shard back into another.
func putBack(t testing.TB, from, shard string, o carry.PutBack, run transform.Options) arrival {
	t.Helper()
	file, err := snapshot.Open(context.Background(), from, snapshot.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, file.Close()) })
	o.From, o.Prefixes = file, run.Prefixes
	a := arrival{t: t, in: shard, out: filepath.Join(t.TempDir(), "out.db")}
	run.Command, run.In, run.Out = "kcp import", a.in, a.out
	r, err := transform.Run(context.Background(), run, &o)
	a.report, a.err = reportOf(r), err
	return a
}

// TestPutBack mends what kcp's own live migration broke: the tenant's objects are back, byte for
// byte, and what kcp made anew stays.
func TestPutBack(t *testing.T) {
	root, shard1 := kcptest.LiveMigrated(t)
	a := putBack(t, shard1, root, carry.PutBack{}, transform.Options{}).written()
	require.Equal(t, transform.Changes{Created: 3}, a.report.Changes)
	came, _ := a.arrived()
	recorded, _ := kcptest.Dump(t, kcptest.Recorded(t, kcptest.Root))
	was := map[string]string{}
	for _, kv := range recorded {
		was[string(kv.Key)] = string(kv.Value)
	}
	require.Len(t, came, 3)
	for n, key := range kcptest.Trapped()[1:] {
		require.Equal(t, key, string(came[n].Key))
		require.Equal(t, was[key], string(came[n].Value))
	}
	require.Len(t, a.report.Problems, 1)
	p := a.report.Problems[0]
	require.Equal(t, []any{kcptest.Trapped()[0], codeKeyExists, finding.Warning}, []any{p.Key, p.Code.Name, p.Level})
	require.Contains(t, p.Reason, "kcp writes it itself")
	require.Equal(t, kcptest.Other, a.report.Clusters[0].Name)
	require.Equal(t, 3, a.report.Clusters[0].Keys)
	require.Equal(t, a.report.Input.Keys, a.report.Rest.Keys)
	require.True(t, hasStep(a.report.Steps, "kcp purge --orphans "+shard1), "%q", a.report.Steps)

	again := putBack(t, shard1, a.out, carry.PutBack{}, transform.Options{})
	require.NoError(t, again.err)
	require.Equal(t, transform.Unchanged, again.report.Outcome, "what is the same already is no problem")
}

// TestPutBackKeyExists: what is there with another value stays, and is told; with --allow the
// others are put back all the same.
func TestPutBackKeyExists(t *testing.T) {
	root, shard1 := kcptest.LiveMigrated(t)
	trap := kcptest.Trapped()[1]
	root = kcptest.Edit(t, root, func(client *clientv3.Client) {
		value := arrival{t: t, out: shard1}.value(trap)
		made, err := encoding.Set([]byte(value), "made anew", "data", "who")
		require.NoError(t, err)
		kcptest.Put(t, client, trap, made)
	})
	found := putBack(t, shard1, root, carry.PutBack{}, transform.Options{}).refused(codeKeyExists)
	require.Equal(t, trap, found[1].Key, "%+v", found)

	a := putBack(t, shard1, root, carry.PutBack{}, transform.Options{Allow: []string{codeKeyExists}}).written()
	came, _ := a.arrived()
	require.Len(t, came, 2)
	left, _ := a.report.Errors()
	require.Equal(t, 1, left)
}

// TestPutBackTokenSecret: kcp writes the CA of its shard into Secrets with a service account token.
// One that differs in nothing else stays, with a warning; any other difference is decided by a
// person.
func TestPutBackTokenSecret(t *testing.T) {
	key := "/registry/core/secrets/" + kcptest.Other + "/" + kcptest.Consumer + "/token"
	secret := func(kind, ca, token string, annotations map[string]string) []byte {
		raw, err := (&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "token", Namespace: kcptest.Consumer, UID: "0c0ffee0-0000-4000-8000-000000000002", Annotations: annotations,
				ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kcp of " + ca}}},
			Type: corev1.SecretType(kind), Data: map[string][]byte{"ca.crt": []byte(ca), "token": []byte(token)},
		}).Marshal()
		require.NoError(t, err)
		return inEnvelope(t, "Secret", raw)
	}
	token, ours := string(corev1.SecretTypeServiceAccountToken), map[string]string{"kubernetes.io/service-account.name": "default"}
	updated := map[string]string{"kubernetes.io/service-account.name": "default", "kcp.io/cluster": kcptest.Other}
	for name, tc := range map[string]struct {
		orphan, living []byte
		level          finding.Level
	}{
		"another CA":     {secret(token, "shard-1", "a", updated), secret(token, "root", "a", ours), finding.Warning},
		"another token":  {secret(token, "shard-1", "a", ours), secret(token, "root", "b", ours), finding.Error},
		"another object": {secret(token, "shard-1", "a", ours), secret(token, "root", "a", nil), finding.Error},
		"no token":       {secret("Opaque", "shard-1", "a", ours), secret("Opaque", "root", "a", ours), finding.Error},
		"damaged":        {secret(token, "shard-1", "a", ours), []byte("{"), finding.Error},
	} {
		t.Run(name, func(t *testing.T) {
			root, shard1 := kcptest.LiveMigrated(t)
			root = kcptest.Edit(t, root, func(client *clientv3.Client) { kcptest.Put(t, client, key, tc.living) })
			shard1 = kcptest.Edit(t, shard1, func(client *clientv3.Client) { kcptest.Put(t, client, key, tc.orphan) })
			a := putBack(t, shard1, root, carry.PutBack{}, transform.Options{Allow: []string{codeKeyExists}}).written()
			var found []finding.Finding
			for _, p := range a.report.Problems {
				if p.Key == key {
					found = append(found, p)
				}
			}
			require.Len(t, found, 1)
			require.Equal(t, []any{codeKeyExists, tc.level}, []any{found[0].Code.Name, found[0].Level})
			require.Equal(t, string(tc.living), a.value(key), "the living one stays")
			require.NotContains(t, found[0].Reason, "shard-1", "no value is quoted")
		})
	}
}

// TestPutBackNamespaceMissing: an object in a namespace that is gone could not be reached.
func TestPutBackNamespaceMissing(t *testing.T) {
	root, shard1 := kcptest.LiveMigrated(t)
	namespace := "/registry/core/namespaces/" + kcptest.Other + "/" + kcptest.Consumer
	root = kcptest.Edit(t, root, func(client *clientv3.Client) { kcptest.Delete(t, client, namespace) })
	found := putBack(t, shard1, root, carry.PutBack{}, transform.Options{}).refused(codeNamespaceMissing)
	require.Len(t, found, 3)
	a := putBack(t, shard1, root, carry.PutBack{}, transform.Options{Allow: []string{codeNamespaceMissing}}).written()
	left, _ := a.report.Errors()
	require.Zero(t, left, "all of it was done")

	shard1 = kcptest.Edit(t, shard1, func(client *clientv3.Client) {
		kcptest.Put(t, client, namespace, []byte(arrival{t: t, out: kcptest.Recorded(t, kcptest.Root)}.value(namespace)))
	})
	a = putBack(t, shard1, root, carry.PutBack{}, transform.Options{}).written()
	require.Equal(t, 4, a.report.Changes.Created, "a namespace that comes along is there")
}

// TestPutBackLivesNowhere: orphans of what does not live on the shard either stay.
func TestPutBackLivesNowhere(t *testing.T) {
	root, shard1 := kcptest.LiveMigrated(t)
	a := putBack(t, root, shard1, carry.PutBack{}, transform.Options{})
	require.NoError(t, a.err)
	require.Equal(t, transform.Unchanged, a.report.Outcome)
	require.Empty(t, a.report.Problems)

	root = kcptest.Edit(t, root, func(client *clientv3.Client) { kcptest.Delete(t, client, kcptest.LogicalClusterKey(kcptest.Other)) })
	a = putBack(t, shard1, root, carry.PutBack{}, transform.Options{})
	require.NoError(t, a.err)
	require.Equal(t, transform.Unchanged, a.report.Outcome)
	require.Equal(t, []string{codeLivesNowhere}, codes(a.report))
	require.Contains(t, a.report.Problems[0].Reason, "4 keys")
}

// TestPutBackLease: an orphan with a lease gets one of the same TTL.
func TestPutBackLease(t *testing.T) {
	root, shard1 := kcptest.LiveMigrated(t)
	trap := kcptest.Trapped()[1]
	shard1 = kcptest.Edit(t, shard1, func(client *clientv3.Client) {
		lease, err := client.Grant(context.Background(), 12345)
		require.NoError(t, err)
		kcptest.Put(t, client, trap, kcptest.Get(t, client, trap), clientv3.WithLease(lease.ID))
	})
	a := putBack(t, shard1, root, carry.PutBack{}, transform.Options{}).written()
	came, leases := a.arrived()
	for _, kv := range came {
		if string(kv.Key) == trap {
			require.EqualValues(t, 12345, leases[kv.Lease])
		}
	}
}

// TestPutBackPrefixes: below other prefixes on both sides.
func TestPutBackPrefixes(t *testing.T) {
	root, shard1 := kcptest.LiveMigrated(t)
	a := putBack(t, below(t, shard1, "/shard/two"), below(t, root, "/shard/one"), carry.PutBack{}, transform.Options{}).written()
	came, _ := a.arrived()
	require.Len(t, came, 3)
	for _, kv := range came {
		require.True(t, strings.HasPrefix(string(kv.Key), "/shard/one/"))
	}
}

// TestPutBackNoShard: neither side may be something else.
func TestPutBackNoShard(t *testing.T) {
	root, cache := kcptest.Recorded(t, kcptest.Root), kcptest.Recorded(t, kcptest.Cache)
	for _, files := range [][2]string{{cache, root}, {root, cache}} {
		a := putBack(t, files[0], files[1], carry.PutBack{}, transform.Options{})
		require.ErrorContains(t, a.err, "no shard of kcp")
		_, err := os.Stat(a.out)
		require.ErrorIs(t, err, os.ErrNotExist)
	}
}

// TestPutBackPartial: in what is no whole shard all logical clusters look as if they did not live
// there.
func TestPutBackPartial(t *testing.T) {
	root := kcptest.Recorded(t, kcptest.Root)
	a := putBack(t, consumerArchive(t), root, carry.PutBack{}, transform.Options{})
	require.ErrorIs(t, a.err, carry.ErrPartial)
	a = putBack(t, root, consumerArchive(t), carry.PutBack{}, transform.Options{})
	require.ErrorIs(t, a.err, carry.ErrPartial)
}
