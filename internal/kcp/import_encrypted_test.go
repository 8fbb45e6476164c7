package kcp_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding/encryption"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/internal/kcp/carry"
	"github.com/etcdshift/etcdshift/internal/test/crypttest"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/transform"
)

// cipher encrypts Secrets by the first of providers: see [crypttest.Write].
func cipher(t testing.TB, providers ...string) *encryption.Transformers {
	return crypttest.Load(t, "secrets: "+strings.Join(providers, " "))
}

func secretType() apischema.GroupResource { return apischema.GroupResource{Resource: "secrets"} }

const secretOfConsumer = "/registry/core/secrets/" + kcptest.Consumer + "/default/sec"

// encryptedArchive is the archive of consumer whose one Secret is encrypted, and what that is in
// the clear.
func encryptedArchive(t testing.TB, by *encryption.Transformers) (from, plain string) {
	t.Helper()
	root := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Root), func(client *clientv3.Client) {
		value := kcptest.Get(t, client, secretOfConsumer)
		plain = string(value)
		encrypted, err := by.Encrypt(context.Background(), secretType(), []byte(secretOfConsumer), value)
		require.NoError(t, err)
		kcptest.Put(t, client, secretOfConsumer, encrypted)
	})
	return extractOf(t, root, extraction{Name: kcptest.Consumer}), plain
}

// requireEncrypted requires that the output has the Secret under a key, encrypted so that its
// servers read it and would not write it anew. It returns the stored bytes.
func (a arrival) requireEncrypted(with *encryption.Transformers, key, by, plain string) string {
	a.t.Helper()
	stored := a.value(key)
	require.True(a.t, strings.HasPrefix(stored, "k8s:enc:"+by+":"), "%.30q", stored)
	value, stale, err := with.Decrypt(context.Background(), secretType(), []byte(key), []byte(stored))
	require.NoError(a.t, err)
	require.False(a.t, stale)
	require.Equal(a.t, plain, string(value))
	return stored
}

// TestImportEncrypted: what the origin encrypted with its key is encrypted with the destination's,
// whatever the provider.
func TestImportEncrypted(t *testing.T) {
	shard := kcptest.Recorded(t, kcptest.Shard1)
	for _, provider := range []string{"aescbc", "aesgcm", "secretbox"} {
		t.Run(provider, func(t *testing.T) {
			theirs, ours := cipher(t, provider+"=o"), cipher(t, provider+"=n", "identity")
			from, plain := encryptedArchive(t, theirs)
			a := importInto(t, from, shard, carry.Import{Decrypter: theirs}, transform.Options{Encryption: ours}).written()
			require.Empty(t, a.report.Problems)
			a.requireEncrypted(ours, secretOfConsumer, provider+":v1:n", plain)
			came, _ := a.arrived()
			require.Len(t, came, 36)
		})
	}
}

// TestImportKeepsCiphertext: where the destination's servers read the very bytes and would write no
// others, those stay.
func TestImportKeepsCiphertext(t *testing.T) {
	shard := kcptest.Recorded(t, kcptest.Shard1)
	for _, provider := range []string{"aescbc", "aesgcm", "secretbox"} {
		t.Run(provider, func(t *testing.T) {
			both := cipher(t, provider+"=o")
			from, plain := encryptedArchive(t, both)
			a := importInto(t, from, shard, carry.Import{Decrypter: both}, transform.Options{Encryption: both}).written()
			stored := a.requireEncrypted(both, secretOfConsumer, provider+":v1:o", plain)
			require.Equal(t, arrival{t: t, out: from}.value(secretOfConsumer), stored)

			rotated := cipher(t, provider+"=n", provider+"=o")
			a = importInto(t, from, shard, carry.Import{Decrypter: both}, transform.Options{Encryption: rotated}).written()
			a.requireEncrypted(rotated, secretOfConsumer, provider+":v1:n", plain)
		})
	}
}

// TestImportEncryptedPrefix: under another key what is bound to its key is encrypted anew.
func TestImportEncryptedPrefix(t *testing.T) {
	both := cipher(t, "aesgcm=o")
	from, plain := encryptedArchive(t, both)
	shard := below(t, kcptest.Recorded(t, kcptest.Shard1), "/shard/one")
	a := importInto(t, from, shard, carry.Import{Decrypter: both}, transform.Options{Encryption: both}).written()
	key := strings.Replace(secretOfConsumer, "/registry", "/shard/one", 1)
	stored := a.requireEncrypted(both, key, "aesgcm:v1:o", plain)
	require.NotEqual(t, arrival{t: t, out: from}.value(secretOfConsumer), stored)
}

