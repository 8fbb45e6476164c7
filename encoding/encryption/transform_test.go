package encryption

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/etcdshift/etcdshift/encoding"
	"github.com/etcdshift/etcdshift/internal/test/apitest"
)

const (
	here  = "/registry/secrets/default/a"
	there = "/kubernetes.io/secrets/default/a"
	text  = `{"kind":"Secret","apiVersion":"v1","data":{"password":"aHVudGVyMg=="}}`
)

// providers returns one provider of each kind, by the prefix of its values.
func providers(t *testing.T) map[string]string {
	return map[string]string{
		"k8s:enc:aescbc:v1:key1:":    keyed("aescbc", "key1", "a"),
		"k8s:enc:aesgcm:v1:key1:":    keyed("aesgcm", "key1", "a"),
		"k8s:enc:secretbox:v1:key1:": keyed("secretbox", "key1", "a"),
		"k8s:enc:kms:v2:vault:":      plugged("vault", apitest.StartKMS(t).Endpoint()),
	}
}

// refused requires that a value is undecryptable for a reason, and that the error quotes only its
// prefix.
func refused(t *testing.T, by *Transformers, gr schema.GroupResource, key string, stored []byte, reasons ...string) {
	t.Helper()
	plain, stale, err := by.Decrypt(context.Background(), gr, []byte(key), stored)
	require.ErrorIs(t, err, encoding.ErrEncrypted)
	require.Nil(t, plain)
	require.False(t, stale)
	for _, reason := range reasons {
		require.ErrorContains(t, err, reason)
	}
	require.Less(t, len(err.Error()), 400)
	for _, r := range err.Error() {
		require.True(t, ' ' <= r && r <= '~', "%q", err)
	}
}

func TestPlaintextStaysTheSameSlice(t *testing.T) {
	for name, tc := range map[string]struct {
		by    *Transformers
		stale bool
	}{
		"no configuration":    {nil, false},
		"identity first":      {with(t, "identity: {}", keyed("aescbc", "a", "a")), false},
		"identity last":       {with(t, keyed("aescbc", "a", "a"), "identity: {}"), true},
		"no identity":         {with(t, keyed("aesgcm", "a", "a")), true},
		"no rule for secrets": {load(t, configuration(t, rule("configmaps", keyed("aescbc", "a", "a")))), false},
	} {
		for _, stored := range [][]byte{[]byte(text), []byte("k8s\x00\x0a"), []byte("k8s:enc"), {}, nil,
			{0xd9, 0xd9, 0xf7}} {
			plain, stale, err := tc.by.Decrypt(context.Background(), secrets, []byte(here), stored)
			require.NoError(t, err, name)
			require.Equal(t, stored, plain, name)
			require.Equal(t, tc.stale, stale, name)
			require.Equal(t, tc.stale, tc.by.Encrypts(secrets), name)
			if len(stored) > 0 {
				require.Same(t, &stored[0], &plain[0], name)
			}
		}
		stored, err := tc.by.Encrypt(context.Background(), secrets, []byte(here), []byte(text))
		require.NoError(t, err, name)
		require.Equal(t, tc.stale, encoding.Detect(stored) == encoding.FormatEncrypted, name)
	}
}

// A value decrypts under its own etcd key. aesgcm and kms reject it under another key.
func TestEncryptThenDecrypt(t *testing.T) {
	for prefix, provider := range providers(t) {
		by := with(t, provider)
		stored := encrypt(t, by, secrets, here, text)
		require.True(t, strings.HasPrefix(string(stored), prefix))
		require.NotContains(t, string(stored), "password")
		decrypts(t, by, secrets, here, stored, text, false)
		decrypts(t, by, secrets, there, encrypt(t, by, secrets, there, text), text, false)

		named := strings.TrimSuffix(strings.TrimPrefix(prefix, "k8s:enc:"), ":")
		if named == "aesgcm:v1:key1" || named == "kms:v2:vault" {
			refused(t, by, secrets, there, stored, "value is encrypted by "+named+": ", "does not decrypt it",
				"copied from another etcd key")
		} else {
			decrypts(t, by, secrets, there, stored, text, false)
		}
		_, err := by.Encrypt(context.Background(), secrets, []byte(there), stored)
		require.ErrorIs(t, err, encoding.ErrEncrypted)
		require.ErrorContains(t, err, "by "+named+": it cannot be encrypted again")
		_, err = by.Encrypt(context.Background(), secrets, nil, []byte(text))
		require.ErrorContains(t, err, "no etcd key")
		_, _, err = by.Decrypt(context.Background(), secrets, nil, stored)
		require.ErrorContains(t, err, "no etcd key")
		if named != "aescbc:v1:key1" { // aescbc cannot distinguish an empty value from a wrong key
			decrypts(t, by, secrets, here, encrypt(t, by, secrets, here, ""), "", false)
		}
	}
}

