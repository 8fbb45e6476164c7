package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	oldKey = `- aescbc: {keys: [{name: old, secret: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=}]}`
	newKey = `- secretbox: {keys: [{name: new, secret: YWJjZGVmZ2hpamtsbW5vcGFiY2RlZmdoaWprbG1ub3A=}]}`
	clear  = `- identity: {}`
)

// encryption writes an EncryptionConfiguration for all resources.
func encryption(t testing.TB, providers ...string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "encryption.yaml")
	text := "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: " +
		"['*.*']\n  providers:\n  " +
		strings.Join(providers, "\n  ") + "\n"
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// TestEncrypted checks that encrypted records are migrated and encrypted under their new keys. A
// rewrap then moves every value to another provider, and a server with only that provider serves
// all of them.
func TestEncrypted(t *testing.T) {
	t.Parallel()
	config := encryption(t, oldKey, clear)
	path := encrypted(t, config)

	r := migrate(t, path, "--encryption-config", config)
	c := startCluster(t, r.restore(t), "--encryption-provider-config="+config)
	served := c.requireServed(t)
	r.requireUIDs(t, served, false)
	c.requireEncrypted(t, "/registry/projectcalico.org/", "k8s:enc:aescbc:v1:old:")
	path = c.store.save(t)
	c.stop()

	r = runMigration(t, "migrate storage-versions", path, "--rewrap", "--encryption-config",
		encryption(t, newKey, oldKey, clear))
	c = startCluster(t, r.restore(t), "--encryption-provider-config="+encryption(t, newKey))
	require.Len(t, c.requireServed(t), len(served))
	c.requireEncrypted(t, "/registry/projectcalico.org/", "k8s:enc:secretbox:v1:new:")
	c.requireEncrypted(t, "/registry/secrets/", "k8s:enc:secretbox:v1:new:")
	for _, kind := range c.kinds(t) {
		if !kind.listed {
			continue
		}
		// fails if any value of the kind is unreadable
		_, err := c.client(kind.GroupVersionResource, "").List(context.Background(), metav1.ListOptions{})
		require.NoError(t, err, "%s", kind.GroupVersionResource)
	}
	secret, err := c.client(secrets(), "default").Get(context.Background(), "probe", metav1.GetOptions{})
	require.NoError(t, err)
	value, _, _ := unstructured.NestedString(secret.Object, "data", "word")
	require.Equal(t, "aHVzaA==", value)
}

// encrypted returns a snapshot of the recorded cluster in which a server encrypted the Calico
// records and a new Secret; the rest is plaintext.
func encrypted(t testing.TB, config string) (snapshot string) {
	t.Helper()
	data := restoreAsIs(t, snapshotOf(t, "before"), "--bump-revision", "1000000000", "--mark-compacted")
	c := startCluster(t, data, "--encryption-provider-config="+config)
	ctx := context.Background()
	_, err := c.client(secrets(), "default").Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "probe"},
		"data": map[string]any{"word": "aHVzaA=="},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	crds, err := c.client(definitions(), "").List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	for _, d := range crds.Items {
		plural, group, _ := strings.Cut(d.GetName(), ".")
		if group != "crd.projectcalico.org" {
			continue
		}
		kind := schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural}
		list, err := c.client(kind, "").List(ctx, metav1.ListOptions{})
		require.NoError(t, err, plural)
		// an unchanged update is written if the encryption changes
		for i := range list.Items {
			obj := &list.Items[i]
			_, err := c.client(kind, obj.GetNamespace()).Update(ctx, obj, metav1.UpdateOptions{})
			require.NoError(t, err, "%s %s/%s", plural, obj.GetNamespace(), obj.GetName())
		}
	}
	c.requireEncrypted(t, "/registry/crd.projectcalico.org/", "k8s:enc:aescbc:v1:old:")
	snapshot = c.store.save(t)
	c.stop()
	return snapshot
}

// requireEncrypted requires that every value below a prefix begins with the same text.
func (c *cluster) requireEncrypted(t testing.TB, prefix, begins string) {
	t.Helper()
	n := 0
	for key, r := range c.store.records(t) {
		if strings.HasPrefix(key, prefix) {
			require.True(t, strings.HasPrefix(r.value, begins), "%s begins with %q", key,
				r.value[:min(len(r.value), 24)])
			n++
		}
	}
	require.Positive(t, n, prefix)
}

func secrets() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
}
