// Package secrettest hides and finds values for tests: it encrypts values at rest, like an API
// server with an EncryptionConfiguration, and unpacks texts, independently of internal/redact.
package secrettest

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding/encryption"
)

// Write writes an EncryptionConfiguration with rules such as "secrets,pods: aescbc=ab identity":
// resources, and providers in order, each with keys named after the repeated letter.
func Write(t testing.TB, rules ...string) (path string) {
	t.Helper()
	text := "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n"
	for _, rule := range rules {
		resources, providers, _ := strings.Cut(rule, ": ")
		text += "- resources: ['" + strings.ReplaceAll(resources, ",", "','") + "']\n  providers:\n"
		for _, word := range strings.Fields(providers) {
			provider, letters, keyed := strings.Cut(word, "=")
			if !keyed {
				text += "  - " + provider + ": {}\n"
				continue
			}
			text += "  - " + provider + ": {keys: ["
			for _, letter := range letters {
				secret := base64.StdEncoding.EncodeToString([]byte(strings.Repeat(string(letter), 32)))
				text += fmt.Sprintf("{name: '%c', secret: %s},", letter, secret)
			}
			text += "]}\n"
		}
	}
	path = filepath.Join(t.TempDir(), "encryption.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// Load loads the configuration written by [Write].
func Load(t testing.TB, rules ...string) *encryption.Transformers {
	t.Helper()
	loaded, err := encryption.Load(t.Context(), Write(t, rules...))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, loaded.Close()) })
	return loaded
}

// Encrypt returns a value as stored under a key.
func Encrypt(t testing.TB, by *encryption.Transformers, resource, key, plain string) string {
	t.Helper()
	stored, err := by.Encrypt(t.Context(), schema.ParseGroupResource(resource), []byte(key), []byte(plain))
	require.NoError(t, err)
	return string(stored)
}
