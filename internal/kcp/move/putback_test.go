package move_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/kcp/move"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/transform"
)

// TestPutBack checks that another tenant's objects from kcp's live migration are restored, byte for
// byte, and records recreated by kcp stay.
func TestPutBack(t *testing.T) {
	liveRoot, liveShard1 := kcptest.LiveMigrated(t)
	a := putBack(t, liveShard1, liveRoot, move.PutBack{}).written()
	require.Equal(t, transform.Changes{Created: 3}, a.Changes)
	came, _ := a.arrived()
	require.Len(t, came, 3)
	for n, key := range kcptest.Trapped()[1:] {
		require.Equal(t, key, string(came[n].Key))
		require.Equal(t, valueIn(t, root(t), key), string(came[n].Value))
	}
	require.Len(t, a.Problems, 1)
	p := a.Problems[0]
	require.Equal(t, []any{kcptest.Trapped()[0], "key-exists", finding.Warning}, []any{p.Key, p.Code.Name, p.Level})
	require.Contains(t, p.Reason, "kcp writes it itself")
	require.Equal(t, []any{other, 3}, []any{a.Clusters[0].Name, a.Clusters[0].Keys})
	require.Equal(t, a.Input.Keys, a.Rest.Keys)
	a.requireSteps("kcp purge --orphans " + liveShard1)
	putBack(t, liveShard1, a.out, move.PutBack{}).unchanged() // equal records are not a problem
}

// TestPutBackTokenSecret checks Secrets with a service account token, into which kcp writes the CA
// of its shard. A Secret without other differences stays, with a warning; any other difference must
// be allowed.
func TestPutBackTokenSecret(t *testing.T) {
	key := secrets + other + "/" + consumer + "/token"
	secret := func(kind, ca, token string, annotations map[string]string) string {
		raw, err := (&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "token", Namespace: consumer,
				UID:         "0c0ffee0-0000-4000-8000-000000000002",
				Annotations: annotations, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kcp of " + ca}}},
			Type: corev1.SecretType(kind), Data: map[string][]byte{"ca.crt": []byte(ca), "token": []byte(token)},
		}).Marshal()
		require.NoError(t, err)
		return string(inEnvelope(t, "Secret", raw))
	}
	token, ours := string(corev1.SecretTypeServiceAccountToken),
		map[string]string{"kubernetes.io/service-account.name": "default"}
	updated := map[string]string{"kubernetes.io/service-account.name": "default", "kcp.io/cluster": other}
	liveRoot, liveShard1 := kcptest.LiveMigrated(t)
	for name, tc := range map[string]struct {
		orphan, living string
		level          finding.Level
	}{
		"another CA":     {secret(token, "shard-1", "a", updated), secret(token, "root", "a", ours), finding.Warning},
		"another token":  {secret(token, "shard-1", "a", ours), secret(token, "root", "b", ours), finding.Error},
		"another object": {secret(token, "shard-1", "a", ours), secret(token, "root", "a", nil), finding.Error},
		"no token":       {secret("Opaque", "shard-1", "a", ours), secret("Opaque", "root", "a", ours), finding.Error},
		"damaged":        {secret(token, "shard-1", "a", ours), "{", finding.Error},
	} {
		t.Run(name, func(t *testing.T) {
			from := edited(t, liveShard1, put(key, tc.orphan))
			a := putBack(t, from, edited(t, liveRoot, put(key, tc.living)), move.PutBack{},
				allow("key-exists")).written()
			require.Equal(t, tc.living, a.value(key), "the living one stays")
			found := 0
			for _, p := range a.of("key-exists") {
				if p.Key == key {
					found++
					require.Equal(t, tc.level, p.Level)
					require.NotContains(t, p.Reason, "shard-1", "no value is quoted")
				}
			}
			require.Equal(t, 1, found)
		})
	}
}

// TestPutBackComesAlong checks that a missing namespace is restored with its objects, a lease keeps
// its TTL, and Events without expiry are named.
func TestPutBackComesAlong(t *testing.T) {
	const namespace = "/registry/core/namespaces/" + other + "/" + consumer
	const event = "/registry/core/events/" + other + "/" + consumer + "/ev"
	liveRoot, liveShard1 := kcptest.LiveMigrated(t)
	from := edited(t, liveShard1, put(namespace, valueIn(t, root(t), namespace)), leased(trap, 12345),
		put(event, `{"apiVersion":"v1","kind":"Event","metadata":{"name":"ev","namespace":"`+consumer+`"}}`))
	a := putBack(t, from, edited(t, liveRoot, drop(namespace)), move.PutBack{}).written()
	require.Equal(t, 5, a.Changes.Created)
	came, leases := a.arrived()
	require.EqualValues(t, 12345, leases[byKey(came)[trap].Lease])
	a.requireSteps("1 Event…never expire…" + event)
}