// TestImportEncrypts: what the origin had in the clear is encrypted where the destination's servers
// do.
func TestImportEncrypts(t *testing.T) {
	ours := cipher(t, "secretbox=n", "identity")
	from := consumerArchive(t)
	a := importInto(t, from, kcptest.Recorded(t, kcptest.Shard1), carry.Import{}, transform.Options{Encryption: ours}).written()
	a.requireEncrypted(ours, secretOfConsumer, "secretbox:v1:n", arrival{t: t, out: from}.value(secretOfConsumer))
}

// TestImportUndecryptable: what no key opens may be taken as it is, under the very same key only.
func TestImportUndecryptable(t *testing.T) {
	shard := kcptest.Recorded(t, kcptest.Shard1)
	from, _ := encryptedArchive(t, cipher(t, "aesgcm=o"))
	for name, decrypter := range map[string]*encryption.Transformers{"no configuration": nil, "another key": cipher(t, "aesgcm=x")} {
		t.Run(name, func(t *testing.T) {
			o := carry.Import{}
			if decrypter != nil {
				o.Decrypter = decrypter
			}
			found := importInto(t, from, shard, o, transform.Options{}).refused(codeEncrypted)
			require.Equal(t, secretOfConsumer, found[0].Key)
			require.Contains(t, found[0].Reason, "aesgcm:v1:o")

			a := importInto(t, from, shard, o, transform.Options{Allow: []string{codeEncrypted}}).written()
			require.Equal(t, arrival{t: t, out: from}.value(secretOfConsumer), a.value(secretOfConsumer))
			left, _ := a.report.Errors()
			require.Equal(t, 1, left)

			found = importInto(t, from, below(t, shard, "/shard/one"), o, transform.Options{Allow: []string{codeEncrypted}}).refused(codeEncrypted)
			require.Contains(t, found[0].Reason, "under another key")
		})
	}
}

// TestImportWouldBePlaintext: what was encrypted is never written in the clear, whatever is
// allowed.
func TestImportWouldBePlaintext(t *testing.T) {
	theirs := cipher(t, "aescbc=o")
	from, plain := encryptedArchive(t, theirs)
	for name, run := range map[string]transform.Options{
		"no configuration": {}, "identity first": {Encryption: cipher(t, "identity", "aescbc=o")},
	} {
		t.Run(name, func(t *testing.T) {
			run.Allow = append(finding.Allowable(carry.Spec.Codes), codeWouldBePlaintext)
			a := importInto(t, from, kcptest.Recorded(t, kcptest.Shard1), carry.Import{Decrypter: theirs}, run)
			found := a.refused(codeWouldBePlaintext)
			require.Equal(t, secretOfConsumer, found[0].Key)
			require.NotContains(t, found[0].Reason, plain)
		})
	}
}

// TestImportPlainIntoEncrypted: what was in the clear is not written in the clear where the shard's
// servers encrypt it, as far as the shard tells; with their configuration it is as that says.
func TestImportPlainIntoEncrypted(t *testing.T) {
	theirs := "/registry/core/secrets/" + kcptest.Consumer1 + "/default/sec"
	ours, from := cipher(t, "aescbc=n", "identity"), consumerArchive(t)
	plain := arrival{t: t, out: from}.value(secretOfConsumer)
	encrypted, err := ours.Encrypt(t.Context(), secretType(), []byte(theirs), []byte(plain))
	require.NoError(t, err)
	shard := rebuilt(t, kcptest.Recorded(t, kcptest.Shard1), with(theirs, string(encrypted)), nil, nil)
	for name, run := range map[string]transform.Options{"no configuration": {}, "not theirs": {Encryption: cipher(t, "identity", "aescbc=x")}} {
		t.Run(name, func(t *testing.T) {
			run.Allow = append(finding.Allowable(carry.Spec.Codes), codeWouldBePlaintext)
			found := importInto(t, from, shard, carry.Import{}, run).refused(codeWouldBePlaintext)
			require.Len(t, found, 1)
			require.Equal(t, secretOfConsumer, found[0].Key)
			require.Contains(t, found[0].Reason, theirs)
		})
	}
	a := importInto(t, from, shard, carry.Import{}, transform.Options{Encryption: ours}).written()
	a.requireEncrypted(ours, secretOfConsumer, "aescbc:v1:n", plain)
	a = importInto(t, from, shard, carry.Import{}, transform.Options{Encryption: cipher(t, "identity", "aescbc=n")}).written()
	require.Equal(t, plain, a.value(secretOfConsumer), "their servers encrypt no more")
}

