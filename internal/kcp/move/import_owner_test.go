package move_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding/encryption"
	"github.com/etcdshift/etcdshift/finding"
	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/kcp"
	"github.com/etcdshift/etcdshift/internal/kcp/move"
	"github.com/etcdshift/etcdshift/internal/test/crypttest"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/internal/test/kcptest"
	"github.com/etcdshift/etcdshift/keys"
	"github.com/etcdshift/etcdshift/snapshot"
	"github.com/etcdshift/etcdshift/transform"
)

// recordedCache reads the recorded cache.
func recordedCache(t testing.TB) *kcp.File {
	t.Helper()
	s, err := snapshot.Open(context.Background(), kcptest.Recorded(t, kcptest.Cache), snapshot.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	f, err := kcp.Read(context.Background(), inspect.NewReader(s, nil))
	require.NoError(t, err)
	return f
}

// withTexts is a file in which texts of one record were replaced, pairs of old and new.
func withTexts(t testing.TB, path, key string, pairs ...string) string {
	t.Helper()
	return kcptest.Edit(t, path, func(client *clientv3.Client) {
		value := string(kcptest.Get(t, client, key))
		for n := 0; n < len(pairs); n += 2 {
			require.Contains(t, value, pairs[n])
			value = strings.Replace(value, pairs[n], pairs[n+1], 1)
		}
		kcptest.Put(t, client, key, []byte(value))
	})
}

func hasStep(steps []string, words ...string) bool {
	for _, step := range steps {
		found := true
		for _, w := range words {
			found = found && strings.Contains(step, w)
		}
		if found {
			return true
		}
	}
	return false
}

// purgedRoot is root without consumer, and the archive of that.
func purgedRoot(t testing.TB) (from, shard string) {
	t.Helper()
	root := kcptest.Recorded(t, kcptest.Root)
	from = extractOf(t, root, extraction{Name: kcptest.Consumer})
	shard = kcptest.Edit(t, root, func(client *clientv3.Client) {
		r, err := client.Get(context.Background(), "/registry/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
		require.NoError(t, err)
		for _, kv := range r.Kvs {
			if clusterOf(kv.Key) == kcptest.Consumer {
				kcptest.Delete(t, client, string(kv.Key))
			}
		}
	})
	return from, shard
}

// TestImportLeavesOwner: without --fix-owner nothing is changed, since kcp mends what names another
// shard; and a person is told what to look at.
func TestImportLeavesOwner(t *testing.T) {
	from := extractOf(t, kcptest.Recorded(t, kcptest.Root), extraction{Name: kcptest.Consumer})
	a := importInto(t, from, kcptest.Recorded(t, kcptest.Shard1), move.Import{Cache: recordedCache(t)}, transform.Options{}).written()
	require.Contains(t, a.value(kcptest.LogicalClusterKey(kcptest.Consumer)), `"core.kcp.io/shard":"root"`)
	require.Empty(t, a.report.Problems)
	steps := a.report.Steps
	require.True(t, hasStep(steps, "kcp purge 2y3qvnqz5ga11oc4 ORIGIN ORIGIN-OUT"), "%q", steps)
	require.True(t, hasStep(steps, "--from-shard root"), "%q", steps)
	require.True(t, hasStep(steps, "kcp verify "+from+" ORIGIN-OUT"), "%q", steps)
	require.True(t, hasStep(steps, `Workspace "consumer" in logical cluster "root"`, `lives on shard "shard-1"`), "%q", steps)
	require.True(t, hasStep(steps, "kubectl --server https://127.0.0.1:6443/clusters/root label --overwrite workspaces.tenancy.kcp.io consumer region=us-east-1"), "%q", steps)

	a = importInto(t, from, a.in, move.Import{}, transform.Options{}).written()
	require.True(t, hasStep(a.report.Steps, "kubectl --server https://FRONT-PROXY/clusters/root label", "region=REGION"), "%q", a.report.Steps)
}

// TestImportOwnerNotHealed: kcp takes a LogicalCluster that names the right shard for settled,
// whatever its Workspace says.
func TestImportOwnerNotHealed(t *testing.T) {
	from, shard := purgedRoot(t)
	t.Run("settled", func(t *testing.T) {
		a := importInto(t, from, shard, move.Import{}, transform.Options{}).written()
		require.Empty(t, a.report.Problems, "the Workspace says so too")
		require.False(t, hasStep(a.report.Steps, "Workspace"), "%q", a.report.Steps)
		require.False(t, hasStep(a.report.Steps, "kcp purge"), "%q", a.report.Steps)
		require.True(t, hasStep(a.report.Steps, `shard "root", which is where the archive was made`), "%q", a.report.Steps)
	})
	t.Run("Workspace in the file", func(t *testing.T) {
		other := withTexts(t, shard, kcptest.WorkspaceKey("consumer"), `"core.kcp.io/shard":"root"`, `"core.kcp.io/shard":"shard-1"`)
		a := importInto(t, from, other, move.Import{}, transform.Options{}).written()
		require.Equal(t, []string{"owner-not-healed"}, codes(a.report))
		require.Contains(t, a.report.Problems[0].Reason, `its Workspace "consumer" says shard "shard-1"`)
	})
	t.Run("Workspace elsewhere", func(t *testing.T) {
		a := importInto(t, from, kcptest.Recorded(t, kcptest.Shard1), move.Import{AsShard: "root"}, transform.Options{}).written()
		require.Equal(t, []string{"owner-not-healed"}, codes(a.report))
		require.Contains(t, a.report.Problems[0].Reason, "in neither file")
		require.True(t, hasStep(a.report.Steps, "annotate --overwrite workspaces.tenancy.kcp.io consumer core.kcp.io/shard=root internal.tenancy.kcp.io/shard=1pfxsevk"), "%q", a.report.Steps)
		require.False(t, hasStep(a.report.Steps, "kcp has it say"), "%q", a.report.Steps)
	})
}

// TestFixOwner: LogicalCluster and Workspace say at once where the logical cluster lives, and in
// which region; no other byte changes.
func TestFixOwner(t *testing.T) {
	from, shard := purgedRoot(t)
	shard = withTexts(t, shard, kcptest.WorkspaceKey("consumer"), `"core.kcp.io/shard":"root"`, `"core.kcp.io/shard":"shard-1"`, "1pfxsevk", "2e1tfbst", "us-east-2", "mars")
	for name, c := range map[string]struct{ hash, region string }{"root": {"1pfxsevk", "us-east-2"}, "shard-1": {"2e1tfbst", "us-east-1"}} {
		t.Run(name, func(t *testing.T) {
			a := importInto(t, from, shard, move.Import{FixOwner: true, AsShard: name}, transform.Options{}).written()
			require.Empty(t, a.report.Problems)
			require.Equal(t, transform.Changes{Created: 36, Updated: 1}, a.report.Changes)
			a.arrived(kcptest.WorkspaceKey("consumer"))

			recorded := arrival{t: t, out: kcptest.Recorded(t, kcptest.Root)}
			want := strings.NewReplacer(`"core.kcp.io/shard":"root"`, `"core.kcp.io/shard":"`+name+`"`, "1pfxsevk", c.hash, "us-east-2", c.region)
			for _, key := range []string{kcptest.WorkspaceKey("consumer"), kcptest.LogicalClusterKey(kcptest.Consumer)} {
				require.Equal(t, want.Replace(recorded.value(key)), a.value(key))
			}
			require.Equal(t, a.report.Input.Keys-1, a.report.Rest.Keys)
			require.False(t, hasStep(a.report.Steps, "Workspace"), "%q", a.report.Steps)
		})
	}
}

// TestFixOwnerOfChild: a parent that comes along has the Workspace of the child in the archive.
func TestFixOwnerOfChild(t *testing.T) {
	root := kcptest.Recorded(t, kcptest.Root)
	from := extractOf(t, root, extraction{Name: kcptest.Consumer, WithChildren: true})
	shard := kcptest.Edit(t, kcptest.Recorded(t, kcptest.Shard1), func(client *clientv3.Client) { // a shard that is the root of all, too
		value := arrival{t: t, out: root}.value(kcptest.WorkspaceKey("consumer"))
		kcptest.Put(t, client, kcptest.WorkspaceKey("consumer"), []byte(value))
		kcptest.Put(t, client, kcptest.LogicalClusterKey("root"), []byte(arrival{t: t, out: root}.value(kcptest.LogicalClusterKey("root"))))
	})
	a := importInto(t, from, shard, move.Import{FixOwner: true, Cache: recordedCache(t)}, transform.Options{}).written()
	require.Empty(t, a.report.Problems)
	workspace := strings.Replace(kcptest.WorkspaceKey("child"), "/root/", "/"+kcptest.Consumer+"/", 1)
	for _, key := range []string{workspace, kcptest.WorkspaceKey("consumer")} {
		require.Contains(t, a.value(key), `"core.kcp.io/shard":"shard-1"`)
		require.Contains(t, a.value(key), `"internal.tenancy.kcp.io/shard":"2e1tfbst"`)
		require.Contains(t, a.value(key), `"region":"us-east-1"`)
	}
	require.True(t, hasStep(a.report.Steps, "kcp purge "+kcptest.Consumer+" ORIGIN ORIGIN-OUT --with-children"), "%q", a.report.Steps)
	require.True(t, hasStep(a.report.Steps, "purge NAME CACHE CACHE-OUT --from-shard root --to-shard shard-1, for each NAME of 1n7wq48mavio4f0j, 2y3qvnqz5ga11oc4"), "%q", a.report.Steps)
	for _, name := range []string{kcptest.Consumer, kcptest.Child} {
		require.Contains(t, a.value(kcptest.LogicalClusterKey(name)), `"core.kcp.io/shard":"shard-1"`)
	}
	a.arrived(kcptest.WorkspaceKey("consumer"))
}

// TestImportOwnerElsewhere: a Workspace that is not there cannot be fixed, nor is another of its
// name the one.
func TestImportOwnerElsewhere(t *testing.T) {
	from, shard := purgedRoot(t)
	fix := move.Import{FixOwner: true, AsShard: "x"}
	for name, file := range map[string]string{
		"another file":    kcptest.Recorded(t, kcptest.Shard1),
		"another UID":     withTexts(t, shard, kcptest.WorkspaceKey("consumer"), "cca45fce-d305-4471-ab7a-4500afb71a0b", "cca45fce-d305-4471-ab7a-4500afb71a0c"),
		"another cluster": withTexts(t, shard, kcptest.WorkspaceKey("consumer"), `"cluster":"2y3qvnqz5ga11oc4"`, `"cluster":"2y3qvnqz5ga11oc5"`),
	} {
		t.Run(name, func(t *testing.T) {
			found := importInto(t, from, file, fix, transform.Options{Allow: finding.Allowable(move.ImportSpec.Codes)}).refused("owner-elsewhere")
			require.Equal(t, kcptest.LogicalClusterKey(kcptest.Consumer), found[0].Key)
		})
	}
}

// TestImportRegionUnknown: without the Shard object the label stays, and a person is told.
func TestImportRegionUnknown(t *testing.T) {
	from, shard := purgedRoot(t)
	a := importInto(t, from, shard, move.Import{FixOwner: true, AsShard: "moon"}, transform.Options{}).written()
	require.Equal(t, []string{"region-unknown"}, codes(a.report))
	require.Contains(t, a.value(kcptest.WorkspaceKey("consumer")), `"region":"us-east-2"`)
	require.Contains(t, a.value(kcptest.WorkspaceKey("consumer")), `"core.kcp.io/shard":"moon"`)
	require.True(t, hasStep(a.report.Steps, "region=REGION"), "%q", a.report.Steps)
}

// TestRegionUnlabelled: a shard without a region has none to tell; the label of a Workspace stays,
// if it has one.
func TestRegionUnlabelled(t *testing.T) {
	from, shard := purgedRoot(t)
	shard = withTexts(t, shard, "/registry/core.kcp.io/shards/884102f8452eda7c0798bf3ce74f7fe7fed14b736c1a04fcd7267dd6fb162fe4/root/shard-1", `"region":"us-east-1",`, "")
	fix := move.Import{FixOwner: true, AsShard: "shard-1"}
	a := importInto(t, from, shard, fix, transform.Options{}).written()
	require.Equal(t, []string{"region-unknown"}, codes(a.report))
	require.Contains(t, a.report.Problems[0].Reason, `shard "shard-1" has no label region`)
	require.Contains(t, a.value(kcptest.WorkspaceKey("consumer")), `"region":"us-east-2"`)

	shard = withTexts(t, shard, kcptest.WorkspaceKey("consumer"), `"region":"us-east-2",`, "")
	a = importInto(t, from, shard, fix, transform.Options{}).written()
	require.Empty(t, a.report.Problems)
	require.NotContains(t, a.value(kcptest.WorkspaceKey("consumer")), `"region":`)
}

// TestFixOwnerUnnamed: what is not known cannot be written.
func TestFixOwnerUnnamed(t *testing.T) {
	from := extractOf(t, kcptest.Recorded(t, kcptest.Root), extraction{Name: kcptest.Consumer})
	shard := withTexts(t, kcptest.Recorded(t, kcptest.Shard1), kcptest.LogicalClusterKey("system:shard"), `"core.kcp.io/shard":"shard-1"`, `"x":"shard-1"`)
	a := importInto(t, from, shard, move.Import{FixOwner: true}, transform.Options{})
	require.ErrorIs(t, a.err, move.ErrNoName)
}

// TestImportDropsMigrating: a logical cluster that a live migration had is served again.
func TestImportDropsMigrating(t *testing.T) {
	root := withTexts(t, kcptest.Recorded(t, kcptest.Root), kcptest.LogicalClusterKey(kcptest.Consumer), `"internal.tenancy.kcp.io/type"`, `"internal.kcp.io/migrating":"root:m","internal.tenancy.kcp.io/type"`)
	from := extractOf(t, root, extraction{Name: kcptest.Consumer, Allow: []string{"migrating"}})
	a := importInto(t, from, kcptest.Recorded(t, kcptest.Shard1), move.Import{}, transform.Options{}).written()
	recorded := arrival{t: t, out: kcptest.Recorded(t, kcptest.Root)}
	key := kcptest.LogicalClusterKey(kcptest.Consumer)
	require.Equal(t, recorded.value(key), a.value(key))

	_, shard := purgedRoot(t)
	a = importInto(t, from, shard, move.Import{FixOwner: true, AsShard: "shard-1"}, transform.Options{}).written()
	require.Equal(t, strings.Replace(recorded.value(key), `"core.kcp.io/shard":"root"`, `"core.kcp.io/shard":"shard-1"`, 1), a.value(key), "both edits")
}

// TestImportManyOwners: what is the same for hundreds of Workspaces is not said hundreds of times.
func TestImportManyOwners(t *testing.T) {
	from := extractOf(t, kcptest.Many(t, 30), extraction{Name: "root", WithChildren: true, Allow: finding.Allowable(move.ExtractSpec.Codes)})
	a := importInto(t, from, kcptest.Recorded(t, kcptest.Shard1), move.Import{}, transform.Options{Allow: finding.Allowable(move.ImportSpec.Codes)}).written()
	require.Len(t, a.report.Clusters, 35)
	require.Less(t, len(a.report.Steps), 30)
	require.Contains(t, a.report.Steps[len(a.report.Steps)-1], "other logical clusters that came in, 48 steps")
}

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
			a := importInto(t, from, shard, move.Import{Decrypter: theirs}, transform.Options{Encryption: ours}).written()
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
			a := importInto(t, from, shard, move.Import{Decrypter: both}, transform.Options{Encryption: both}).written()
			stored := a.requireEncrypted(both, secretOfConsumer, provider+":v1:o", plain)
			require.Equal(t, arrival{t: t, out: from}.value(secretOfConsumer), stored)

			rotated := cipher(t, provider+"=n", provider+"=o")
			a = importInto(t, from, shard, move.Import{Decrypter: both}, transform.Options{Encryption: rotated}).written()
			a.requireEncrypted(rotated, secretOfConsumer, provider+":v1:n", plain)
		})
	}
}

