package storageversion_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding/encryption"
	"github.com/etcdshift/etcdshift/internal/storageversion"
	"github.com/etcdshift/etcdshift/internal/test/secrettest"
	"github.com/etcdshift/etcdshift/transform"
)

// configuration writes an EncryptionConfiguration with a provider for each kind, with keys, and
// returns the server's flag and the loaded configuration.
func configuration(t *testing.T, providers map[string]string, keys string) (flag string, by *encryption.Transformers) {
	t.Helper()
	var rules []string
	for crd, provider := range providers {
		rules = append(rules, crd+": "+provider+"="+keys)
	}
	return "--encryption-provider-config=" + secrettest.Write(t, rules...), secrettest.Load(t, rules...)
}

// TestServerEncryption checks that values encrypted by a server are migrated and encrypted anew,
// and a server with the same keys finds nothing to do; with --rewrap the second key replaces the
// first.
func TestServerEncryption(t *testing.T) {
	t.Parallel()
	all := shapes()[:3]
	const crds = "customresourcedefinitions.apiextensions.k8s.io"
	providers := map[string]string{all[0].crdName(): "aescbc", all[1].crdName(): "aesgcm",
		all[2].crdName(): "secretbox", crds: "aesgcm"}
	flag, first := configuration(t, providers, "ab")
	w := newWorld(t, all, false, flag)
	encryptedBy := func(path, key string) {
		t.Helper()
		stored := values(t, path)
		for _, k := range w.keys() {
			require.True(t, strings.HasPrefix(stored[k], "k8s:enc:"+providers[w.of[k].crdName()]+":v1:"+key+":"), k)
		}
		for _, s := range all {
			require.True(t, strings.HasPrefix(stored[crdDir+s.crdName()], "k8s:enc:"+providers[crds]+":v1:"+key+":"),
				s.plural)
		}
	}
	encryptedBy(w.before, "a")

	_, err := transform.Run(t.Context(), transform.Options{In: w.before, Out: filepath.Join(t.TempDir(), "refused.db"),
		Allow: []string{"pruned-field"}}, storageversion.New(storageversion.Options{}))
	require.ErrorIs(t, err, transform.ErrRefused, "without keys")

	run := transform.Options{Allow: []string{"pruned-field"}, Encryption: first}
	out, r := migrateWith(t, w.before, run, storageversion.Options{})
	encryptedBy(out, "a")
	n := 0
	for _, s := range all {
		require.Equal(t, []string{newName}, resource(t, r, s.crdName()).StoredVersions.After)
		n += resource(t, r, s.crdName()).Rewritten
	}
	require.Len(t, w.of, n)
	w.samePlaintext(t, out, first)
	c := restore(t, out, flag)
	w.listed(t, c)
	for _, key := range w.keys() {
		c.elides(t, w.of[key], w.names[key])
	}
	for _, s := range all {
		c.elidesCRD(t, s)
	}
	c.close()

	// The second key first, and then alone.
	_, second := configuration(t, providers, "ba")
	run.Encryption = second
	rotated, r := migrateWith(t, out, run, storageversion.Options{Rewrap: true})
	require.Equal(t, len(w.of)+len(all), r.Changes.Updated)
	encryptedBy(rotated, "b")
	unchanged, r := migrateWith(t, rotated, run, storageversion.Options{Rewrap: true})
	require.Equal(t, transform.Unchanged, r.Outcome)
	require.Equal(t, values(t, rotated), values(t, unchanged), "ciphertext too")
	flag, _ = configuration(t, providers, "b")
	c = restore(t, rotated, flag)
	defer c.close()
	w.listed(t, c)
	for _, key := range w.keys() {
		c.elides(t, w.of[key], w.names[key])
	}
	for _, s := range all {
		require.NoError(t, c.dropVersion(t, s.crdName(), oldName))
	}
	_, err = c.of(all[1], newName).Get(t.Context(), "full-put", metav1.GetOptions{})
	require.NoError(t, err)
}

// samePlaintext compares the decrypted values with the server's values of the same objects.
func (w *world) samePlaintext(t *testing.T, path string, keys *encryption.Transformers) {
	t.Helper()
	stored := values(t, path)
	for key, want := range w.settled {
		var plain [2]string
		for i, value := range []string{want, stored[key]} {
			decrypted, stale, err := keys.Decrypt(t.Context(), schema.ParseGroupResource(w.of[key].crdName()),
				[]byte(key), []byte(value))
			require.NoError(t, err)
			require.False(t, stale)
			plain[i] = without(t, string(decrypted), "managedFields")
		}
		require.Equal(t, plain[0], plain[1], key)
	}
}
