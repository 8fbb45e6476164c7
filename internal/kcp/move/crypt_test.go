package move_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding/encryption"
	"github.com/etcdshift/etcdshift/internal/kcp/move"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/internal/test/secrettest"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// cipher encrypts Secrets by the first of providers: see [secrettest.Write].
func cipher(t testing.TB, providers ...string) *encryption.Transformers {
	return secrettest.Load(t, "secrets: "+strings.Join(providers, " "))
}

var secretType = apischema.GroupResource{Resource: "secrets"}

// encrypted puts a Secret as a server would store it.
func encrypted(by *encryption.Transformers, key, plain string) edit {
	return func(t testing.TB, client *clientv3.Client) {
		value, err := by.Encrypt(context.Background(), secretType, []byte(key), []byte(plain))
		require.NoError(t, err)
		kcptest.Put(t, client, key, value)
	}
}

// encryptAll encrypts each value that a server would encrypt.
func encryptAll(by *encryption.Transformers) edit {
	return func(t testing.TB, client *clientv3.Client) {
		r, err := client.Get(context.Background(), "/registry/", clientv3.WithPrefix())
		require.NoError(t, err)
		for _, kv := range r.Kvs {
			k, err := keys.KCPShard{Prefix: "/registry"}.Parse(kv.Key)
			require.NoError(t, err)
			value, err := by.Encrypt(context.Background(), k.Resource, kv.Key, kv.Value)
			require.NoError(t, err)
			kcptest.Put(t, client, string(kv.Key), value, clientv3.WithLease(clientv3.LeaseID(kv.Lease)))
		}
	}
}

// encryptedArchive returns an archive of consumer with its only Secret encrypted; plain is the
// plaintext.
func encryptedArchive(t testing.TB, by *encryption.Transformers) (from, plain string) {
	t.Helper()
	plain = valueIn(t, root(t), itsSecret)
	return archiveOf(t, root(t, encrypted(by, itsSecret, plain))), plain
}

// requireEncrypted requires that a Secret in the output is encrypted in the form that its servers
// decrypt and would write themselves, and returns the stored bytes.
func (r result) requireEncrypted(with *encryption.Transformers, key, by, plain string) string {
	r.t.Helper()
	stored := r.value(key)
	require.True(r.t, strings.HasPrefix(stored, "k8s:enc:"+by+":"), "%.30q", stored)
	value, stale, err := with.Decrypt(context.Background(), secretType, []byte(key), []byte(stored))
	require.NoError(r.t, err)
	require.False(r.t, stale)
	require.Equal(r.t, plain, string(value))
	return stored
}

// TestImportEncrypted checks that a value encrypted with the origin's key is encrypted anew with
// the destination's. The stored bytes stay if the servers of the destination would write the same
// bytes.
func TestImportEncrypted(t *testing.T) {
	for _, provider := range []string{"aescbc", "aesgcm", "secretbox"} {
		t.Run(provider, func(t *testing.T) {
			theirs, ours := cipher(t, provider+"=o"), cipher(t, provider+"=n", "identity")
			from, plain := encryptedArchive(t, theirs)
			opened := move.Import{Decrypter: theirs}
			a := importInto(t, from, shard1(t), opened, encrypting(ours)).written()
			require.Empty(t, a.Problems)
			a.requireEncrypted(ours, itsSecret, provider+":v1:n", plain)
			came, _ := a.arrived()
			require.Len(t, came, 36)

			a = importInto(t, from, shard1(t), opened, encrypting(theirs)).written()
			require.Equal(t, valueIn(t, from, itsSecret),
				a.requireEncrypted(theirs, itsSecret, provider+":v1:o", plain))
			rotated := cipher(t, provider+"=n", provider+"=o")
			a = importInto(t, from, shard1(t), opened, encrypting(rotated)).written()
			a.requireEncrypted(rotated, itsSecret, provider+":v1:n", plain)
		})
	}
}

// TestImportEncryptedPrefix checks that a value bound to its key is encrypted anew under another
// key.
func TestImportEncryptedPrefix(t *testing.T) {
	both := cipher(t, "aesgcm=o")
	from, plain := encryptedArchive(t, both)
	a := importInto(t, from, below(t, shard1(t), "/shard/one"), move.Import{Decrypter: both},
		encrypting(both)).written()
	stored := a.requireEncrypted(both, strings.Replace(itsSecret, "/registry", "/shard/one", 1), "aesgcm:v1:o", plain)
	require.NotEqual(t, valueIn(t, from, itsSecret), stored)
}

