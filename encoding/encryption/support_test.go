package encryption

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	secrets = schema.GroupResource{Resource: "secrets"}
	widgets = schema.GroupResource{Group: "demo.example.com", Resource: "widgets"}
)

// secret returns a key of 32 bytes in base64: the letter 32 times.
func secret(letter string) string {
	return base64.StdEncoding.EncodeToString([]byte(strings.Repeat(letter, 32)))
}

// keyed returns a provider with keys, given as names and letters: "key1", "a".
func keyed(provider string, keys ...string) string {
	var list []string
	for i := 0; i < len(keys); i += 2 {
		list = append(list, fmt.Sprintf("{name: %q, secret: %s}", keys[i], secret(keys[i+1])))
	}
	return fmt.Sprintf("%s: {keys: [%s]}", provider, strings.Join(list, ", "))
}

func plugged(name, endpoint string) string {
	return fmt.Sprintf("kms: {apiVersion: v2, name: %s, endpoint: %q}", name, endpoint)
}

// rule returns one element of a configuration: "secrets, widgets.demo.example.com" and its
// providers.
func rule(resources string, providers ...string) string {
	text := fmt.Sprintf("- resources: [%s]\n  providers:\n", resources)
	for _, p := range providers {
		text += "  - " + p + "\n"
	}
	return text
}

// configuration writes an EncryptionConfiguration and returns its path.
func configuration(t testing.TB, rules ...string) string {
	t.Helper()
	return file(t, "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n"+
		strings.Join(rules, ""))
}

func file(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "encryption.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func load(t testing.TB, path string) *Transformers {
	t.Helper()
	loaded, err := Load(context.Background(), path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, loaded.Close()) })
	return loaded
}

// with loads a configuration for all resources.
func with(t testing.TB, providers ...string) *Transformers {
	t.Helper()
	return load(t, configuration(t, rule("'*.*'", providers...)))
}

func encrypt(t testing.TB, by *Transformers, gr schema.GroupResource, key, plain string) []byte {
	t.Helper()
	stored, err := by.Encrypt(context.Background(), gr, []byte(key), []byte(plain))
	require.NoError(t, err)
	return stored
}

// decrypts requires that stored decrypts to plain.
func decrypts(
	t testing.TB, by *Transformers, gr schema.GroupResource, key string, stored []byte, plain string, stale bool,
) {
	t.Helper()
	got, isStale, err := by.Decrypt(context.Background(), gr, []byte(key), stored)
	require.NoError(t, err)
	require.Equal(t, plain, string(got))
	require.Equal(t, stale, isStale, "stale")
}

func parse(resource string) schema.GroupResource { return schema.ParseGroupResource(resource) }

// pathOf returns a path that opens the file of f again.
func pathOf(f *os.File) string { return fmt.Sprintf("/dev/fd/%d", f.Fd()) }
