package encryption

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/internal/test/kmstest"
)

// No value makes Decrypt panic: it returns plaintext or an error that quotes nothing. It decrypts
// values of Encrypt.
func FuzzDecrypt(f *testing.F) {
	plugin := kmstest.Start(f)
	by := load(f, configuration(f, rule("'*.*'", keyed("aescbc", "key1", "a", "key1:b", "b"), keyed("aesgcm", "key1", "a"),
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
