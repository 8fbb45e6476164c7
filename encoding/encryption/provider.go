package encryption

import (
	"strings"

	"github.com/etcdshift/etcdshift/encoding"
)

// Names of the providers, as configurations and prefixes spell them.
const (
	aescbc    = "aescbc"
	aesgcm    = "aesgcm"
	secretbox = "secretbox"
	kms       = "kms"
	identity  = "identity"
)

// provider names how a value is encrypted.
type provider struct {
	name    string // one of the names above, or the name of a later server's provider
	version string // of the provider's format: v1, for kms also v2
	key     string // the name of the key in the configuration; for kms the name of the plugin
}

// String is "aescbc:v1:key1", as in the value, without the unknown parts.
func (p provider) String() string {
	if p.name == "" {
		return "an unnamed provider"
	}
	return strings.TrimRight(p.name+":"+p.version+":"+p.key, ":")
}

// prefix is the beginning of each value of this provider and key
// (k8s.io/apiserver pkg/storage/value/encrypt/identity).
func (p provider) prefix() string { return "k8s:enc:" + p.name + ":" + p.version + ":" + p.key + ":" }

// describe reads provider and key from the beginning of a value. ok is false for plaintext. A part
// that does not look like a name, as in a damaged value, is empty, with all parts after it. The
// name of a key ends at its first colon.
func describe(stored []byte) (p provider, ok bool) {
	parts, ok := encoding.EncryptionParts(stored)
	parts = append(parts, "", "", "")
	return provider{parts[0], parts[1], parts[2]}, ok
}