// TestImportUndecryptable checks that an undecryptable value may be copied as stored, but only
// under the same key.
func TestImportUndecryptable(t *testing.T) {
	from, _ := encryptedArchive(t, cipher(t, "aesgcm=o"))
	for _, o := range []move.Import{{}, {Decrypter: cipher(t, "aesgcm=x")}} {
		found := importInto(t, from, shard1(t), o).refused("encrypted")
		require.Equal(t, itsSecret, found[0].Key)
		require.Contains(t, found[0].Reason, "aesgcm:v1:o")
		a := importInto(t, from, shard1(t), o, allow("encrypted")).written()
		require.Equal(t, valueIn(t, from, itsSecret), a.value(itsSecret))
		left, _ := a.Errors()
		require.Equal(t, 1, left)
		found = importInto(t, from, below(t, shard1(t), "/shard/one"), o, allow("encrypted")).refused("encrypted")
		require.Contains(t, found[0].Reason, "under another key")
	}
}

// TestImportWouldBePlaintext checks that an encrypted value is never written as plaintext, for any
// allowed codes.
func TestImportWouldBePlaintext(t *testing.T) {
	theirs := cipher(t, "aescbc=o")
	from, plain := encryptedArchive(t, theirs)
	all := []option{allowAll(move.ImportSpec), allow("would-be-plaintext")}
	for _, options := range [][]option{all, append(all, encrypting(cipher(t, "identity", "aescbc=o")))} {
		found := importInto(t, from, shard1(t), move.Import{Decrypter: theirs},
			options...).refused("would-be-plaintext")
		require.Equal(t, itsSecret, found[0].Key)
		require.NotContains(t, found[0].Reason, plain)
	}
}

// TestImportPlainIntoEncrypted checks that a plaintext value is encrypted by the configuration.
// Without a configuration, the value is not written to a shard with encrypted values of the type.
func TestImportPlainIntoEncrypted(t *testing.T) {
	theirs, from := secrets+consumer1+"/default/sec", archiveOf(t, root(t))
	ours, plain := cipher(t, "aescbc=n", "identity"), valueIn(t, from, itsSecret)
	a := importInto(t, from, shard1(t), move.Import{}, encrypting(ours)).written()
	a.requireEncrypted(ours, itsSecret, "aescbc:v1:n", plain)

	shard := shard1(t, encrypted(ours, theirs, plain))
	all := []option{allowAll(move.ImportSpec), allow("would-be-plaintext")}
	for _, options := range [][]option{all, append(all, encrypting(cipher(t, "identity", "aescbc=x")))} {
		found := importInto(t, from, shard, move.Import{}, options...).refused("would-be-plaintext")
		require.Len(t, found, 1)
		require.Equal(t, itsSecret, found[0].Key)
		require.Contains(t, found[0].Reason, theirs)
	}
	a = importInto(t, from, shard, move.Import{}, encrypting(ours)).written()
	a.requireEncrypted(ours, itsSecret, "aescbc:v1:n", plain)
	a = importInto(t, from, shard, move.Import{}, encrypting(cipher(t, "identity", "aescbc=n"))).written()
	require.Equal(t, plain, a.value(itsSecret), "their servers encrypt no more")
}

// TestPutBackEncrypted checks that the rules of an import apply.
func TestPutBackEncrypted(t *testing.T) {
	liveRoot, liveShard1 := kcptest.LiveMigrated(t)
	theirs, ours := cipher(t, "aesgcm=o"), cipher(t, "aescbc=n", "identity")
	orphan := secrets + other + "/" + consumer + "/s"
	plain := `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"` + consumer +
		`"},"data":{"a":"c3M="}}`
	from := edited(t, liveShard1, encrypted(theirs, orphan, plain))
	a := putBack(t, from, liveRoot, move.PutBack{Decrypter: theirs}, encrypting(ours)).written()
	a.requireEncrypted(ours, orphan, "aescbc:v1:n", plain)
	putBack(t, from, a.out, move.PutBack{Decrypter: theirs}, encrypting(ours)).unchanged() // equal values
	putBack(t, from, liveRoot, move.PutBack{}, encrypting(ours)).refused("encrypted")
	putBack(t, from, a.out, move.PutBack{}, encrypting(ours)).refused("key-exists")
}

