package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// createSecrets creates Secrets of each type validated by a server, and other objects with secrets,
// and returns the secrets.
func (c *cluster) createSecrets(t testing.TB) (markers []string) {
	t.Helper()
	marker := func() string {
		markers = append(markers, fmt.Sprintf("Marker%04dxyz%04d", len(markers), len(markers)))
		return markers[len(markers)-1]
	}
	encoded := func(text string) any { return base64.StdEncoding.EncodeToString([]byte(text)) }
	create := func(resource, group, version, kind, name string, fields map[string]any) {
		obj := &unstructured.Unstructured{Object: fields}
		obj.SetAPIVersion(schema.GroupVersion{Group: group, Version: version}.String())
		obj.SetKind(kind)
		obj.SetName(name)
		gvr := schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
		eventually(t, serveTimeout, name, func() error {
			_, err := c.client(gvr, "default").Create(context.Background(), obj, metav1.CreateOptions{})
			return err
		})
	}
	for kind, data := range map[string]map[string]any{
		"Opaque": {"a": encoded(marker()), "b": encoded("\xff\x00" + marker())},
		"kubernetes.io/tls": {"tls.crt": encoded(marker()),
			"tls.key": encoded("-----BEGIN PRIVATE KEY-----\n" + marker() + "\n-----END PRIVATE KEY-----\n")},
		"kubernetes.io/dockerconfigjson": {".dockerconfigjson": encoded(`{"auths":{"registry.example.com":{"auth":"` +
			marker() + `"}}}`)},
		"kubernetes.io/basic-auth":      {"username": encoded("me"), "password": encoded(marker())},
		"kubernetes.io/ssh-auth":        {"ssh-privatekey": encoded(marker())},
		"bootstrap.kubernetes.io/token": {"token-secret": encoded(marker())},
	} {
		create("secrets", "", "v1", "Secret", "of-"+strings.ToLower(filepath.Base(kind)),
			map[string]any{"type": kind, "data": data})
	}
	create("configmaps", "", "v1", "ConfigMap", "settings",
		map[string]any{"data": map[string]any{"app.yaml": "host: db\npassword: " + marker() + "\n"}})
	pod := map[string]any{"containers": []any{map[string]any{"name": "a", "image": "a",
		"env": []any{map[string]any{"name": "DB_PASSWORD", "value": marker()}}}}}
	create("deployments", "apps", "v1", "Deployment", "with-secret", map[string]any{"spec": map[string]any{
		"selector": map[string]any{"matchLabels": map[string]any{"a": "b"}},
		"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}, "spec": pod},
	}})
	return markers
}

// TestSanitized checks that a sanitized cluster contains no secret in any byte, passes a rehearsal,
// is served, and allows an update of each Secret.
func TestSanitized(t *testing.T) {
	t.Parallel()
	c := startCluster(t, filepath.Join(t.TempDir(), "empty"))
	c.createGizmos(t)
	markers := c.createSecrets(t)
	saved := c.store.save(t)
	c.stop()
	r := runMigration(t, "sanitize", saved, "--keep-names")
	before, err := os.ReadFile(saved)
	require.NoError(t, err)
	after, err := os.ReadFile(r.path)
	require.NoError(t, err)
	for _, marker := range markers {
		require.NotContains(t, string(after), marker)
	}
	require.True(t, bytes.Contains(before, []byte(markers[0])))
	requireRehearsed(t, r.path)
	require.Empty(t, r.Restore, "a sanitized file is not one to restore in production")
	c = startCluster(t, restoreAsIs(t, r.path, "--bump-revision 1000000000", "--mark-compacted"))
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	list, err := c.client(secrets, "").List(context.Background(), metav1.ListOptions{})
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(list.Items), 6)
	for _, secret := range list.Items {
		require.NoError(t, c.change(secrets, &secret), secret.GetName())
	}
	c.useEveryKind(t)
}