// TestImportEncryptedPrefix: under another key what is bound to its key is encrypted anew.
func TestImportEncryptedPrefix(t *testing.T) {
	both := cipher(t, "aesgcm=o")
	from, plain := encryptedArchive(t, both)
	shard := below(t, kcptest.Recorded(t, kcptest.Shard1), "/shard/one")
	a := importInto(t, from, shard, move.Import{Decrypter: both}, transform.Options{Encryption: both}).written()
	key := strings.Replace(secretOfConsumer, "/registry", "/shard/one", 1)
	stored := a.requireEncrypted(both, key, "aesgcm:v1:o", plain)
	require.NotEqual(t, arrival{t: t, out: from}.value(secretOfConsumer), stored)
}

// TestImportEncrypts: what the origin had in the clear is encrypted where the destination's servers
// do.
func TestImportEncrypts(t *testing.T) {
	ours := cipher(t, "secretbox=n", "identity")
	from := consumerArchive(t)
	a := importInto(t, from, kcptest.Recorded(t, kcptest.Shard1), move.Import{}, transform.Options{Encryption: ours}).written()
	a.requireEncrypted(ours, secretOfConsumer, "secretbox:v1:n", arrival{t: t, out: from}.value(secretOfConsumer))
}

// TestImportUndecryptable: what no key opens may be taken as it is, under the very same key only.
func TestImportUndecryptable(t *testing.T) {
	shard := kcptest.Recorded(t, kcptest.Shard1)
	from, _ := encryptedArchive(t, cipher(t, "aesgcm=o"))
	for name, decrypter := range map[string]*encryption.Transformers{"no configuration": nil, "another key": cipher(t, "aesgcm=x")} {
		t.Run(name, func(t *testing.T) {
			o := move.Import{}
			if decrypter != nil {
				o.Decrypter = decrypter
			}
			found := importInto(t, from, shard, o, transform.Options{}).refused("encrypted")
			require.Equal(t, secretOfConsumer, found[0].Key)
			require.Contains(t, found[0].Reason, "aesgcm:v1:o")

			a := importInto(t, from, shard, o, transform.Options{Allow: []string{"encrypted"}}).written()
			require.Equal(t, arrival{t: t, out: from}.value(secretOfConsumer), a.value(secretOfConsumer))
			left, _ := a.report.Errors()
			require.Equal(t, 1, left)

			found = importInto(t, from, below(t, shard, "/shard/one"), o, transform.Options{Allow: []string{"encrypted"}}).refused("encrypted")
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
			run.Allow = append(finding.Allowable(move.ImportSpec.Codes), "would-be-plaintext")
			a := importInto(t, from, kcptest.Recorded(t, kcptest.Shard1), move.Import{Decrypter: theirs}, run)
			found := a.refused("would-be-plaintext")
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
			run.Allow = append(finding.Allowable(move.ImportSpec.Codes), "would-be-plaintext")
			found := importInto(t, from, shard, move.Import{}, run).refused("would-be-plaintext")
			require.Len(t, found, 1)
			require.Equal(t, secretOfConsumer, found[0].Key)
			require.Contains(t, found[0].Reason, theirs)
		})
	}
	a := importInto(t, from, shard, move.Import{}, transform.Options{Encryption: ours}).written()
	a.requireEncrypted(ours, secretOfConsumer, "aescbc:v1:n", plain)
	a = importInto(t, from, shard, move.Import{}, transform.Options{Encryption: cipher(t, "identity", "aescbc=n")}).written()
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
	a := putBack(t, shard1, root, move.PutBack{Decrypter: theirs}, transform.Options{Encryption: ours}).written()
	a.requireEncrypted(ours, orphan, "aescbc:v1:n", string(plain))
	again := putBack(t, shard1, a.out, move.PutBack{Decrypter: theirs}, transform.Options{Encryption: ours})
	require.NoError(t, again.err)
	require.Equal(t, transform.Unchanged, again.report.Outcome, "the same value, encrypted otherwise")
	putBack(t, shard1, root, move.PutBack{}, transform.Options{Encryption: ours}).refused("encrypted")
	putBack(t, shard1, a.out, move.PutBack{}, transform.Options{Encryption: ours}).refused("key-exists")
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
	o := move.Import{Decrypter: all, AsShard: "shard-1"}
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
	a := importInto(t, consumerArchive(t), shard, move.Import{}, transform.Options{})
	found := a.refused("definition-differs")
	require.Equal(t, widgetsDefinition, found[0].Key)
	require.Contains(t, found[0].Reason, "cannot be decrypted")
	require.Len(t, a.refused("would-be-plaintext"), 4, "the shard encrypts definitions: those of the logical cluster's own")
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