// TestPutBackLivesNowhere checks that orphans of a logical cluster that lives on neither shard
// stay.
func TestPutBackLivesNowhere(t *testing.T) {
	liveRoot, liveShard1 := kcptest.LiveMigrated(t)
	require.Empty(t, putBack(t, liveRoot, liveShard1, move.PutBack{}).unchanged().Problems)
	a := putBack(t, liveShard1, edited(t, liveRoot, drop(home(other))), move.PutBack{}).unchanged()
	require.Equal(t, []string{"lives-nowhere"}, a.codes())
	require.Contains(t, a.Problems[0].Reason, "4 keys")
}

// TestPutBackPrefixes checks shards with different prefixes.
func TestPutBackPrefixes(t *testing.T) {
	liveRoot, liveShard1 := kcptest.LiveMigrated(t)
	a := putBack(t, below(t, liveShard1, "/shard/two"), below(t, liveRoot, "/shard/one"), move.PutBack{}).written()
	came, _ := a.arrived()
	require.Len(t, came, 3)
	for _, kv := range came {
		require.True(t, strings.HasPrefix(string(kv.Key), "/shard/one/"))
	}
}

// TestPutBackFails checks that both files must be whole shards.
func TestPutBackFails(t *testing.T) {
	whole, cache, part := root(t), recorded(t, kcptest.Cache), archiveOf(t, root(t))
	for _, c := range []struct {
		from, in string
		is       error
	}{
		{cache, whole, kcp.ErrNoShard}, {whole, cache, kcp.ErrNoShard}, {part, whole, move.ErrPartial},
		{whole, part, move.ErrPartial},
	} {
		putBack(t, c.from, c.in, move.PutBack{}).fails(c.is, "")
	}
}

const (
	otherPath = "root:other"
	poisoned  = configMaps + otherPath + "/" + consumer + "/lost"
	healed    = configMaps + other + "/" + consumer + "/lost"
)

// underPath returns the root shard with an object of a logical cluster under its path, as early
// versions of kcp wrote it.
func underPath(t testing.TB) string {
	t.Helper()
	return root(t, func(t testing.TB, client *clientv3.Client) {
		value := kcptest.Get(t, client, trap)
		for field, path := range map[string][]string{"lost": {"metadata", "name"},
			otherPath: {"metadata", "annotations", "kcp.io/cluster"}} {
			changed, err := encoding.Set(value, field, path...)
			require.NoError(t, err)
			value = changed
		}
		kcptest.Put(t, client, poisoned, value)
	})
}

// TestKeysUnderPath checks that a restored object gets the key and the annotation of its logical
// cluster, even from the same file. A purge deletes the object with its logical cluster.
func TestKeysUnderPath(t *testing.T) {
	in := underPath(t)
	a := putBack(t, in, in, move.PutBack{}).written()
	require.Equal(t, transform.Changes{Created: 1}, a.Changes)
	meta, err := encoding.ReadMeta([]byte(a.value(healed)))
	require.NoError(t, err)
	require.Equal(t, other, meta.Annotations["kcp.io/cluster"])
	require.Equal(t, other, a.Clusters[0].Name)
	putBack(t, in, a.out, move.PutBack{}).unchanged()
	gone := purge(t, a.out, move.Purge{Orphans: true, Name: otherPath}).written()
	require.Equal(t, transform.Changes{Deleted: 1}, gone.Changes)
	require.NoError(t, extract(t, gone.out, move.Extract{Name: other}).err, "the archive has the object now")

	its, led := move.Purge{Name: other}, allow("owner-points-here")
	r := purge(t, in, its, led).written()
	require.Equal(t, purge(t, root(t), its, led).written().Changes.Deleted+1, r.Changes.Deleted)
	require.Empty(t, dumped(t, r.out, func(key []byte) bool { return strings.Contains(string(key), otherPath) }))
}

// TestKeysUnderPathVerified checks that a move that lost such keys is not sound, and no other
// record is reported.
func TestKeysUnderPathVerified(t *testing.T) {
	m := moveFiles{origin: underPath(t), destination: shard1(t)}
	m.archive = extract(t, m.origin, move.Extract{Name: other}, allow("keys-under-path")).written().out
	m.destinationOut = importInto(t, m.archive, m.destination, move.Import{}).written().out
	check := func(m moveFiles) {
		t.Helper()
		v := m.requireFound(t, "keys-under-path")
		require.Contains(t, v.Findings[0].Reason+v.Findings[0].Key, otherPath)
	}
	m.originOut = purgeOf(t, other, m.origin)
	check(m)
	check(m.withoutInputs())
	m.originOut = purge(t, m.origin, move.Purge{Name: other, Scrub: true}, allow("owner-points-here")).written().out
	check(m)
	m = moveOf(t, other, root(t), shard1(t, put(poisoned, "x")))
	check(m)
}
