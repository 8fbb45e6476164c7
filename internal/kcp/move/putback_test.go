package move_test

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
	"github.com/etcdshift/etcdshift/internal/kcp/move"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// putBack puts orphans of one shard back into another.
func putBack(t testing.TB, from, shard string, o move.PutBack, run transform.Options) arrival {
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
	a := putBack(t, shard1, root, move.PutBack{}, transform.Options{}).written()
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
	require.Equal(t, []any{kcptest.Trapped()[0], "key-exists", finding.Warning}, []any{p.Key, p.Code.Name, p.Level})
	require.Contains(t, p.Reason, "kcp writes it itself")
	require.Equal(t, kcptest.Other, a.report.Clusters[0].Name)
	require.Equal(t, 3, a.report.Clusters[0].Keys)
	require.Equal(t, a.report.Input.Keys, a.report.Rest.Keys)
	require.True(t, hasStep(a.report.Steps, "kcp purge --orphans "+shard1), "%q", a.report.Steps)

	again := putBack(t, shard1, a.out, move.PutBack{}, transform.Options{})
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
	found := putBack(t, shard1, root, move.PutBack{}, transform.Options{}).refused("key-exists")
	require.Equal(t, trap, found[1].Key, "%+v", found)

	a := putBack(t, shard1, root, move.PutBack{}, transform.Options{Allow: []string{"key-exists"}}).written()
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
			a := putBack(t, shard1, root, move.PutBack{}, transform.Options{Allow: []string{"key-exists"}}).written()
			var found []finding.Finding
			for _, p := range a.report.Problems {
				if p.Key == key {
					found = append(found, p)
				}
			}
			require.Len(t, found, 1)
			require.Equal(t, []any{"key-exists", tc.level}, []any{found[0].Code.Name, found[0].Level})
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
	found := putBack(t, shard1, root, move.PutBack{}, transform.Options{}).refused("namespace-missing")
	require.Len(t, found, 3)
	a := putBack(t, shard1, root, move.PutBack{}, transform.Options{Allow: []string{"namespace-missing"}}).written()
	left, _ := a.report.Errors()
	require.Zero(t, left, "all of it was done")

	shard1 = kcptest.Edit(t, shard1, func(client *clientv3.Client) {
		kcptest.Put(t, client, namespace, []byte(arrival{t: t, out: kcptest.Recorded(t, kcptest.Root)}.value(namespace)))
	})
	a = putBack(t, shard1, root, move.PutBack{}, transform.Options{}).written()
	require.Equal(t, 4, a.report.Changes.Created, "a namespace that comes along is there")
}

// TestPutBackLivesNowhere: orphans of what does not live on the shard either stay.
func TestPutBackLivesNowhere(t *testing.T) {
	root, shard1 := kcptest.LiveMigrated(t)
	a := putBack(t, root, shard1, move.PutBack{}, transform.Options{})
	require.NoError(t, a.err)
	require.Equal(t, transform.Unchanged, a.report.Outcome)
	require.Empty(t, a.report.Problems)

	root = kcptest.Edit(t, root, func(client *clientv3.Client) { kcptest.Delete(t, client, kcptest.LogicalClusterKey(kcptest.Other)) })
	a = putBack(t, shard1, root, move.PutBack{}, transform.Options{})
	require.NoError(t, a.err)
	require.Equal(t, transform.Unchanged, a.report.Outcome)
	require.Equal(t, []string{"lives-nowhere"}, codes(a.report))
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
	a := putBack(t, shard1, root, move.PutBack{}, transform.Options{}).written()
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
	a := putBack(t, below(t, shard1, "/shard/two"), below(t, root, "/shard/one"), move.PutBack{}, transform.Options{}).written()
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
		a := putBack(t, files[0], files[1], move.PutBack{}, transform.Options{})
		require.ErrorContains(t, a.err, "no shard of kcp")
		_, err := os.Stat(a.out)
		require.ErrorIs(t, err, os.ErrNotExist)
	}
}

// TestPutBackPartial: in what is no whole shard all logical clusters look as if they did not live
// there.
func TestPutBackPartial(t *testing.T) {
	root := kcptest.Recorded(t, kcptest.Root)
	a := putBack(t, consumerArchive(t), root, move.PutBack{}, transform.Options{})
	require.ErrorIs(t, a.err, move.ErrPartial)
	a = putBack(t, root, consumerArchive(t), move.PutBack{}, transform.Options{})
	require.ErrorIs(t, a.err, move.ErrPartial)
}

const (
	otherPath = "root:other"
	poisoned  = "/registry/core/configmaps/" + otherPath + "/" + kcptest.Consumer + "/lost"
	healed    = "/registry/core/configmaps/" + kcptest.Other + "/" + kcptest.Consumer + "/lost"
)

