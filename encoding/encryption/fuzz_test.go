package encryption

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/internal/test/apitest"
)

// FuzzDecrypt checks that Decrypt never panics, that no error quotes the value, and that Decrypt
// decrypts values of Encrypt.
func FuzzDecrypt(f *testing.F) {
	plugin := apitest.StartKMS(f)
	by := load(f, configuration(f, rule("'*.*'", keyed("aescbc", "key1", "a", "key1:b", "b"),
		keyed("aesgcm", "key1", "a"),
		keyed("secretbox", "key1", "a"), plugged("vault", plugin.Endpoint()), keyed("aescbc", "key2", "c"))))
	for prefix, provider := range map[string]string{
		"k8s:enc:aescbc:v1:key1:":    keyed("aescbc", "key1", "a"),
		"k8s:enc:aesgcm:v1:key1:":    keyed("aesgcm", "key1", "a"),
		"k8s:enc:secretbox:v1:key1:": keyed("secretbox", "key1", "a"),
		"k8s:enc:kms:v2:vault:":      plugged("vault", plugin.Endpoint()),
	} {
		encrypter := load(f, configuration(f, rule("secrets", provider)))
		stored := encrypt(f, encrypter, secrets, here, `{"kind":"Secret"}`)
		f.Add(stored, here)
		f.Add(stored, there)
		f.Add(stored[:len(stored)-1], here)
		f.Add([]byte(prefix), here)
		f.Add([]byte(prefix+strings.Repeat("\x00", 16)), here)
		f.Add([]byte(prefix+strings.Repeat("\xff", 64)), here)
	}
	f.Add([]byte("k8s:enc:kms:v2:vault:\x0a\x01a\x12\x01b\x1a\x01c\x28\x01"), here)
	f.Add([]byte("k8s:enc:aescbc:v1:key1:b:0123456789abcdef"), here)
	f.Add([]byte("{}"), here)
	f.Fuzz(func(t *testing.T, stored []byte, key string) {
		before := bytes.Clone(stored)
		described, encrypted := describe(stored)
		plain, _, err := by.Decrypt(context.Background(), secrets, []byte(key), stored)
		require.Equal(t, before, stored)
		switch {
		case !encrypted:
			require.NoError(t, err)
			require.Equal(t, stored, plain)
			if key != "" {
				decrypts(t, by, secrets, key, encrypt(t, by, secrets, key, `{"a":1}`), `{"a":1}`, false)
			}
		case err != nil:
			require.Nil(t, plain)
			if key != "" {
				require.ErrorIs(t, err, encoding.ErrEncrypted)
				require.ErrorContains(t, err, "encrypted by "+described.String())
			}
		}
	})
}

// FuzzConfig checks that a configuration without KMS plugins loads if and only if k8s.io/apiserver
// reads it. No error quotes a key (KEY in the text), and no error grows with the file.
func FuzzConfig(f *testing.F) {
	const head = "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n"
	key := secret("k")
	one := func(provider string) string { return provider + ": {keys: [{name: a, secret: KEY}]}" }
	for _, text := range []string{
		head + rule("secrets", one("aescbc"), one("aesgcm"), one("secretbox"), "identity: {}"),
		head + rule("'*.apps', configmaps", "identity: {}") + rule("'*.*'", one("secretbox")),
		head + rule("secrets", "{}"), head + rule("KEY", "KEY"), head + "KEY", "KEY: [",
		"kind: EncryptionConfig\napiVersion: v1\nresources:\n" + rule("secrets", one("aescbc")),
		`{"kind":"EncryptionConfiguration","apiVersion":"apiserver.config.k8s.io/v1",` +
			`"resources":[{"resources":["secrets"],"providers":[{"aescbc":{"keys":[{"name":"a","secret":"KEY"}]}}]}]}`,
	} {
		f.Add(text)
	}
	path := filepath.Join(f.TempDir(), "encryption.yaml")
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ReplaceAll(text, "KEY", key)
		_, err := parseConfig([]byte(text))
		if err != nil {
			require.NotContains(t, err.Error(), key[:16])
			require.Less(t, len(err.Error()), 1000+20*len(text))
		}
		if strings.Contains(strings.ToLower(text), "kms") { // a KMS plugin would be called, and v1 is refused here
			return
		}
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		_, peer := encryptionconfig.LoadEncryptionConfig(ctx, path, false, serverID)
		require.Equal(t, peer == nil, err == nil, "%v beside %v", err, peer)
	})
}
