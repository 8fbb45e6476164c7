package encryption

import "github.com/etcdshift/etcdshift/encoding"

// prefix is what every encrypted value begins with, and nothing else that an API server stores
// (k8s.io/apiserver pkg/storage/value/encrypt/identity).
const prefix = "k8s:enc:"

// Names of the providers, as configurations and prefixes spell them.
const (
	aescbc    = "aescbc"
	aesgcm    = "aesgcm"
	secretbox = "secretbox"
	kms       = "kms"
	identity  = "identity"
)

// Provider is how a value was encrypted, or would be.
type Provider struct {
	Name    string // aescbc, aesgcm, secretbox, kms; of one a later server has, its name
	Version string // of the provider's format: v1, for kms also v2
	Key     string // the key's name in the configuration; for kms the plugin's name there
}

// String is "aescbc:v1:key1", as it stands in the value; parts that are not known are left out.
func (p Provider) String() string {
	switch {
	case p.Name == "":
		return "an unnamed provider"
	case p.Version == "":
		return p.Name
	case p.Key == "":
		return p.Name + ":" + p.Version
	default:
		return p.Name + ":" + p.Version + ":" + p.Key
	}
}

// prefix is what a value of this provider and key begins with.
func (p Provider) prefix() string {
	if p.Name == identity {
		return ""
	}
	return prefix + p.Name + ":" + p.Version + ":" + p.Key + ":"
}

// Describe says by which provider and key a value was encrypted, from what it begins with. ok is false for a value that is
// not encrypted. Parts that do not look like names, as in a damaged or cut off value, stay empty with all after them. A
// key whose name has a colon in it is described by the part before.
func Describe(stored []byte) (p Provider, ok bool) {
	parts, ok := encoding.EncryptionParts(stored)
	for i, part := range []*string{&p.Name, &p.Version, &p.Key} {
		if i < len(parts) {
			*part = parts[i]
		}
	}
	return p, ok
}