// TestImportEveryValueEncrypted checks that a shard with all values encrypted is read and written.
func TestImportEveryValueEncrypted(t *testing.T) {
	all := secrettest.Load(t, "*.*: aesgcm=k")
	from := archiveOf(t, root(t, encryptAll(all)), encrypting(all))
	shard := shard1(t, encryptAll(all), drop(widgetsDefinition))
	a := importInto(t, from, shard, move.Import{Decrypter: all, AsShard: "shard-1"}, encrypting(all)).written()
	require.Empty(t, a.Problems)
	came, _ := a.arrived()
	require.Len(t, came, 37)
	for _, kv := range came {
		require.Equal(t, valueIn(t, from, string(kv.Key)), string(kv.Value), "nothing had to change")
	}
}

// TestImportDefinitionUndecryptable checks that an undecryptable definition of the shard is not
// compared and stays. The reason says that the definition may be the missing one.
func TestImportDefinitionUndecryptable(t *testing.T) {
	shard := rebuilt(t, shard1(t), with(widgetsDefinition, opaque), nil, nil)
	a := importInto(t, archiveOf(t, root(t)), shard, move.Import{})
	found := a.refused("definition-differs")
	require.Equal(t, widgetsDefinition, found[0].Key)
	require.Contains(t, found[0].Reason, "cannot be decrypted")
	require.Len(t, a.refused("would-be-plaintext"), 4, "the logical cluster's own definitions")
	shard = rebuilt(t, shard1(t), with(systemDir+"apibindings.apis.kcp.io", opaque), nil, nil)
	found = importInto(t, archiveOf(t, root(t)), shard, move.Import{}).refused("unserved")
	require.Contains(t, found[0].Reason, "as far as can be told")
}

// TestNeedsNoKeys checks that encrypted values are deleted like all others. An unreadable
// LogicalCluster has no known owner: any Workspace that names the cluster counts.
func TestNeedsNoKeys(t *testing.T) {
	its, workspace := move.Purge{Name: consumer}, kcptest.WorkspaceKey("consumer")
	in := root(t, replace(itsSecret, opaque), replace(home(consumer), opaque))
	for _, code := range []string{"owner-points-here", "encrypted"} {
		require.ErrorIs(t, purge(t, in, its, allow(code)).err, transform.ErrRefused)
	}
	r := purge(t, in, its, allow("owner-points-here", "encrypted")).written()
	require.Equal(t, 36, r.requireGone(ofCluster(consumer)))
	require.Equal(t, []string{"children-stay", "encrypted", "owner-points-here"}, r.codes())

	r = purge(t, root(t, replace(workspace, opaque)), its).written()
	require.Equal(t, []string{"children-stay", "owner-unseen"}, r.codes())
	require.Equal(t, workspace, r.Problems[0].Key)

	in = edited(t, in, replace(workspace, opaque), replace(home(child), opaque))
	r = purge(t, in, move.Purge{Name: consumer, WithChildren: true}, allow("encrypted")).written()
	require.Equal(t, 36, r.requireGone(ofCluster(consumer)))
	require.Equal(t, []string{"children-stay", "encrypted"}, r.codes(),
		"only a Workspace says that it is a child: it stays")
}

// TestMoveCopyEncrypted checks that an encrypted copy is encrypted for its new key, and never
// stored as plaintext.
func TestMoveCopyEncrypted(t *testing.T) {
	ours, open := cipher(t, "aesgcm=b"), cipher(t, "identity", "aesgcm=b")
	from := "/cache/secrets/customresources/root/" + kcptest.ClaimsProvider + "/default/sec"
	plain := `{"kind":"Secret","metadata":{"name":"sec","namespace":"default","annotations":{"kcp.io/shard":"root"}}}`
	in, all := recorded(t, kcptest.ClaimsCache, encrypted(ours, from, plain)), allowAll(move.PurgeSpec)
	r := purge(t, in, toShard1, all)
	r.refused("encrypted")
	require.Len(t, r.codes(), 1)
	r = purge(t, in, toShard1, all, encrypting(open))
	r.refused("would-be-plaintext")
	require.Len(t, r.codes(), 1)
	r = purge(t, in, toShard1, encrypting(ours)).written()
	r.requireEncrypted(ours, asOf(from, "shard-1"), "aesgcm:v1:b", string(ofShard1([]byte(plain))))
}
