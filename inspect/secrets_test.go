package inspect_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/inspect"
	"github.com/etcdshift/etcdshift/internal/test/etcdtest"
	"github.com/etcdshift/etcdshift/snapshot"
)

// TestSecrets checks that values of Secrets are redacted in any text, of any revision and storage.
// Values common to other objects, and releases of Helm, are not redacted.
func TestSecrets(t *testing.T) {
	var script strings.Builder
	put := func(key, value string) {
		name := "x"
		if strings.HasPrefix(value, "correct-horse") || strings.HasPrefix(value, "payments2") {
			name = "db-password"
		}
		fmt.Fprintf(&script, "put %q %q\n", key,
			`{"apiVersion":"v1","kind":"Secret","data":{"`+name+`":"`+base64.StdEncoding.EncodeToString([]byte(value))+
				`"}}`)
	}
	hidden := []string{"Old!hunter2-MARK", "New!hunter2-MARK", "user:Part!hunter2-MARK", "Other!hunter2-MARK",
		"correct-horse-battery-staple", "payments2024",
		"https://hooks.example.com/in/3f9c2ab47d1e4c5f8a"}
	shown := []string{"postgres-primary-in-eu", "db.shop.example.com:5432", "https://git.example.com/shop/deployments",
		"administrator", "8080", "postgres:16", "application-admin-user", "2026-11-26T15:55:53Z",
		"Europe/Berlin", "v1.36.3+k3s1", "10.96.0.0/12", "fd00:10:96::1", "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
		"ops-team@acme.example",
		"arn:aws:iam::123456789012:role/backup", "s3://backups/etcd", "utf8mb4_unicode_ci", "en_US.UTF-8",
		"app=web,tier=frontend",
		"org.postgresql.Driver", "jdbc:postgresql://db.example.com:5432/shop",
		"Use this account for nightly backups only", "k3j9x2mq7w",
		"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----"}
	for _, value := range hidden[:3] {
		put("/registry/secrets/a/s", value)
	}
	put("/other/secrets/a/s", hidden[3])
	for i, value := range append(hidden[4:], shown...) {
		put(fmt.Sprintf("/registry/secrets/a/s%d", i), value)
	}
	fmt.Fprintf(&script, "put /registry/services/specs/a/%s x\n", shown[0])
	put("/registry/secrets/a/sh.helm.release.v1.web.v1", "Release!hunter2-MARK")
	s, err := snapshot.Open(t.Context(), etcdtest.Build(t, script.String()), snapshot.Config{})
	require.NoError(t, err)
	defer s.Close()
	for _, r := range []*inspect.Reader{inspect.NewReader(s, nil),
		inspect.NewReader(s, nil, "/registry").Below("/registry"), inspect.NewReader(s, nil).At(2)} {
		of, err := r.Secrets(t.Context())
		require.NoError(t, err)
		for _, text := range append(hidden, "Part!hunter2-MARK") {
			require.Equal(t, fmt.Sprintf("<redacted %d bytes>", len(text)+8), of.Text("say "+text+" now"))
		}
		for _, text := range append(shown, "Release!hunter2-MARK") {
			require.Equal(t, "say "+text+" now", of.Text("say "+text+" now"))
		}
		again, err := r.Secrets(t.Context())
		require.NoError(t, err)
		require.Same(t, of, again)
	}
}