// TestPutBackEncrypted: the rules are those of an import.
func TestPutBackEncrypted(t *testing.T) {
	root, shard1 := kcptest.LiveMigrated(t)
	theirs, ours := cipher(t, "aesgcm=o"), cipher(t, "aescbc=n", "identity")
	orphan := "/registry/core/secrets/" + kcptest.Other + "/" + kcptest.Consumer + "/s"
	plain := []byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"` + kcptest.Consumer + `"},"data":{"a":"c3M="}}`)
	shard1 = kcptest.Edit(t, shard1, func(client *clientv3.Client) {
		encrypted, err := theirs.Encrypt(context.Background(), secretType(), []byte(orphan), plain)
		require.NoError(t, err)
		kcptest.Put(t, client, orphan, encrypted)
	})
	a := putBack(t, shard1, root, carry.PutBack{Decrypter: theirs}, transform.Options{Encryption: ours}).written()
	a.requireEncrypted(ours, orphan, "aescbc:v1:n", string(plain))
	again := putBack(t, shard1, a.out, carry.PutBack{Decrypter: theirs}, transform.Options{Encryption: ours})
	require.NoError(t, again.err)
	require.Equal(t, transform.Unchanged, again.report.Outcome, "the same value, encrypted otherwise")
	putBack(t, shard1, root, carry.PutBack{}, transform.Options{Encryption: ours}).refused(codeEncrypted)
	putBack(t, shard1, a.out, carry.PutBack{}, transform.Options{Encryption: ours}).refused(codeKeyExists)
}

// TestImportEveryValueEncrypted: a shard that encrypts all it can is read, and written, all the
// same.
func TestImportEveryValueEncrypted(t *testing.T) {
	all := crypttest.Load(t, "*.*: aesgcm=k")
	root := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Root), func(client *clientv3.Client) { encryptAll(t, client, all) })
	from := extractOf(t, root, extraction{Name: kcptest.Consumer, Decrypter: all})
	shard := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Shard1), func(client *clientv3.Client) {
		encryptAll(t, client, all)
		kcptest.Delete(t, client, widgetsDefinition)
	})
	o := carry.Import{Decrypter: all, AsShard: "shard-1"}
	a := importInto(t, from, shard, o, transform.Options{Encryption: all}).written()
	require.Empty(t, a.report.Problems)
	came, _ := a.arrived()
	require.Len(t, came, 37)
	was := map[string]etcdtest.KV{}
	archived, _ := kcptest.Dump(t, from)
	for _, kv := range archived {
		was[string(kv.Key)] = kv
	}
	for _, kv := range came {
		require.Equal(t, string(was[string(kv.Key)].Value), string(kv.Value), "the very bytes: nothing had to change")
	}
}

// TestImportDefinitionUndecryptable: an undecryptable definition of the shard cannot be compared,
// and stays.
func TestImportDefinitionUndecryptable(t *testing.T) {
	shard := rebuilt(t, kcptest.Recorded(t, kcptest.Shard1), with(widgetsDefinition, "k8s:enc:aescbc:v1:k:0123456789abcdef0123456789abcdef"), nil, nil)
	a := importInto(t, consumerArchive(t), shard, carry.Import{}, transform.Options{})
	found := a.refused(codeDefinitionDiffers)
	require.Equal(t, widgetsDefinition, found[0].Key)
	require.Contains(t, found[0].Reason, "cannot be decrypted")
	require.Len(t, a.refused(codeWouldBePlaintext), 4, "the shard encrypts definitions: those of the logical cluster's own")
}

// encryptAll encrypts whatever a server would.
func encryptAll(t testing.TB, client *clientv3.Client, by *encryption.Transformers) {
	t.Helper()
	r, err := client.Get(context.Background(), "/registry/", clientv3.WithPrefix())
	require.NoError(t, err)
	for _, kv := range r.Kvs {
		k, err := keys.KCPShard{Prefix: "/registry"}.Parse(kv.Key)
		require.NoError(t, err)
		encrypted, err := by.Encrypt(context.Background(), k.Resource, kv.Key, kv.Value)
		require.NoError(t, err)
		kcptest.Put(t, client, string(kv.Key), encrypted, clientv3.WithLease(clientv3.LeaseID(kv.Lease)))
	}
}