func TestUndecryptableIsExplainedByName(t *testing.T) {
	for prefix, provider := range providers(t) {
		stored := encrypt(t, with(t, provider), secrets, here, text)
		named := strings.TrimSuffix(strings.TrimPrefix(prefix, "k8s:enc:"), ":")
		name, _, _ := strings.Cut(named, ":")

		refused(t, nil, secrets, here, stored, named, "no encryption configuration is given")
		refused(t, with(t, "identity: {}"), secrets, here, stored, named,
			"no provider "+named[:len(name)+3]+" for secrets")
		refused(t, load(t, configuration(t, rule("configmaps", provider))), secrets, here, stored, named,
			"no rule for secrets")
		if name != kms {
			other := with(t, keyed(name, "key2", "a"))
			refused(t, other, secrets, here, stored, named, "no key of that name for secrets")
			refused(t, with(t, keyed(name, "key1", "b")), secrets, here, stored, named, "another key of that name")
			refused(t, with(t, keyed(name, "key1", "b", "key2", "a")), secrets, here, stored, named,
				"another key of that name")
			both := with(t, keyed(name, "key1", "b"), keyed(name, "key1", "a"))
			// One aescbc value in 256 looks well padded under a wrong key too: a server then takes
			// the noise for the object.
			for range 20 {
				if _, _, err := both.Decrypt(context.Background(), secrets, []byte(here), stored); err == nil ||
					name != "aescbc" {
					break
				}
				stored = encrypt(t, with(t, provider), secrets, here, text)
			}
			decrypts(t, both, secrets, here, stored, text, true)
		} else {
			plugin := apitest.StartKMS(t)
			refused(t, with(t, plugged("other", plugin.Endpoint())), secrets, here, stored, named,
				"no KMS provider of that name")
			refused(t, with(t, plugged("vault", plugin.Endpoint())), secrets, here, stored, named,
				"the KMS plugin does not decrypt it")
		}
	}
	by := with(t, keyed("aescbc", "key1", "a"))
	refused(t, by, secrets, here, []byte("k8s:enc:rot13:v7:key1:abc"),
		"by rot13:v7:key1: the configuration has no provider rot13:v7 for secrets")
	refused(t, by, secrets, here, []byte("k8s:enc:"), "by an unnamed provider: it is cut off")
	refused(t, nil, secrets, here, []byte("k8s:enc:\x01\x02:\xff:"),
		"by an unnamed provider: no encryption configuration")
	refused(t, by, schema.GroupResource{Resource: "masterleases"}, here, encrypt(t, by, secrets, here, text),
		"an API server does not encrypt masterleases")
}

func TestTruncatedAtEveryLength(t *testing.T) {
	for prefix, provider := range providers(t) {
		by := with(t, provider)
		stored := encrypt(t, by, secrets, here, text)
		for n := len("k8s:enc:"); n < len(stored); n++ {
			refused(t, by, secrets, here, stored[:n])
		}
		refused(t, by, secrets, here, stored[:len(prefix)], "it is cut off: 0 bytes after the key's name")
		refused(t, by, secrets, here, stored[:len(prefix)-2], "within the key's name")
		refused(t, by, secrets, here, stored[:len("k8s:enc:ae")], "within the provider's name")
	}
	// The library panics on one block after the key's name.
	refused(t, with(t, keyed("aescbc", "key1", "a")), secrets, here, []byte("k8s:enc:aescbc:v1:key1:0123456789abcdef"),
		"16 bytes after the key's name")
}

// A wrong key of aescbc decrypts one value in 256 to noise, which is an error too.
func TestNoiseIsRefused(t *testing.T) {
	wrong := with(t, keyed("aescbc", "key1", "b"))
	by := with(t, keyed("aescbc", "key1", "a"))
	noise := 0
	for range 4000 {
		stored := encrypt(t, by, secrets, here, text)
		library := wrong.library.TransformerForResource(secrets)
		if plain, _, err := library.TransformFromStorage(context.Background(), stored,
			bound([]byte(here))); err == nil {
			noise++
			require.NotEqual(t, text, string(plain))
		}
		refused(t, wrong, secrets, here, stored, "by aescbc:v1:key1: the key does not decrypt it")
	}
	require.Positive(t, noise)
	for _, object := range []string{"k8s\x00\x0a\x04", "\xd9\xd9\xf7\xa0", "{}\n", " {}"} {
		decrypts(t, by, secrets, here, encrypt(t, by, secrets, here, object), object, false)
	}
}