// underPath is the root shard with an object of a logical cluster under its path, as an early kcp
// wrote it.
func underPath(t *testing.T) string {
	t.Helper()
	return kcptest.Edit(t, kcptest.Recorded(t, kcptest.Root), func(client *clientv3.Client) {
		value := kcptest.Get(t, client, kcptest.Trapped()[1])
		for field, path := range map[string][]string{"lost": {"metadata", "name"}, otherPath: {"metadata", "annotations", "kcp.io/cluster"}} {
			changed, err := encoding.Set(value, field, path...)
			require.NoError(t, err)
			value = changed
		}
		kcptest.Put(t, client, poisoned, value)
	})
}

// TestKeysUnderPathPutBack: the object gets the key and the annotation of its logical cluster, from
// the same file too.
func TestKeysUnderPathPutBack(t *testing.T) {
	root := underPath(t)
	a := putBack(t, root, root, move.PutBack{}, transform.Options{}).written()
	require.Equal(t, transform.Changes{Created: 1}, a.report.Changes)
	meta, err := encoding.ReadMeta([]byte(a.value(healed)))
	require.NoError(t, err)
	require.Equal(t, kcptest.Other, meta.Annotations["kcp.io/cluster"])
	require.Equal(t, kcptest.Other, a.report.Clusters[0].Name)

	again := putBack(t, root, a.out, move.PutBack{}, transform.Options{})
	require.NoError(t, again.err, "%+v", again.report.Problems)
	require.Equal(t, transform.Unchanged, again.report.Outcome, "what was put back is no problem")

	gone, out := purged(t, a.out, move.Purge{Orphans: true, Name: otherPath})
	require.Equal(t, transform.Changes{Deleted: 1}, gone.Changes)
	_, _, err = tryExtract(t, out, extraction{Name: kcptest.Other})
	require.NoError(t, err, "the archive has the object now")
}

// TestKeysUnderPathExtracted: an archive that lacks them has to be allowed.
func TestKeysUnderPathExtracted(t *testing.T) {
	root := underPath(t)
	r := refusedExtract(t, root, extraction{Name: kcptest.Other})
	require.Equal(t, []string{"keys-under-path"}, codes(r.report))
	require.Equal(t, poisoned, r.Problems[0].Key)
	require.Contains(t, r.Problems[0].Reason, otherPath)
	extracted(t, root, extraction{Name: kcptest.Other, Allow: []string{"keys-under-path"}})
}

// TestKeysUnderPathPurged: they go with their logical cluster.
func TestKeysUnderPathPurged(t *testing.T) {
	r, out := purged(t, underPath(t), move.Purge{Name: kcptest.Other}, "owner-points-here")
	without, _ := purged(t, kcptest.Recorded(t, kcptest.Root), move.Purge{Name: kcptest.Other}, "owner-points-here")
	require.Equal(t, without.Changes.Deleted+1, r.Changes.Deleted)
	left, _ := kcptest.Dump(t, out)
	for _, kv := range left {
		require.False(t, strings.Contains(string(kv.Key), otherPath), "%s", kv.Key)
	}
}

// TestKeysUnderPathVerified: a move that lost them is not sound, and no other record is blamed.
func TestKeysUnderPathVerified(t *testing.T) {
	m := moveFiles{origin: underPath(t), destination: kcptest.Recorded(t, kcptest.Shard1)}
	m.archive = extractOf(t, m.origin, extraction{Name: kcptest.Other, Allow: []string{"keys-under-path"}})
	m.destinationOut = importInto(t, m.archive, m.destination, move.Import{}, transform.Options{}).written().out
	without := m
	without.origin = ""
	check := func(m moveFiles, want ...string) {
		t.Helper()
		v := m.verdict(t)
		require.Equal(t, want, codesOf(v), "%+v", v.Findings)
		require.Contains(t, v.Findings[0].Reason+v.Findings[0].Key, otherPath)
	}
	m.originOut = purgeOf(t, kcptest.Other, m.origin)
	without.originOut = m.originOut
	check(m, "keys-under-path")
	check(without, "keys-under-path")
	m.originOut = purgeWith(t, m.origin, move.Purge{Name: kcptest.Other, Scrub: true}, "owner-points-here")
	check(m, "keys-under-path")
	m.origin = kcptest.Recorded(t, kcptest.Root)
	m.archive = extractOf(t, m.origin, extraction{Name: kcptest.Other})
	m.originOut = purgeOf(t, kcptest.Other, m.origin)
	m.destination = kcptest.Edit(t, m.destination, func(client *clientv3.Client) { kcptest.Put(t, client, poisoned, []byte("x")) })
	m.destinationOut = importInto(t, m.archive, m.destination, move.Import{}, transform.Options{}).written().out
	check(m, "keys-under-path")
}
