package encryption

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/etcdshift/etcdshift/internal/test/apitest"
)

// BenchmarkDecryptAndEncrypt processes 2 KB of JSON under 1000 etcd keys with each provider; kms
// uses one data key, like one run of a server.
func BenchmarkDecryptAndEncrypt(b *testing.B) {
	plugin := apitest.StartKMS(b)
	plain := []byte(fmt.Sprintf(`{"kind":"Widget","apiVersion":"demo.example.com/v1","spec":{"text":%q}}`,
		strings.Repeat("x", 1970)))
	var etcdKeys [1000][]byte
	for i := range etcdKeys {
		etcdKeys[i] = fmt.Appendf(nil, "%s%d", widgetDir, i)
	}
	for _, provider := range []string{
		"identity: {}", keyed("aescbc", "key1", "a"), keyed("aesgcm", "key1", "a"), keyed("secretbox", "key1", "a"),
		plugged("vault", plugin.Endpoint()),
	} {
		by := load(b, configuration(b, rule("widgets.demo.example.com", provider)))
		name, _, _ := strings.Cut(provider, ":")
		var stored [len(etcdKeys)][]byte
		for i, key := range etcdKeys {
			stored[i] = encrypt(b, by, widgets, string(key), string(plain))
		}
		b.Run("decrypt/"+name, func(b *testing.B) {
			b.SetBytes(int64(len(plain)))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				_, _, err := by.Decrypt(context.Background(), widgets, etcdKeys[i%len(etcdKeys)],
					stored[i%len(etcdKeys)])
				require.NoError(b, err)
			}
		})
		b.Run("encrypt/"+name, func(b *testing.B) {
			b.SetBytes(int64(len(plain)))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				_, err := by.Encrypt(context.Background(), widgets, etcdKeys[i%len(etcdKeys)], plain)
				require.NoError(b, err)
			}
		})
	}
}