func TestStaleAgreesWithTheServer(t *testing.T) {
	old := with(t, keyed("aescbc", "key1", "a"))
	stored := encrypt(t, old, secrets, here, text)
	decrypts(t, old, secrets, here, stored, text, false)
	decrypts(t, with(t, keyed("aescbc", "key1", "a", "key2", "b")), secrets, here, stored, text, false)
	decrypts(t, with(t, keyed("aescbc", "key2", "b", "key1", "a")), secrets, here, stored, text, true)
	decrypts(t, with(t, keyed("aescbc", "key2", "b"), keyed("aescbc", "key1", "a")), secrets, here, stored, text, true)
	decrypts(t, with(t, keyed("aesgcm", "key1", "a"), keyed("aescbc", "key1", "a")), secrets, here, stored, text, true)
	decrypts(t, with(t, "identity: {}", keyed("aescbc", "key1", "a")), secrets, here, stored, text, true)
	decrypts(t, with(t, keyed("aescbc", "key1", "a"), "identity: {}"), secrets, here, stored, text, false)
	require.False(t, with(t, "identity: {}", keyed("aescbc", "key1", "a")).Encrypts(secrets))
}

// Key names with a colon, and key names with a common prefix, are distinguished.
func TestKeyNamesWithColons(t *testing.T) {
	by := with(t, keyed("aesgcm", "a", "a", "a:b", "b", "c d", "c"))
	for _, name := range []string{"a", "a:b", "c d"} {
		letter := map[string]string{"a": "a", "a:b": "b", "c d": "c"}[name]
		stored := encrypt(t, with(t, keyed("aesgcm", name, letter)), secrets, here, text)
		decrypts(t, by, secrets, here, stored, text, name != "a")
		refused(t, by, secrets, there, stored, "by aesgcm:v1:"+name+": the key does not decrypt it")
		refused(t, by, secrets, here, append(bytes.Clone(stored), 0),
			"by aesgcm:v1:"+name+": the key does not decrypt it")
	}
}

// Records that kube-apiserver never encrypts stay plaintext under "*.*".
func TestStoredBareIsNeverEncrypted(t *testing.T) {
	by := with(t, keyed("aescbc", "key1", "a"))
	for _, resource := range []string{"masterleases", "peerserverleases", "ranges", ""} {
		gr := schema.GroupResource{Resource: resource}
		require.False(t, by.Encrypts(gr), resource)
		require.Equal(t, text, string(encrypt(t, by, gr, here, text)), resource)
		decrypts(t, by, gr, here, []byte(text), text, false)
	}
	require.True(t, by.Encrypts(schema.GroupResource{Group: "ranges.example.com", Resource: "ranges"}))
}

func TestDescribe(t *testing.T) {
	for stored, want := range map[string]string{
		"k8s:enc:aescbc:v1:key1:\x00\x01": "aescbc:v1:key1",
		"k8s:enc:kms:v2:vault:\x0a":       "kms:v2:vault",
		"k8s:enc:kms:v2:vau":              "kms:v2",
		"k8s:enc:kms:v2:\x00\x01:":        "kms:v2",
		"k8s:enc:kms:":                    "kms",
		"k8s:enc:":                        "an unnamed provider",
		"k8s:enc::::":                     "an unnamed provider",
		"k8s:enc:aesgcm:v1:" + strings.Repeat("k", 600) + ":": "aesgcm:v1",
	} {
		p, ok := describe([]byte(stored))
		require.True(t, ok)
		require.Equal(t, want, p.String(), "%q", stored)
	}
	p, _ := describe([]byte("k8s:enc:aescbc:v1:key1:\x00"))
	require.Equal(t, provider{"aescbc", "v1", "key1"}, p)
	for _, stored := range []string{"", "k8s:enc", "{}", "k8s\x00", " k8s:enc:"} {
		_, ok := describe([]byte(stored))
		require.False(t, ok, fmt.Sprintf("%q", stored))
	}
}
